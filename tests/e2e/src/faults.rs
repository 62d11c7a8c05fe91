//! A machine that does not cooperate: the error is clear, and nothing is lost.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Harness, assert_chain, command, run, wait};

/// Runs `up` where it must fail; returns what it said.
async fn refused(cwd: &Path, data_dir: &Path) -> String {
    let (ok, _, err) = run(cwd, data_dir, &["up", "--listen", "127.0.0.1:0"]).await;
    assert!(!ok, "it started");
    err
}

#[tokio::test]
async fn a_second_fleet_on_one_directory_is_told_who_has_it() {
    let fleet = Harness::start().await;
    let error = refused(fleet.data_dir.parent().unwrap(), &fleet.data_dir).await;
    assert!(error.contains(&format!("in use by process {}", fleet.pid())), "{error}");
    wait("the first one is well", || async { (fleet.get("/health").await["status"] == "ok").then_some(()) }).await;
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let fleet = Harness::start().await;
    let scratch = TempDir::new().unwrap();
    let address = fleet.base_url.strip_prefix("http://").unwrap();
    let (ok, _, error) = run(scratch.path(), &scratch.path().join("data"), &["up", "--listen", address]).await;
    assert!(!ok && error.contains(&format!("{address} is in use")) && error.contains("--listen"), "{error}");
}

#[tokio::test]
async fn a_foreign_database_is_refused_and_left_as_it_is() {
    let scratch = TempDir::new().unwrap();
    let data = scratch.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let foreign = b"-- notes of somebody else --\n".repeat(500);
    std::fs::write(data.join("ledger.db"), &foreign).unwrap();
    let error = refused(scratch.path(), &data).await;
    assert!(error.contains("ledger.db"), "{error}");
    assert_eq!(std::fs::read(data.join("ledger.db")).unwrap(), foreign, "nothing was written to it");
}

#[tokio::test]
async fn a_file_in_place_of_the_directory_is_named() {
    let scratch = TempDir::new().unwrap();
    std::fs::write(scratch.path().join("data"), "x").unwrap();
    let error = refused(scratch.path(), &scratch.path().join("data")).await;
    assert!(error.contains("is a file") && error.contains("--data-dir"), "{error}");
    // Below a file nothing can be made, for root neither.
    let error = refused(scratch.path(), &scratch.path().join("data/below")).await;
    assert!(error.contains("cannot create"), "{error}");
}

#[tokio::test]
async fn a_damaged_database_is_reported() {
    let mut fleet = Harness::start().await;
    fleet.create("before", json!({ "moniker": "count", "config": { "until": 50 } })).await;
    fleet.wait_status("before", "completed").await;
    assert!(fleet.stop().await.success());
    let file = fleet.data_dir.join("ledger.db");
    let mut bytes = std::fs::read(&file).unwrap();
    for byte in &mut bytes[..100] {
        *byte ^= 0xff;
    }
    std::fs::write(&file, &bytes).unwrap();
    let error = refused(fleet.data_dir.parent().unwrap(), &fleet.data_dir).await;
    assert!(error.contains("ledger.db"), "{error}");
    let (ok, _, _) = fleet.cli(&["doctor"]).await;
    assert!(!ok, "the doctor must notice it");
}

#[tokio::test]
async fn every_problem_of_the_configuration_is_told_before_anything_starts() {
    let scratch = TempDir::new().unwrap();
    let data = scratch.path().join("data");
    let mut command = command();
    command.current_dir(scratch.path()).env("STEPFLEET_LISTEN", "nowhere").env("STEPFLEET_SHARDS", "0");
    command.args(["up", "--data-dir"]).arg(&data).args(["--allow-private", "perhaps"]);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    for part in ["3 problems", "STEPFLEET_LISTEN", "STEPFLEET_SHARDS", "--allow-private"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!data.exists());
}

#[tokio::test]
async fn a_full_disk_refuses_and_loses_nothing() {
    // As root, a file system of its own that really fills up; otherwise there is no such disk here.
    // Much larger than the store's log (16 MiB) and file: what is given back later has to be room for both.
    let Some(disk) = SmallDisk::mount(96) else {
        println!("not root, or no tmpfs: the full disk is tested where tests run as root");
        return;
    };
    let data = disk.path().join("data");
    let mut fleet = Harness::start_on(TempDir::new().unwrap(), data, &[]).await;
    fleet.create("full", json!({ "moniker": "echo" })).await;
    let ballast = disk.path().join("ballast");
    let text = "x".repeat(64 << 10);
    let mut accepted = 0;
    // Inputs until there is no room; the ballast takes what the fleet leaves.
    let refusal = loop {
        let answer = fleet
            .post("/api/actions", &json!({ "type": "input", "session_id": "full", "payload": { "text": text } }))
            .await;
        if !answer.status.is_success() {
            break answer;
        }
        accepted += 1;
        fill(&ballast);
        assert!(accepted < 2_000, "the disk does not fill up");
    };
    assert_eq!((refusal.status.as_u16(), &refusal.body["code"]), (507, &json!("storage_full")), "{}", refusal.body);
    std::fs::remove_file(&ballast).unwrap();
    wait("there is room again", || async {
        let answer = fleet
            .post("/api/actions", &json!({ "type": "input", "session_id": "full", "payload": { "text": "last" } }))
            .await;
        answer.status.is_success().then_some(())
    })
    .await;
    let steps = fleet.wait_steps("full", accepted + 1).await;
    assert_chain(&steps);
    assert_eq!(steps.len(), accepted + 1, "what was accepted came out, what was refused did not");
    assert_eq!(steps.last().unwrap()["text"], "last");
    fleet.kill();
}

/// Takes the rest of the disk but for about a megabyte.
fn fill(ballast: &Path) {
    let space = Command::new("df").args(["--output=avail", "-k"]).arg(ballast.parent().unwrap()).output().unwrap();
    let text = String::from_utf8_lossy(&space.stdout);
    let free: u64 = text.lines().nth(1).and_then(|line| line.trim().parse().ok()).unwrap_or(0);
    let have = std::fs::metadata(ballast).map_or(0, |meta| meta.len());
    if free > 2_048 {
        let size = have + (free - 1_024) * 1_024;
        Command::new("fallocate").arg("-l").arg(size.to_string()).arg(ballast).status().unwrap();
    }
}

/// A tmpfs of a few megabytes.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let size = format!("size={megabytes}m");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(dir.path())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success()).then_some(Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}
