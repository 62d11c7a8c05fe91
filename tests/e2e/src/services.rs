//! The other backend: with `STEPFLEET_E2E_SERVICES`, a directory in which `ops/services` runs PostgreSQL
//! and RabbitMQ, each fleet under test gets a database and a virtual host of its own there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const DIR: &str = "STEPFLEET_E2E_SERVICES";
pub const DATABASE: &str = "STEPFLEET_DATABASE_URL";
pub const AMQP: &str = "STEPFLEET_AMQP_URL";

static MADE: AtomicUsize = AtomicUsize::new(0);

/// A database and a virtual host that one fleet has for itself, as URLs.
#[derive(Debug, Clone)]
pub struct Services {
    pub database: String,
    pub amqp: String,
}

impl Services {
    pub fn settings(&self) -> Vec<(String, String)> {
        vec![(DATABASE.to_owned(), self.database.clone()), (AMQP.to_owned(), self.amqp.clone())]
    }
}

/// The settings of a fleet with services of its own; none without services.
pub fn fresh() -> Vec<(String, String)> {
    let Some(services) = empty() else { return Vec::new() };
    let own = services.settings();
    run(crate::harness::command().arg("migrate").envs(own.iter().map(|(key, value)| (key, value))));
    own
}

/// Services that nobody has used yet: the database has no schema. `None` without services.
pub fn empty() -> Option<Services> {
    let dir = std::env::var_os(DIR).map(PathBuf::from)?;
    let name = format!("e2e_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let settings = std::fs::read_to_string(dir.join("env")).expect("`ops/services up` has written it");
    let setting = |key: &str| {
        let line = settings.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("{key} is not in {}", dir.join("env").display())).to_owned()
    };
    let (database, amqp) = (setting(DATABASE), setting(AMQP));
    run(Command::new("psql").arg(&database).args(["-q", "-c", &format!("CREATE DATABASE {name}")]));
    let user = amqp.trim_start_matches("amqp://").split(':').next().expect("a user").to_owned();
    run(ctl(&dir).args(["add_vhost", &name]));
    run(ctl(&dir).args(["set_permissions", "-p", &name, &user, ".*", ".*", ".*"]));
    let (server, _) = database.rsplit_once('/').expect("a database in the URL");
    let (broker, _) = amqp.rsplit_once('/').expect("a virtual host in the URL");
    Some(Services { database: format!("{server}/{name}"), amqp: format!("{broker}/{name}") })
}

fn ctl(dir: &Path) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    let mut command = Command::new(root.join("ops/services"));
    command.arg("ctl").arg(dir);
    command
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("a command that is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
