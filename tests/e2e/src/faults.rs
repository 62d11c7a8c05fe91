//! A machine that does not cooperate: the error is clear, and nothing is lost.

mod disk;

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Harness, command, run, wait};

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
