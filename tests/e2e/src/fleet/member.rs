//! One process of a fleet: started, waited for, asked to end, killed.

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::harness::{POLL, START_MAX, STOP_MAX, command, signal};

/// How much of its log a failed test shows.
const LOG_LINES_SHOWN: usize = 15;

pub struct Member {
    pub name: String,
    /// `dispatcher` or `worker`.
    kind: &'static str,
    /// Of a worker that has not all of them.
    roles: Option<&'static str>,
    dir: PathBuf,
    child: Option<Child>,
    /// What it told when it was ready.
    facts: Value,
}

impl Member {
    pub fn new(kind: &'static str, number: usize, dir: &Path) -> Self {
        let name = format!("{kind}-{number}");
        Self { name, kind, roles: None, dir: dir.to_owned(), child: None, facts: Value::Null }
    }

    /// A worker that does nothing else.
    pub fn with_roles(mut self, roles: &'static str) -> Self {
        self.roles = Some(roles);
        self
    }

    /// Starts it and waits for nothing.
    pub fn start(&mut self, envs: &[(String, String)]) {
        assert!(self.child.is_none(), "{} runs already", self.name);
        drop(std::fs::remove_file(self.ready_file()));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_file()).expect("a log");
        let mut command = command();
        command.current_dir(&self.dir).arg(self.kind).arg("--ready-file").arg(self.ready_file());
        if self.kind == "dispatcher" {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(self.roles.iter().flat_map(|roles| ["--roles", *roles]));
        command.envs(envs.iter().map(|(name, value)| (name, value)));
        command.env("STEPFLEET_DATA_DIR", self.dir.join(&self.name));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().expect("the binary starts"));
    }

    pub fn is_ready(&self) -> bool {
        self.ready_file().exists()
    }

    /// Waits until it is ready.
    pub async fn ready(&mut self) {
        let started = Instant::now();
        let text = loop {
            if let Ok(text) = std::fs::read_to_string(self.ready_file()) {
                break text;
            }
            let child = self.child.as_mut().expect("it runs");
            if let Some(status) = child.try_wait().expect("a child") {
                panic!("{} ended with {status}", self.name);
            }
            assert!(started.elapsed() < START_MAX, "{} is not ready after {START_MAX:?}", self.name);
            tokio::time::sleep(POLL).await;
        };
        self.facts = serde_json::from_str(&text).expect("the ready file is JSON");
    }

    /// Where a dispatcher serves.
    pub fn url(&self) -> &str {
        self.facts["url"].as_str().expect("a dispatcher that has been ready")
    }

    /// The id that a worker goes by.
    pub fn id(&self) -> &str {
        self.facts["worker_id"].as_str().expect("a worker that has been ready")
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// What it logged so far, over all its starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// SIGKILL: nothing is finished, nothing is cleaned up.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("SIGKILL");
            child.wait().expect("it is gone");
        }
    }

    /// SIGTERM, and what it ended with.
    pub async fn stop(&mut self) -> ExitStatus {
        signal(self.pid(), "TERM");
        self.ended().await
    }

    /// Waits for an end that it has been asked for.
    pub async fn ended(&mut self) -> ExitStatus {
        let asked = Instant::now();
        loop {
            let child = self.child.as_mut().expect("it runs");
            if let Some(status) = child.try_wait().expect("a child") {
                self.child = None;
                return status;
            }
            assert!(asked.elapsed() < STOP_MAX, "{} has not ended after {STOP_MAX:?}", self.name);
            tokio::time::sleep(POLL).await;
        }
    }

    fn ready_file(&self) -> PathBuf {
        self.dir.join(format!("{}.ready", self.name))
    }

    fn log_file(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.name))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
            eprintln!("the end of the log of {}:\n{}", self.name, tail.join("\n"));
        }
    }
}
