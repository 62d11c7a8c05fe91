//! Operating the fleet: shards, workers, bulk control, health, metrics.

use serde_json::{Value, json};

use crate::harness::{Harness, wait};

#[tokio::test]
async fn s47_the_smallest_division_works() {
    // One shard and one worker: everything of the fleet works on the smallest division.
    let fleet = Harness::start_with(&["--shards", "1"]).await;
    fleet.create("s47", json!({ "moniker": "count", "config": { "until": 3 } })).await;
    fleet.wait_status("s47", "completed").await;
    let shards = list(&fleet, "/api/shards").await;
    assert_eq!(shards.len(), 1);
    assert!(!shards[0]["owner"].is_null());
}

#[tokio::test]
async fn s48_shards_are_listed_and_an_agents_sessions_are_paused_and_resumed() {
    s48(&Harness::start().await, 32, 1).await;
}

/// S-48 on a fleet of any kind, whose shards all have an owner.
pub async fn s48(fleet: &Harness, shard_count: usize, worker_count: usize) {
    for session in ["a1", "a2", "a3"] {
        let payload = json!({ "moniker": "count", "loop_interval_ms": 20 });
        fleet.act(json!({ "type": "create", "session_id": session, "agent_id": "ana", "payload": payload })).await;
    }
    fleet.create("other", json!({ "moniker": "count", "loop_interval_ms": 20 })).await;
    for session in ["a1", "a2", "a3", "other"] {
        fleet.wait_steps(session, 1).await;
    }
    let (ok, out, err) = fleet.cli(&["pause", "--all", "--agent", "ana", "--json"]).await;
    assert!(ok && out.contains("\"accepted\": 3"), "{out}{err}");
    for session in ["a1", "a2", "a3"] {
        fleet.wait_status(session, "paused").await;
    }
    assert_eq!(fleet.status("other").await, "running");
    let (ok, _, err) = fleet.cli(&["resume", "--all", "--agent", "ana", "--status", "paused"]).await;
    assert!(ok, "{err}");
    for session in ["a1", "a2", "a3"] {
        fleet.wait_status(session, "running").await;
    }
    let shards = list(fleet, "/api/shards").await;
    assert_eq!(shards.len(), shard_count);
    let workers = list(fleet, "/api/workers").await;
    assert_eq!(workers.len(), worker_count);
    let is_owned = |shard: &Value| workers.iter().any(|worker| worker["worker_id"] == shard["owner"]);
    assert!(shards.iter().all(|shard| is_owned(shard) && shard["backlog"].is_u64()), "{shards:?}");
}

#[tokio::test]
async fn a_fleet_of_one_process_that_is_drained_says_so_and_goes_on_when_it_starts_again() {
    let mut fleet = Harness::start().await;
    fleet.create("s1", json!({ "moniker": "echo" })).await;
    fleet.wait_status("s1", "running").await;
    let workers = list(&fleet, "/api/workers").await;
    let (ok, out, err) = fleet.cli(&["drain", workers[0]["worker_id"].as_str().expect("an id")]).await;
    assert!(ok, "{out}{err}");
    wait("it says so", || async { fleet.log().contains("handed over by command").then_some(()) }).await;
    wait("nobody owns a shard", || async {
        let health = fleet.get("/health").await;
        (health["status"] == "degraded" && health["shards_owned"] == 0).then_some(())
    })
    .await;
    fleet.tell("s1", "input", json!({ "text": "later" })).await;
    assert!(fleet.stop().await.success());
    fleet.up().await;
    assert_eq!(fleet.wait_steps("s1", 1).await[0]["text"], "later");
}

#[tokio::test]
async fn s142_health_names_its_parts_and_metrics_show_the_load() {
    let fleet = Harness::start().await;
    fleet.create("s142", json!({ "moniker": "count", "loop_interval_ms": 20 })).await;
    fleet.wait_steps("s142", 3).await;
    let health = fleet.get("/health").await;
    assert_eq!(health["status"], "ok", "{health}");
    let parts: Vec<&str> =
        health["components"].as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert!(parts.len() >= 3, "queue, SQL and LanceDB are told apart: {parts:?}");
    for field in ["live_sessions", "queue_lag_ms", "journal_lag_rows", "shards_owned"] {
        assert!(health[field].is_u64(), "{field} in {health}");
    }
    wait("the metrics have seen the steps", || async {
        let metrics = fleet.get("/metrics").await;
        let text = metrics.as_str().unwrap_or_default();
        let names = [
            "stepfleet_sessions_live",
            "stepfleet_queue_lag_seconds",
            "stepfleet_operations_lag_seconds",
            "stepfleet_step_seconds_bucket",
            "stepfleet_steps_total{moniker=\"count\",status=\"ok\"}",
            "stepfleet_actions_processed_total{outcome=\"ok\"}",
            "stepfleet_commit_batch_size_bucket{kind=\"accept\",",
            "stepfleet_commit_batch_size_bucket{kind=\"commit\",",
            "stepfleet_sessions_active",
            "stepfleet_journal_lag_rows",
            "stepfleet_accept_seconds_bucket",
            "stepfleet_commit_seconds_bucket",
            "stepfleet_lease_changes_total{change=\"claimed\"}",
            "stepfleet_sessions_without_cause 0",
            "stepfleet_sessions_overdue 0",
        ];
        names.iter().all(|name| text.contains(&format!("\n{name}"))).then_some(())
    })
    .await;
    // LanceDB's directory is taken away: the part is named, the rest goes on.
    std::fs::rename(fleet.data_dir.join("history"), fleet.scratch("away")).unwrap();
    wait("health is degraded", || async {
        let health = fleet.get("/health").await;
        let bad = health["components"].as_array().unwrap().iter().any(|part| part["ok"] == false);
        (health["status"] == "degraded" && bad).then_some(())
    })
    .await;
    let count = fleet.steps_of_journal("s142").await;
    wait("steps go on", || async { (fleet.steps_of_journal("s142").await > count).then_some(()) }).await;
    drop(std::fs::remove_dir_all(fleet.data_dir.join("history")));
    std::fs::rename(fleet.scratch("away"), fleet.data_dir.join("history")).unwrap();
    wait("health is well again", || async { (fleet.get("/health").await["status"] == "ok").then_some(()) }).await;
}

pub async fn list(fleet: &Harness, path: &str) -> Vec<Value> {
    let answer = fleet.get(path).await;
    answer.get("items").unwrap_or(&answer).as_array().unwrap().clone()
}

impl Harness {
    /// Number of steps as the registry has it, which needs no archive.
    async fn steps_of_journal(&self, session: &str) -> u64 {
        let page = self.get(&format!("/api/sessions?q={session}")).await;
        page["items"][0]["iteration"].as_u64().unwrap_or(0)
    }
}
