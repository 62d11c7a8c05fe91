//! Each role in a process of its own: all are known, whatever they do; each ends when it is drained, and is missed
//! when it dies.

use std::time::{Duration, Instant};

use schemas::limits::LEASE_MS;
use serde_json::json;

use super::member::Member;
use super::{Fleet, SHARDS};
use crate::cli::{assert_says, read, told};
use crate::harness::wait;
use crate::scenario::fleet::list;
use crate::talk::desk::{converse, definitions, ended, said, say, write_script};

const ROLES: [&str; 3] = ["runner", "executor", "archivist"];
/// The database sees an end at once; a worker that has only gone silent is counted on for longer.
const MISSED: Duration = Duration::from_millis(2 * LEASE_MS);

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn workers_without_shards_are_known_and_drained_and_missed_like_others() {
    let mut fleet = Fleet::plan();
    let script = write_script(fleet.dir.path());
    fleet.set("STEPFLEET_SCRIPT", script.to_str().expect("a plain path"));
    let worker = |(number, roles)| Member::new("worker", number, fleet.dir.path()).with_roles(roles);
    let workers = (1..).zip(ROLES).map(worker).collect();
    fleet.workers = workers;
    fleet.migrate(SHARDS).await;
    fleet.up().await;
    all_are_known(&fleet).await;
    run_a_tool(&fleet).await;
    drain_the_executor(&mut fleet).await;
    kill_the_archivist(&mut fleet).await;
    fleet.down().await;
}

async fn all_are_known(fleet: &Fleet) {
    let known = list(fleet.here(), "/api/workers").await;
    assert_eq!(known.len(), ROLES.len(), "{known:?}");
    for (worker, roles) in fleet.workers.iter().zip(ROLES) {
        let row = known.iter().find(|row| row["worker_id"] == worker.id()).expect("it is known");
        let shards = if roles == "runner" { usize::from(SHARDS) } else { 0 };
        assert_eq!((&row["roles"], &row["draining"]), (&json!([roles]), &json!(false)), "{row}");
        assert_eq!(row["shards"].as_array().map(Vec::len), Some(shards), "{row}");
    }
    assert_says(&told(fleet.here(), &["doctor"]).await, &["3 alive", "workers known to run them: 1"]);
}

/// By the one who is there for that.
async fn run_a_tool(fleet: &Fleet) {
    let client = fleet.here();
    let answer = client.post("/api/definitions", &json!(definitions())).await;
    assert!(answer.status.is_success(), "{answer:?}");
    converse(client, "croles", &["ben"]).await;
    let turn = ended(client, &say(client, "croles", "use the tool").await).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(said(client, "croles").await[1].1, "The tool said {\"found\":42}.");
    let page = client.get("/api/operations?conversation_id=croles").await;
    let operation = page["items"][0]["operation_id"].as_str().expect("an operation");
    let result = client.get(&format!("/api/actions/{operation}.result")).await;
    assert_eq!(result["actor"], format!("executor:{}", fleet.workers[1].id()), "{result}");
}

async fn drain_the_executor(fleet: &mut Fleet) {
    let mut drained = fleet.workers.remove(1);
    let (client, id) = (fleet.here(), drained.id().to_owned());
    assert_eq!(read(client, &["drain", &id]).await, json!({ "worker_id": id, "draining": true }));
    let status = drained.ended().await;
    assert_eq!(status.code(), Some(0), "{} ended with {status}", drained.name);
    let left = list(client, "/api/workers").await;
    assert_eq!(left.len(), fleet.workers.len(), "{left:?}");
    assert!(left.iter().all(|row| row["worker_id"] != id.as_str()), "{left:?}");
    assert_says(&told(client, &["doctor"]).await, &["2 alive", "workers known to run them: 0"]);
}

/// It had no shards, so none moves.
async fn kill_the_archivist(fleet: &mut Fleet) {
    let mut killed = fleet.workers.remove(1);
    let (client, owners) = (fleet.here(), fleet.owners().await);
    assert!(owners.is_some(), "the runner has all shards");
    killed.kill();
    let died = Instant::now();
    wait("nobody counts on it", || async { (list(client, "/api/workers").await.len() == 1).then_some(()) }).await;
    assert!(died.elapsed() < MISSED, "it was missed after {:?}", died.elapsed());
    assert_eq!(fleet.owners().await, owners);
}
