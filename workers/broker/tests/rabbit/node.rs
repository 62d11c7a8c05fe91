//! A private RabbitMQ node, started by `ops/services`, which ends it together with this process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Node {
    dir: PathBuf,
}

impl Node {
    /// One node for all tests that do not harm it.
    pub fn shared() -> &'static Node {
        static NODE: OnceLock<Node> = OnceLock::new();
        NODE.get_or_init(Node::start)
    }

    pub fn start() -> Node {
        Node::start_as(&[])
    }

    /// One that takes TLS as well.
    pub fn start_with_tls() -> Node {
        Node::start_as(&["--tls"])
    }

    fn start_as(more: &[&str]) -> Node {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Not a directory of mode 0700: the server runs as another user.
        let dir = std::env::temp_dir().join(format!("stepfleet-rabbit-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for the node");
        let node = Node { dir };
        let process = std::process::id().to_string();
        node.services(&["up"], &[&["rabbitmq", "--parent", process.as_str()][..], more].concat());
        node
    }

    pub fn url(&self) -> String {
        self.told("STEPFLEET_AMQP_URL")
    }

    /// What the node's environment file says.
    pub fn told(&self, name: &str) -> String {
        let env = std::fs::read_to_string(self.dir.join("env")).expect("ops/services writes it");
        let line = env.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.expect("ops/services writes it").trim_matches(['"', '\'']).to_owned()
    }

    /// The URL of a fresh virtual host.
    pub fn vhost(&self, name: &str) -> String {
        self.eval(&format!(
            "rabbit_vhost:add(<<\"{name}\">>, <<\"test\">>), \
             rabbit_auth_backend_internal:set_permissions(<<\"stepfleet\">>, <<\"{name}\">>, <<\".*\">>, <<\".*\">>, <<\".*\">>, <<\"test\">>)."
        ));
        let url = self.url();
        let (server, _) = url.rsplit_once('/').expect("it names a virtual host");
        format!("{server}/{name}")
    }

    /// SIGKILL.
    pub fn kill(&self) {
        self.services(&["kill"], &["rabbitmq"]);
    }

    /// On the same port and data.
    pub fn start_again(&self) {
        self.services(&["start"], &["rabbitmq"]);
    }

    pub fn ctl(&self, arguments: &[&str]) -> String {
        self.services(&["ctl"], arguments)
    }

    pub fn eval(&self, erlang: &str) -> String {
        self.ctl(&["eval", erlang])
    }

    fn services(&self, command: &[&str], arguments: &[&str]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/services");
        let output = Command::new(script).args(command).arg(&self.dir).args(arguments).output();
        let output = output.expect("ops/services can be run");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ops/services {command:?} {arguments:?}: {said}{complained}");
        said
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.services(&["down"], &[]);
        // What cannot be removed is left to whoever cleans the directory of temporary files.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
