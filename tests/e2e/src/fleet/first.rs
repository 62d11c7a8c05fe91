//! Any process may start first: it waits for what is not there yet, says so now and then, and goes on by
//! itself.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::json;

use super::gate::Gate;
use super::waits::{BROKER, DATABASE, assert_rare, has_said};
use super::{Fleet, GATEWAYS, SHARDS, WORKERS};
use crate::harness::{assert_chain, wait};
use crate::services;

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn processes_before_their_services_wait_and_become_ready_by_themselves() {
    let mut fleet = Fleet::plan();
    let (mut database, mut broker) = (Gate::reserve(&fleet.services.database), Gate::reserve(&fleet.services.amqp));
    fleet.set(services::DATABASE, &database.url);
    fleet.set(services::AMQP, &broker.url);
    let started = Instant::now();
    fleet.launch();
    // Nobody listens.
    say_they_lack(&fleet, &[DATABASE]).await;
    assert_not_ready(&fleet);
    // The database is there, without a schema.
    database.open();
    let asked = 2 * (GATEWAYS + WORKERS);
    wait("the empty database is asked", || async { (database.passed() >= asked).then_some(()) }).await;
    assert_not_ready(&fleet);
    fleet.migrate(SHARDS).await;
    // Nobody waits for the broker.
    fleet.ready().await;
    say_they_lack(&fleet, &[BROKER]).await;
    let waited = started.elapsed();
    for member in fleet.members() {
        assert_rare(member, waited, &BTreeMap::new());
    }
    broker.open();
    fleet.settled().await;
    fleet.here().create("first", json!({ "moniker": "count", "config": { "until": 3 } })).await;
    fleet.there().wait_status("first", "completed").await;
    let steps = fleet.there().steps("first").await;
    assert_chain(&steps);
    assert_eq!(steps.len(), 3);
}

/// Waits until each process has said which services it lacks.
async fn say_they_lack(fleet: &Fleet, services: &[&str]) {
    wait(&format!("all have said that they lack {services:?}"), || async {
        fleet.members().all(|member| has_said(member, services)).then_some(())
    })
    .await;
}

fn assert_not_ready(fleet: &Fleet) {
    for member in fleet.members() {
        assert!(!member.is_ready(), "{} is ready without a schema", member.name);
    }
}
