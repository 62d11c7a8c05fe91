//! Real servers for tests: private ones, started by `ops/services` for this process and ended with
//! it, however it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Names the directories, so that those of processes that are gone can be told and removed.
const PREFIX: &str = "stepfleet-services-";

/// The URL of a PostgreSQL that the tests of this process share. `STEPFLEET_TEST_DATABASE_URL` names
/// another one to use.
///
/// # Panics
/// It cannot be started; the text says why.
pub fn postgres_url() -> &'static str {
    static SERVER: OnceLock<Server> = OnceLock::new();
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| match std::env::var("STEPFLEET_TEST_DATABASE_URL") {
        Ok(url) if !url.is_empty() => url,
        _ => SERVER.get_or_init(|| Server::start("postgres")).told("STEPFLEET_DATABASE_URL"),
    })
}

/// A server of one test alone, which may harm it. Ends when dropped.
pub struct Server {
    service: &'static str,
    directory: PathBuf,
}

impl Server {
    /// `postgres` or `rabbitmq`.
    ///
    /// # Panics
    /// It cannot be started; the text says why.
    pub fn start(service: &'static str) -> Self {
        Self::start_as(service, &[])
    }

    /// One that takes TLS as well; its environment file has the URL for it, and `TLS_STRANGER`, the
    /// path of an authority that did not sign its certificate.
    ///
    /// # Panics
    /// It cannot be started; the text says why.
    pub fn start_with_tls(service: &'static str) -> Self {
        Self::start_as(service, &["--tls"])
    }

    /// A PostgreSQL of its own that follows this one, with all that is in it, and only lets read.
    ///
    /// # Panics
    /// It cannot be started; the text says why.
    pub fn standby(&self) -> Self {
        let followed = self.directory.to_str().expect("a path of plain letters");
        Self::start_as(self.service, &["--follows", followed])
    }

    /// Of a standby: it follows nobody any more, and takes writes.
    pub fn promote(&self) {
        run("promote", &self.directory, &[]);
    }

    fn start_as(service: &'static str, more: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        remove_leftovers();
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(format!("{PREFIX}{process}-{count}"));
        let process = process.to_string();
        run("up", &directory, &[&[service, "--parent", process.as_str()][..], more].concat());
        Self { service, directory }
    }

    /// What the server's environment file says.
    pub fn told(&self, name: &str) -> String {
        let env = fs::read_to_string(self.directory.join("env")).expect("ops/services writes DIR/env");
        let value = env.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("ops/services says nothing of {name}")).trim_matches(['"', '\'']).to_owned()
    }

    /// SIGKILL to all its processes.
    pub fn kill(&self) {
        run("kill", &self.directory, &[self.service]);
    }

    /// Freezes all its processes.
    pub fn freeze(&self) {
        run("stop", &self.directory, &[self.service]);
    }

    pub fn thaw(&self) {
        run("cont", &self.directory, &[self.service]);
    }

    /// After [`Self::kill`]: on the same port and data.
    pub fn start_again(&self) {
        run("start", &self.directory, &[self.service]);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        run("down", &self.directory, &[]);
        remove(&self.directory);
    }
}

/// Directories of test processes that have ended, with whatever may still run there.
fn remove_leftovers() {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for directory in entries.map(|entry| entry.path()).filter(|path| is_left_over(path)) {
        run("down", &directory, &[]);
        remove(&directory);
    }
}

fn is_left_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let owner = name.strip_prefix(PREFIX).and_then(|id| id.split('-').next()?.parse::<u32>().ok());
    // A directory without a lock holds no services.
    owner.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) && path.join("lock").exists()
}

fn remove(directory: &Path) {
    // What another test process is removing as well, or what cannot be removed, is left to whoever
    // cleans the directory of temporary files.
    let _ = fs::remove_dir_all(directory);
}

fn run(command: &str, directory: &Path, arguments: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/services");
    let output = Command::new(script).arg(command).arg(directory).args(arguments).output();
    let output = output.expect("ops/services can be run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "ops/services {command} {} failed:\n{said}", directory.display());
}
