//! Messages of other programs: what the gateway makes of them.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::{DeadLetter, DeadLetters, Ledger};
use schemas::conversation::{OperationKind, Talk};
use schemas::id::{ActionId, Namespace};
use schemas::limits::ACTION_BYTES_MAX;
use schemas::topology::QUEUE_INGRESS;
use serde_json::{Value, json};
use testkit::dice::Dice;
use testkit::fake::{FaultyQueue, QueueFaults};
use testkit::unreliable::{FaultRates, Faults, Port, Trace, Unreliable};

use super::operations::operation;
use super::turns::turn;
use super::world::World;

fn put(queue: &FaultyQueue, body: &Value) {
    queue.put(QUEUE_INGRESS, body.to_string().into_bytes());
}

fn input(id: &str, session: &str, text: &str) -> Value {
    json!({"type": "input", "action_id": id, "session_id": session, "payload": {"text": text}})
}

async fn letters(world: &World) -> Vec<DeadLetter> {
    world.queue.list(1_000).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_message_is_accepted_and_published_like_a_request() {
    let world = World::new().await;
    put(&world.queue, &json!({"type": "create", "session_id": "s1", "payload": {"moniker": "echo"}}));
    let mut there = input("i1", "s1", "hi");
    there["namespace"] = json!("default");
    put(&world.queue, &there);
    put(&world.queue, &json!({"type": "create", "namespace": "other", "payload": {"moniker": "echo"}}));
    world.until(|| world.queue.published().len() == 3).await;
    let action = world.store.action(&Namespace::default_ns(), &ActionId::parse("i1").unwrap()).await.unwrap().unwrap();
    assert_eq!((action.actor.as_str(), action.session_seq), ("amqp", Some(2)));
    assert_eq!(world.queue.published()[2].namespace.as_str(), "other");
    assert!(letters(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_accepted_is_buried_with_the_reason() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.queue.put(QUEUE_INGRESS, b"\xff not json".to_vec());
    world.queue.put(QUEUE_INGRESS, vec![b' '; ACTION_BYTES_MAX + 1]);
    put(&world.queue, &json!({"type": "explode", "session_id": "s1"}));
    put(&world.queue, &input("i0", "none", "hi"));
    put(&world.queue, &input("i1", "s1", "count takes none"));
    put(&world.queue, &json!({"type": "pause", "session_id": "s1"}));
    world.until(|| world.queue.published().len() == 2).await;
    let reasons: Vec<String> = letters(&world).await.into_iter().map(|letter| letter.reason).collect();
    let codes: Vec<&str> = reasons.iter().filter_map(|reason| reason.split(':').next()).collect();
    assert_eq!(codes, ["invalid_json", "too_large", "unknown_type", "session_not_found", "input_not_taken"]);
    // A refusal that the ledger recorded is buried too: nobody was there to hear it.
    let recorded = ActionId::parse("i0").unwrap();
    assert!(world.store.action(&Namespace::default_ns(), &recorded).await.unwrap().unwrap().processed);
}

/// Both are there at once, so they are one batch.
#[tokio::test(start_paused = true)]
async fn what_only_the_fleet_says_is_refused_behind_its_create_too() {
    let world = World::new().await;
    for (session, moniker) in [("e1", "echo"), ("t1", "converse")] {
        put(&world.queue, &json!({"type": "create", "session_id": session, "payload": {"moniker": moniker}}));
    }
    for session in ["t1", "e1"] {
        let mut called = input(&format!("i-{session}"), session, "hi");
        called["payload"]["caller"] = json!({"type": "user", "user_id": "ben"});
        put(&world.queue, &called);
    }
    world.until(|| world.queue.acknowledged(QUEUE_INGRESS) == 3).await;
    assert_eq!(world.queue.published().len(), 3, "to others it may mean anything");
    let reasons: Vec<String> = letters(&world).await.into_iter().map(|letter| letter.reason).collect();
    assert!(matches!(&reasons[..], [reason] if reason.contains("payload.caller")), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn an_input_about_a_message_that_is_not_there_is_buried() {
    let world = World::new().await;
    put(&world.queue, &json!({"type": "create", "session_id": "t1", "payload": {"moniker": "converse"}}));
    let mut about = input("i1", "t1", "hi");
    about["payload"]["message_id"] = json!("my-1");
    put(&world.queue, &about);
    put(&world.queue, &input("i2", "t1", "hi"));
    world.until(|| world.queue.acknowledged(QUEUE_INGRESS) == 2).await;
    let reasons: Vec<String> = letters(&world).await.into_iter().map(|letter| letter.reason).collect();
    assert!(matches!(&reasons[..], [reason] if reason.contains("payload.message_id")), "{reasons:?}");
}

/// All are there at once, and what an operation will be called can be told in advance.
#[tokio::test(start_paused = true)]
async fn no_result_comes_along_with_the_create_of_its_session() {
    let world = World::new().await;
    put(&world.queue, &json!({"type": "create", "session_id": "t1", "payload": {"moniker": "converse"}}));
    put(&world.queue, &input("i1", "t1", "hi"));
    let yes = json!({"operation_id": "i1.1.0", "result": {"approved": true}});
    put(&world.queue, &json!({"type": "tool_result", "session_id": "t1", "payload": yes}));
    put(&world.queue, &input("i2", "t1", "and then"));
    world.until(|| world.queue.acknowledged(QUEUE_INGRESS) == 3).await;
    let reasons: Vec<String> = letters(&world).await.into_iter().map(|letter| letter.reason).collect();
    assert!(matches!(&reasons[..], [reason] if reason.contains("i1.1.0")), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_again_acts_once() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    for _ in 0..3 {
        put(&world.queue, &input("i1", "s1", "once"));
    }
    put(&world.queue, &input("i1", "s1", "another body under the same id"));
    put(&world.queue, &input("i2", "s1", "then"));
    world.until(|| world.queue.published().len() == 3).await;
    let letters = letters(&world).await;
    assert_eq!(letters.len(), 1);
    assert!(letters[0].reason.starts_with("action_conflict"), "{}", letters[0].reason);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_while_ledger_and_channels_fail() {
    let faults = Faults::new("gateway", Dice::new(7), FaultRates::NONE, Trace::new());
    let queue_faults = QueueFaults { lost_channel: 0.05, prefetch: 7..8, ..QueueFaults::NONE };
    let queue = FaultyQueue::new(Dice::new(8), queue_faults);
    let (for_ledger, for_queue) = (faults.clone(), queue.clone());
    let world = World::with(move |deps| {
        let ledger = Arc::new(Unreliable::new(deps.ledger.clone(), for_ledger));
        crate::Deps { ledger, queue: Arc::new(for_queue), ..deps }
    })
    .await;
    world.create("s1", "a1", "echo").await;
    faults.outage(&[Port::Ledger], Duration::from_secs(20));
    for n in 0..300 {
        put(&queue, &input(&format!("i{n}"), "s1", "hi"));
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.store.all_actions().len(), 1, "the ledger is away");
    tokio::time::sleep(Duration::from_secs(15)).await;
    world.until(|| world.store.all_actions().len() == 301).await;
    assert!(queue.list(10).await.unwrap().is_empty());
}

/// What is acknowledged early is lost with the process that holds it.
#[tokio::test(start_paused = true)]
async fn nothing_is_acknowledged_before_the_ledger_has_it() {
    const MESSAGES: u64 = 10;
    let faults = Faults::new("gateway", Dice::new(9), FaultRates::NONE, Trace::new());
    let for_ledger = faults.clone();
    let world = World::with(move |deps| {
        let ledger = Arc::new(Unreliable::new(deps.ledger.clone(), for_ledger));
        crate::Deps { ledger, ..deps }
    })
    .await;
    world.create("s1", "a1", "echo").await;
    faults.outage(&[Port::Ledger], Duration::from_secs(20));
    for n in 0..MESSAGES {
        put(&world.queue, &input(&format!("i{n}"), "s1", "hi"));
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.store.all_actions().len(), 1, "the ledger is away");
    assert_eq!(world.queue.acknowledged(QUEUE_INGRESS), 0);
    tokio::time::sleep(Duration::from_secs(15)).await;
    world.until(|| world.queue.acknowledged(QUEUE_INGRESS) == MESSAGES).await;
    assert_eq!(world.store.all_actions().len() as u64, 1 + MESSAGES);
}

/// Where nothing can be published, nothing can be buried, and what has no id would be another action each time it
/// came again.
#[tokio::test(start_paused = true)]
async fn an_alarm_of_the_broker_repeats_nothing_and_holds_nothing_up() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    let nameless = json!({"type": "input", "session_id": "s1", "payload": {"text": "hi"}});
    world.queue.alarm(Duration::from_secs(60));
    world.queue.put(QUEUE_INGRESS, b"rubbish".to_vec());
    put(&world.queue, &nameless);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((world.store.all_actions().len(), world.queue.acknowledged(QUEUE_INGRESS)), (2, 1));
    put(&world.queue, &nameless);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((world.store.all_actions().len(), world.queue.acknowledged(QUEUE_INGRESS)), (3, 2));
    assert!(letters(&world).await.is_empty());
    tokio::time::sleep(Duration::from_secs(30)).await;
    let reasons: Vec<String> = letters(&world).await.into_iter().map(|letter| letter.reason).collect();
    assert!(matches!(&reasons[..], [reason] if reason.starts_with("invalid_json")), "{reasons:?}");
    assert_eq!(world.store.all_actions().len(), 3);
}

/// Each look that fails is a line of the log.
#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_no_message_is_looked_at_again() {
    let trace = Trace::new();
    let faults = Faults::new("gateway", Dice::new(9), FaultRates::NONE, trace.clone());
    let for_store = faults.clone();
    let world = World::with(move |deps| {
        let operations = Arc::new(Unreliable::new(deps.operations.clone(), for_store.clone()));
        let ledger = Arc::new(Unreliable::new(deps.ledger.clone(), for_store));
        crate::Deps { operations, ledger, ..deps }
    })
    .await;
    world.create("s1", "a1", "echo").await;
    let looks = || trace.tail(usize::MAX).iter().filter(|line| line.ends_with("operations.operation")).count();
    faults.outage(&[Port::Operations, Port::Ledger], Duration::from_secs(40));
    let result = json!({"operation_id": "o1", "result": 1});
    put(&world.queue, &json!({"type": "tool_result", "session_id": "s1", "payload": result}));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((looks(), world.queue.acknowledged(QUEUE_INGRESS)), (1, 0));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(looks(), 2);
}

/// The ledger would take a result as the answer of the person who was asked; the gateway knows better, and
/// waits until it can look.
#[tokio::test(start_paused = true)]
async fn no_outage_lets_a_message_answer_for_a_person() {
    let faults = Faults::none("gateway");
    let for_operations = faults.clone();
    let world = World::with(move |deps| {
        let operations = Arc::new(Unreliable::new(deps.operations.clone(), for_operations));
        crate::Deps { operations, ..deps }
    })
    .await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let operations = vec![operation("o1", &session, OperationKind::Approval)];
    world.speak(&session, Talk { turns: vec![turn("t1", &session, "m1")], operations, ..Talk::default() }).await;
    faults.outage(&[Port::Operations], Duration::from_secs(10));
    let yes = json!({"type": "tool_result", "action_id": "yes", "payload": {"operation_id": "o1", "result": true}});
    put(&world.queue, &yes);
    put(&world.queue, &input("i1", &session, "hi"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(letters(&world).await.is_empty() && world.queue.acknowledged(QUEUE_INGRESS) == 0, "it cannot be looked at");
    tokio::time::sleep(Duration::from_secs(15)).await;
    let reasons: Vec<String> = letters(&world).await.into_iter().map(|letter| letter.reason).collect();
    assert!(matches!(&reasons[..], [reason] if reason.contains("waits for a person")), "{reasons:?}");
    let found = async |id: &str| {
        world.store.action(&Namespace::default_ns(), &ActionId::parse(id).unwrap()).await.unwrap().is_some()
    };
    assert_eq!((found("yes").await, found("i1").await), (false, true), "and what came after it was taken");
    assert_eq!(world.get("/api/operations/o1").await.json()["state"], "pending");
}
