//! Acceptance scenarios of the specification on a fleet of processes, each a test named by its id.

use serde_json::json;

use super::{Fleet, SHARDS, WORKERS};
use crate::harness::assert_chain;
use crate::scenario::control::{s01, s45_after, s45_before};
use crate::scenario::fleet::s48;
use crate::{cli, outside};

/// That run while workers come and go.
const SESSIONS: [&str; 3] = ["s47-1", "s47-2", "s47-3"];
/// More of them, and a session goes on.
const STEPS: usize = 10;

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn s01_create_runs_within_two_seconds_and_steps_count_up() {
    let fleet = Fleet::start().await;
    s01(fleet.here()).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn s45_a_restart_revives_what_was_live_and_nothing_else() {
    let mut fleet = Fleet::start().await;
    let before = s45_before(fleet.here()).await;
    fleet.down().await;
    fleet.up().await;
    s45_after(fleet.there(), &before).await;
}

/// One shard: whoever does not have it waits for the end of whoever has.
#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn s47_of_more_workers_than_shards_the_others_take_over_without_a_gap() {
    let mut fleet = Fleet::start_on(1).await;
    for session in SESSIONS {
        fleet.here().create(session, json!({ "moniker": "count", "loop_interval_ms": 20 })).await;
    }
    go_on(&fleet).await;

    let place = holder(&fleet).await;
    let mut leaving = fleet.workers.remove(place);
    let status = leaving.stop().await;
    assert!(status.success(), "{} ended with {status} after SIGTERM", leaving.name);
    go_on(&fleet).await;
    fleet.settled().await;

    fleet.hire().await;
    let place = holder(&fleet).await;
    let mut killed = fleet.workers.remove(place);
    let idle = fleet.workers[0].log();
    let errors: Vec<&str> = idle.lines().filter(|line| line.contains(r#""level":"ERROR""#)).collect();
    assert!(errors.is_empty(), "who has no shard has nothing to complain of: {errors:?}");
    killed.kill();
    go_on(&fleet).await;
    fleet.settled().await;
    end_without_a_gap(&fleet).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn s48_shards_are_listed_and_an_agents_sessions_are_paused_and_resumed() {
    let fleet = Fleet::start().await;
    s48(fleet.here(), usize::from(SHARDS), WORKERS).await;
}

/// The place of the only shard's owner among the workers; shards are at rest.
async fn holder(fleet: &Fleet) -> usize {
    let owners = fleet.owners().await.expect("the shard has an owner");
    assert_eq!(owners.len(), 1);
    owners[0].0
}

/// Every session makes further steps.
async fn go_on(fleet: &Fleet) {
    for session in SESSIONS {
        let made = fleet.here().steps(session).await.len();
        assert_chain(&fleet.here().wait_steps(session, made + STEPS).await);
    }
}

/// Ends the sessions; everything that they did is in the archive once, as others and the doctor see it.
async fn end_without_a_gap(fleet: &Fleet) {
    let client = fleet.here();
    for session in SESSIONS {
        client.tell(session, "destroy", json!({})).await;
        client.wait_status(session, "stopped").await;
    }
    client.wait_archived().await;
    let committed = outside::committed(client, &SESSIONS).await;
    outside::assert_gapless(&client.data_dir.join("history"), &committed).await;
    let report = cli::read(client, &["doctor", "--verify-history"]).await;
    assert_eq!(report["well"], true, "{report}");
    let steps: u64 = committed.values().sum();
    assert_eq!((&report["history"]["steps"], &report["history"]["broken"]), (&json!(steps), &json!(0)), "{report}");
}
