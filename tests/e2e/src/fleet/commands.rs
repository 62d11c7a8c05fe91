//! The operator's commands on a fleet of processes: what they print for people and for programs, and what
//! they do.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use super::{Fleet, SHARDS};
use crate::cli::{assert_says, read, told};
use crate::harness::{Harness, wait};
use crate::services::Services;

/// Puts messages on a queue, as other programs do: the broker's URL, the name of the queue, then their bodies.
const ENQUEUE: &str = r#"
import sys, pika
connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1]))
channel = connection.channel()
channel.confirm_delivery()
for body in sys.argv[3:]:
    channel.basic_publish("", sys.argv[2], body.encode(), pika.BasicProperties(delivery_mode=2), mandatory=True)
connection.close()
"#;
/// What is no action, now or later.
const RUBBISH: [&str; 2] = ["no JSON", "nor is this"];
/// Inputs that come before their session is there.
const EARLY: [&str; 2] = ["early", "earlier"];

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn operators_look_at_the_fleet_mend_it_and_drain_it() {
    let mut fleet = Fleet::start().await;
    look(&fleet).await;
    bury_and_revive(fleet.here(), &fleet.services).await;
    let client = fleet.here();
    let report = read(client, &["doctor", "--verify-history"]).await;
    assert_eq!(report["well"], true, "{report}");
    assert_eq!((&report["history"]["sessions"], &report["history"]["broken"]), (&json!(1), &json!(0)), "{report}");
    for name in ["database", "archive", "broker", "dead letters", "workers", "leases"] {
        assert!(is_well(&report, name), "{name}: {report}");
    }
    let owned = format!("all {SHARDS} have a live owner");
    assert_says(&told(client, &["doctor"]).await, &["broker", "takes connections", "workers", "2 alive", &owned]);
    drain_one(&mut fleet).await;
    drain_the_other(&mut fleet).await;
}

/// `shards`, `workers` and `health` tell the same of a fleet that is well.
async fn look(fleet: &Fleet) {
    let client = fleet.here();
    let (shards, workers) = (read(client, &["shards"]).await, read(client, &["workers"]).await);
    let (shards, workers) = (shards.as_array().expect("a list"), workers.as_array().expect("a list"));
    let known: BTreeSet<&str> = workers.iter().filter_map(|worker| worker["worker_id"].as_str()).collect();
    let ours: BTreeSet<&str> = fleet.workers.iter().map(|worker| worker.id()).collect();
    assert_eq!(known, ours, "{workers:?}");
    assert_eq!(shards.len(), usize::from(SHARDS));
    for (number, shard) in shards.iter().enumerate() {
        assert_eq!((&shard["shard"], &shard["backlog"]), (&json!(number), &json!(0)), "{shard}");
        assert!(shard["epoch"].as_i64() > Some(0) && shard["lease_ms_left"].as_i64() > Some(0), "{shard}");
        let owner = workers.iter().find(|worker| worker["worker_id"] == shard["owner"]).expect("a worker");
        assert!(owner["shards"].as_array().is_some_and(|owned| owned.contains(&json!(number))), "{owner}, {shard}");
    }
    for worker in workers {
        assert_eq!(worker["roles"], json!(["runner", "executor", "archivist"]), "{worker}");
        assert_eq!((&worker["draining"], worker["version"].is_string()), (&json!(false), true), "{worker}");
        assert!(worker["heartbeat_age_ms"].is_i64() && worker["host"].is_string(), "{worker}");
    }
    let owner = shards[0]["owner"].as_str().expect("an owner");
    assert_says(&told(client, &["shards"]).await, &["owner", "epoch", "backlog", "journal rows", owner]);
    let ids: Vec<&str> = known.into_iter().collect();
    assert_says(&told(client, &["workers"]).await, &["draining", "runner,executor,archivist", ids[0], ids[1]]);

    let health = read(client, &["health"]).await;
    assert_eq!((&health["status"], &health["mode"]), (&json!("ok"), &json!("fleet")), "{health}");
    assert_eq!((&health["shards"], &health["shards_owned"]), (&json!(SHARDS), &json!(SHARDS)), "{health}");
    let parts = health["components"].as_array().expect("components");
    let names: Vec<&str> = parts.iter().filter_map(|part| part["name"].as_str()).collect();
    assert_eq!(names, ["store", "archive", "queue"], "{health}");
    assert!(parts.iter().all(|part| part["ok"] == true), "{health}");
    let owned = format!("{SHARDS} of {SHARDS} owned");
    assert_says(&told(client, &["health"]).await, &["store", "archive", "queue", "takes actions", "fleet", &owned]);
}

/// Puts messages on the queue for actions of other programs, as such a program does.
pub(super) fn enqueue<'b>(services: &Services, bodies: impl IntoIterator<Item = &'b str>) {
    enqueue_on(services, "stepfleet.ingress", bodies);
}

/// The same with any queue.
pub(super) fn enqueue_on<'b>(services: &Services, queue: &str, bodies: impl IntoIterator<Item = &'b str>) {
    let mut program = Command::new("/usr/bin/python3");
    program.args(["-c", ENQUEUE, services.amqp.as_str(), queue]).args(bodies);
    let ran = program.output().expect("python3 is installed");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Messages that cannot be taken are shown, sent again once they can be, and thrown away.
async fn bury_and_revive(client: &Harness, services: &Services) {
    let early = EARLY.map(|text| {
        // Without an id: sent again it is another action, not one that was refused.
        json!({ "type": "input", "session_id": "late", "payload": { "text": text } }).to_string()
    });
    enqueue(services, RUBBISH.into_iter().chain(early.iter().map(String::as_str)));
    let letters = wait("all are dead letters", || async {
        let letters = read(client, &["dead", "list"]).await.as_array().cloned().expect("a list");
        (letters.len() == RUBBISH.len() + early.len()).then_some(letters)
    })
    .await;
    let id = |body: &str| {
        let letter = letters.iter().find(|letter| letter["body"] == body).expect("a letter");
        letter["id"].as_str().expect("an id").to_owned()
    };
    let (rubbish, early) = (RUBBISH.map(id), [id(&early[0]), id(&early[1])]);
    assert_says(&told(client, &["dead", "list"]).await, &["stepfleet.ingress", &rubbish[0], &early[1]]);
    for (id, reason) in [(&rubbish[0], "invalid_json"), (&early[0], "session_not_found")] {
        let letter = read(client, &["dead", "show", id]).await;
        assert_eq!((&letter["id"], &letter["origin"]), (&json!(id), &json!("stepfleet.ingress")), "{letter}");
        assert!(letter["reason"].as_str().is_some_and(|text| text.contains(reason)), "{letter}");
        let body = letter["body"].as_str().expect("a body");
        assert!(letter["died_at"] != "" && letter["bytes"] == body.len(), "{letter}");
        assert_says(&told(client, &["dead", "show", id]).await, &[id, "stepfleet.ingress", reason, body]);
    }

    client.create("late", json!({ "moniker": "echo" })).await;
    client.wait_status("late", "running").await;
    assert_eq!(read(client, &["dead", "redrive", &early[0]]).await, json!({ "id": &early[0], "done": "redriven" }));
    assert_says(&told(client, &["dead", "redrive", &early[1]]).await, &[&early[1], "redrive"]);
    let steps = client.wait_steps("late", EARLY.len()).await;
    let texts: BTreeSet<&str> = steps.iter().filter_map(|step| step["text"].as_str()).collect();
    assert_eq!((texts, steps.len()), (BTreeSet::from(EARLY), EARLY.len()), "each was taken once");
    assert_eq!(read(client, &["dead", "drop", &rubbish[0]]).await, json!({ "id": &rubbish[0], "done": "dropped" }));
    assert_says(&told(client, &["dead", "drop", &rubbish[1]]).await, &[&rubbish[1], "drop"]);
    assert_eq!(read(client, &["dead", "list"]).await, json!([]));
    let (ok, _, err) = client.cli(&["dead", "show", &rubbish[0]]).await;
    assert!(!ok && err.contains("no dead letter"), "{err}");
}

/// The worker with the most shards hands them over and ends; the fleet goes on.
async fn drain_one(fleet: &mut Fleet) {
    let workers = read(fleet.here(), &["workers"]).await;
    let workers = workers.as_array().expect("a list");
    let shards = |worker: &Value| worker["shards"].as_array().map_or(0, Vec::len);
    let busiest = workers.iter().max_by_key(|worker| shards(worker)).expect("a worker");
    let id = busiest["worker_id"].as_str().expect("an id");
    assert!(shards(busiest) > 0, "{workers:?}");
    assert_eq!(read(fleet.here(), &["drain", id]).await, json!({ "worker_id": id, "draining": true }));
    let place = fleet.workers.iter().position(|worker| worker.id() == id).expect("a worker of ours");
    let mut drained = fleet.workers.remove(place);
    let status = drained.ended().await;
    assert_eq!(status.code(), Some(0), "{} ended with {status}", drained.name);
    fleet.settled().await;
    let left = read(fleet.here(), &["workers"]).await;
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(left[0]["worker_id"], fleet.workers[0].id(), "{left}");
    assert_eq!(left[0]["shards"].as_array().map(Vec::len), Some(usize::from(SHARDS)), "{left}");
    fleet.here().tell("late", "input", json!({ "text": "on time" })).await;
    let steps = fleet.here().wait_steps("late", EARLY.len() + 1).await;
    assert_eq!(steps[EARLY.len()]["text"], "on time");
}

/// Without any worker, commands that look at the fleet say what is wrong, and fail.
async fn drain_the_other(fleet: &mut Fleet) {
    let mut drained = fleet.workers.remove(0);
    let client = fleet.here();
    assert_says(&told(client, &["drain", drained.id()]).await, &[drained.id(), "draining", "yes"]);
    let status = drained.ended().await;
    assert_eq!(status.code(), Some(0), "{} ended with {status}", drained.name);
    assert_eq!(read(client, &["workers"]).await, json!([]));
    let shards = read(client, &["shards"]).await;
    let is_free = |shard: &Value| shard["owner"].is_null();
    assert!(shards.as_array().is_some_and(|shards| shards.iter().all(is_free)), "{shards}");
    wait("health is degraded", || async {
        let (ok, out, err) = client.cli(&["health", "--json"]).await;
        let health: Value = serde_json::from_str(&out).expect("JSON");
        (!ok && err.contains("degraded") && health["shards_owned"] == 0).then_some(())
    })
    .await;
    let (ok, out, err) = client.cli(&["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert!(!ok && report["well"] == false, "{out}{err}");
    assert!(!is_well(&report, "workers") && !is_well(&report, "leases") && is_well(&report, "broker"), "{out}");
    let (ok, out, err) = client.cli(&["doctor"]).await;
    assert!(!ok && out.contains("start one with") && err.contains("something is wrong"), "{out}{err}");
    let (ok, _, err) = client.cli(&["drain", drained.id()]).await;
    assert!(!ok && err.contains("no worker"), "{err}");
}

/// What the doctor says of a part; it must have looked at it.
fn is_well(report: &Value, name: &str) -> bool {
    let checks = report["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}"));
    check["well"] == true
}
