//! A history in a bucket: another worker takes over from its archivist, a server that hangs holds up no step, and
//! in the end everything is there once.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use super::{Fleet, SHARDS, WORKERS};
use crate::cli;
use crate::harness::{assert_chain, wait};

const STEPS: usize = 40;
const EACH: usize = 4;

/// A private server of the S3 protocol, which ends with this process.
struct Bucket(TempDir);

impl Bucket {
    fn start() -> Self {
        let bucket = Self(TempDir::new().expect("a temporary directory"));
        bucket.run("up", &["--parent", &std::process::id().to_string()]);
        bucket
    }

    fn settings(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(self.0.path().join("s3.env")).expect("`ops/s3 up` has written it");
        let lines = text.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn run(&self, command: &str, more: &[&str]) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
        let mut script = Command::new(root.join("ops/s3"));
        let output = script.arg(command).arg(self.0.path()).args(more).stdin(Stdio::null()).output().expect("ops/s3");
        assert!(output.status.success(), "ops/s3 {command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.run("down", &[]);
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn a_history_in_a_bucket_outlives_its_archivist_and_a_server_that_hangs() {
    let bucket = Bucket::start();
    let mut fleet = Fleet::plan();
    for (name, value) in bucket.settings() {
        fleet.set(&name, &value);
    }
    fleet.migrate(SHARDS).await;
    fleet.up().await;
    create(&fleet, "before").await;
    completed(&fleet, "before").await;
    fleet.here().wait_archived().await;
    assert!(!fleet.dir.path().join("history").exists(), "nothing of it is on a disk");

    // Who is archivist is one of those that are killed, each in the middle of its work.
    fleet.hire().await;
    for round in 0..WORKERS {
        let name = format!("killed-{round}");
        create(&fleet, &name).await;
        fleet.here().wait_steps(&session(&name, 0), 2).await;
        fleet.workers.remove(0).kill();
        completed(&fleet, &name).await;
    }
    fleet.here().wait_archived().await;

    bucket.run("stop", &[]);
    create(&fleet, "meanwhile").await;
    completed(&fleet, "meanwhile").await;
    // The journal has the newest steps: who asks for them need not wait for the history.
    let newest = format!("/api/agent-steps?session_id={}&latest=5", session("meanwhile", 0));
    let newest = fleet.there().get(&newest).await;
    assert_eq!(newest["items"].as_array().map(Vec::len), Some(5), "{newest}");
    said(&fleet, "the history does not answer").await;
    bucket.run("cont", &[]);
    fleet.here().wait_archived().await;
    said(&fleet, "the history answers again").await;
    let names = ["before", "killed-0", "killed-1", "meanwhile"];
    for name in names {
        for number in 0..EACH {
            let steps = fleet.there().steps(&session(name, number)).await;
            assert_chain(&steps);
            assert_eq!(steps.len(), STEPS, "{name}");
        }
    }
    let report = cli::read(fleet.here(), &["doctor", "--verify-history"]).await;
    assert_eq!(report["history"]["broken"], 0, "{report}");
    assert_eq!(report["history"]["steps"], names.len() * EACH * STEPS, "{report}");
}

/// Waits until a worker has logged it.
async fn said(fleet: &Fleet, text: &str) {
    wait(text, || async { fleet.workers.iter().any(|worker| worker.log().contains(text)).then_some(()) }).await;
}

fn session(name: &str, number: usize) -> String {
    format!("{name}-{number}")
}

async fn create(fleet: &Fleet, name: &str) {
    let payload = json!({"moniker": "count", "config": {"until": STEPS}, "loop_interval_ms": 50});
    for number in 0..EACH {
        fleet.here().create(&session(name, number), payload.clone()).await;
    }
}

/// The steps of a session are committed without the archive.
async fn completed(fleet: &Fleet, name: &str) {
    for number in 0..EACH {
        fleet.there().wait_status(&session(name, number), "completed").await;
    }
}
