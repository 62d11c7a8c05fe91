//! Contract of `Queue`, `Deliveries` and `DeadLetters`. What only a broker does is asked of brokers
//! only: it outlives its consumers, and strangers reach it.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{Content, DeadLetters, Deed, Deliveries, Delivery, Foreign, Queue, Sweep, Swept, Told};
use schemas::action::{Action, ActionType, Lane, Urgency};
use schemas::id::{ActionId, AgentId, Namespace, SessionId, Shard};
use schemas::json::Json;
use schemas::topology::{QUEUE_INGRESS, shard_queue};

/// Shards that the queue under test must have. Each part of the suite uses its own.
pub const SHARDS: u16 = 16;

/// Longest wait for anything that must come.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing must come.
const SILENCE: Duration = Duration::from_millis(200);

/// The queue under test, empty.
pub struct Carrier {
    pub queue: Arc<dyn Queue>,
    pub dead: Arc<dyn DeadLetters>,
    /// Absent within one process.
    pub stranger: Option<Arc<dyn Stranger>>,
}

/// A client that is not of the fleet.
#[async_trait]
pub trait Stranger: Send + Sync {
    /// Returns once the queue has it.
    async fn put(&self, queue: &str, body: &[u8]);
}

pub async fn suite(carrier: &Carrier) {
    carries_in_order(carrier).await;
    lanes_and_shards_are_apart(carrier).await;
    waiting_can_be_given_up(carrier).await;
    a_new_consumer_replaces_the_old(carrier).await;
    match &carrier.stranger {
        None => within_one_process(carrier).await,
        Some(stranger) => {
            takes_what_nobody_consumes(carrier).await;
            gives_back_in_order(carrier).await;
            acks_out_of_order(carrier).await;
            buries_and_digs_up(carrier).await;
            sweeps_the_dead(carrier).await;
            strangers_are_told_apart(carrier, &**stranger).await;
        }
    }
}

/// An input of some session, the n-th of its lane.
pub fn input(shard: u16, n: u64) -> Action {
    Action {
        namespace: Namespace::default_ns(),
        action_id: ActionId::parse(&format!("a-{shard}-{n}")).expect("an id"),
        kind: ActionType::Input,
        session_id: SessionId::parse(&format!("s-{shard}")).expect("an id"),
        agent_id: AgentId::parse("agent").expect("an id"),
        conversation_id: None,
        shard: Shard(shard),
        session_seq: n,
        urgency: Urgency::High,
        actor: "tester".into(),
        payload: Json::of(&serde_json::json!({ "text": format!("Größe {n}: \"…\"\n") })),
        metadata: Json::of(&serde_json::json!({ "n": n })),
        accepted_at_ms: 1_700_000_000_000 + n as i64,
        opens: None,
    }
}

/// Waits, but not for ever.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} takes longer than {PATIENCE:?}"),
    }
}

async fn consume(carrier: &Carrier, shard: u16) -> Box<dyn Deliveries> {
    soon("consuming", carrier.queue.consume(Shard(shard), Lane::Work)).await.expect("a consumer")
}

async fn next(deliveries: &mut Box<dyn Deliveries>) -> Delivery {
    soon("a delivery", deliveries.next()).await.expect("the channel is open")
}

/// The next delivery, acknowledged.
async fn take(deliveries: &mut Box<dyn Deliveries>) -> Content {
    let delivery = next(deliveries).await;
    deliveries.ack(delivery.tag).await.expect("the channel is open");
    delivery.content
}

async fn silence(deliveries: &mut Box<dyn Deliveries>) {
    let come = tokio::time::timeout(SILENCE, deliveries.next()).await;
    assert!(come.is_err(), "nothing more should come, not {come:?}");
}

fn seq(content: &Content) -> u64 {
    match content {
        Content::Action(action) => action.session_seq,
        Content::Foreign(foreign) => panic!("nobody else published {foreign:?}"),
    }
}

/// What a stranger puts, as it arrives.
fn foreign(body: &[u8]) -> Content {
    Content::Foreign(Foreign { body: body.to_vec(), message_id: None })
}

async fn carries_in_order(carrier: &Carrier) {
    let mut deliveries = consume(carrier, 0).await;
    let actions: Vec<Action> = (1..=300).map(|n| input(0, n)).collect();
    for batch in actions.chunks(100) {
        soon("a publish", carrier.queue.publish(batch)).await.expect("published");
    }
    for action in actions {
        assert_eq!(take(&mut deliveries).await, Content::Action(action));
    }
    silence(&mut deliveries).await;
    carrier.queue.publish(&[]).await.expect("nothing to publish is no failure");
    carrier.queue.ping().await.expect("publishing works");
}

async fn lanes_and_shards_are_apart(carrier: &Carrier) {
    let (mut one, mut two) = (consume(carrier, 1).await, consume(carrier, 2).await);
    let control = soon("consuming", carrier.queue.consume(Shard(1), Lane::Control)).await;
    let mut control = control.expect("a consumer");
    let pause = Action { kind: ActionType::Pause, ..input(1, 1) };
    carrier.queue.publish(&[input(1, 1), pause.clone(), input(2, 1)]).await.expect("published");
    assert_eq!(take(&mut control).await, Content::Action(pause));
    assert_eq!(take(&mut one).await, Content::Action(input(1, 1)));
    assert_eq!(take(&mut two).await, Content::Action(input(2, 1)));
    silence(&mut one).await;
    silence(&mut control).await;
}

async fn waiting_can_be_given_up(carrier: &Carrier) {
    let mut deliveries = consume(carrier, 3).await;
    for n in 1..=20 {
        let waited = tokio::time::timeout(Duration::from_millis(1), deliveries.next()).await;
        assert!(waited.is_err(), "nothing was published");
        carrier.queue.publish(&[input(3, n)]).await.expect("published");
        assert_eq!(seq(&take(&mut deliveries).await), n);
    }
}

async fn a_new_consumer_replaces_the_old(carrier: &Carrier) {
    let mut old = consume(carrier, 4).await;
    carrier.queue.publish(&[input(4, 1)]).await.expect("published");
    assert_eq!(seq(&take(&mut old).await), 1);
    let mut new = consume(carrier, 4).await;
    assert!(soon("the end of the old one", old.next()).await.is_none());
    carrier.queue.publish(&[input(4, 2)]).await.expect("published");
    assert_eq!(seq(&take(&mut new).await), 2);
    // The old one's drop does no harm to the new one.
    drop(old);
    carrier.queue.publish(&[input(4, 3)]).await.expect("published");
    assert_eq!(seq(&take(&mut new).await), 3);
}

async fn within_one_process(carrier: &Carrier) {
    let mut ingress = carrier.queue.consume_ingress().await.expect("a consumer");
    silence(&mut ingress).await;
    assert_eq!(carrier.dead.list(10).await, Ok(Vec::new()));
    assert_eq!(carrier.dead.get("none").await, Ok(None));
    assert_eq!((carrier.dead.redrive("none").await, carrier.dead.discard("none").await), (Ok(false), Ok(false)));
    let all = Sweep { deed: Deed::Discard, reason: None };
    assert_eq!(carrier.dead.sweep(all, Arc::new(|_: Swept| {})).await, Ok(Swept::default()));
    assert!(!carrier.queue.is_durable());
}

async fn takes_what_nobody_consumes(carrier: &Carrier) {
    assert!(carrier.queue.is_durable());
    let many: Vec<Action> = (1..=3_000).map(|n| input(5, n)).collect();
    soon("a large publish", carrier.queue.publish(&many)).await.expect("published");
    let mut deliveries = consume(carrier, 5).await;
    for n in 1..=3_000 {
        assert_eq!(seq(&take(&mut deliveries).await), n);
    }
}

async fn gives_back_in_order(carrier: &Carrier) {
    let all: Vec<Action> = (1..=6).map(|n| input(6, n)).collect();
    carrier.queue.publish(&all).await.expect("published");
    for round in 0..3 {
        let mut deliveries = consume(carrier, 6).await;
        let first = next(&mut deliveries).await;
        assert_eq!(seq(&first.content), 1 + round, "what was not acknowledged comes first");
        for n in 2..=4 {
            assert_eq!(seq(&next(&mut deliveries).await.content), n + round);
            if n + round == 6 {
                break;
            }
        }
        deliveries.ack(first.tag).await.expect("the channel is open");
    }
    let mut deliveries = consume(carrier, 6).await;
    for n in 4..=6 {
        assert_eq!(seq(&take(&mut deliveries).await), n);
    }
    silence(&mut deliveries).await;
}

async fn acks_out_of_order(carrier: &Carrier) {
    let all: Vec<Action> = (1..=200).map(|n| input(7, n)).collect();
    carrier.queue.publish(&all).await.expect("published");
    let mut deliveries = consume(carrier, 7).await;
    let mut tags = Vec::new();
    for n in 1..=200_u64 {
        let delivery = next(&mut deliveries).await;
        assert_eq!(seq(&delivery.content), n);
        tags.push((n, delivery.tag));
    }
    // The last first, and every seventh not at all.
    for (_, tag) in tags.iter().rev().filter(|(n, _)| n % 7 != 0) {
        deliveries.ack(*tag).await.expect("the channel is open");
    }
    drop(deliveries);
    let mut deliveries = consume(carrier, 7).await;
    // What was not acknowledged comes, in order; an acknowledgement may be lost with its channel, and
    // then that one comes again in its place.
    let mut last = 0;
    for n in (7..=200).step_by(7) {
        while last < n {
            let seq = seq(&take(&mut deliveries).await);
            assert!(last < seq && seq <= n, "{seq} comes after {last} and before {n}");
            last = seq;
        }
    }
}

async fn buries_and_digs_up(carrier: &Carrier) {
    let mut deliveries = consume(carrier, 8).await;
    carrier.queue.publish(&[input(8, 1), input(8, 2), input(8, 3)]).await.expect("published");
    for reason in ["first reason", "second reason"] {
        let delivery = next(&mut deliveries).await;
        soon("a burial", deliveries.bury(delivery.tag, reason)).await.expect("buried");
    }
    // What follows is not held up.
    assert_eq!(seq(&take(&mut deliveries).await), 3);
    let letters = soon("a look", carrier.dead.list(10)).await.expect("a look");
    let told: Vec<_> = letters.iter().map(|letter| (letter.reason.as_str(), letter.origin.clone())).collect();
    let origin = shard_queue(Shard(8), Lane::Work);
    assert_eq!(told, [("first reason", origin.clone()), ("second reason", origin)]);
    let body: Action = serde_json::from_slice(&letters[0].body).expect("an action");
    assert_eq!(body, input(8, 1));
    assert_eq!(carrier.dead.list(10).await.as_ref(), Ok(&letters), "looking changes nothing");
    assert_eq!(carrier.dead.list(1).await.map(|some| some.len()), Ok(1));
    assert_eq!(carrier.dead.get(&letters[1].id).await.as_ref(), Ok(&Some(letters[1].clone())));
    assert_eq!(carrier.dead.redrive(&letters[0].id).await, Ok(true));
    assert_eq!(take(&mut deliveries).await, Content::Action(input(8, 1)));
    assert_eq!(carrier.dead.redrive(&letters[0].id).await, Ok(false), "it is there no longer");
    assert_eq!(carrier.dead.discard(&letters[1].id).await, Ok(true));
    assert_eq!(carrier.dead.discard(&letters[1].id).await, Ok(false));
    assert_eq!(carrier.dead.list(10).await, Ok(Vec::new()));
    silence(&mut deliveries).await;
}

async fn sweeps_the_dead(carrier: &Carrier) {
    let mut deliveries = consume(carrier, 10).await;
    let all: Vec<Action> = (1..=5).map(|n| input(10, n)).collect();
    carrier.queue.publish(&all).await.expect("published");
    for reason in ["odd one", "even one", "odd one", "even one", "odd one"] {
        let delivery = next(&mut deliveries).await;
        soon("a burial", deliveries.bury(delivery.tag, reason)).await.expect("buried");
    }
    let heard = Arc::new(Mutex::new(Swept::default()));
    let hears = heard.clone();
    let told: Told = Arc::new(move |swept| *hears.lock().expect("no holder panics") = swept);
    let odd = Sweep { deed: Deed::Redrive, reason: Some("odd".to_owned()) };
    let swept = soon("a sweep", carrier.dead.sweep(odd, told.clone())).await;
    assert_eq!(swept, Ok(Swept { done: 3, kept: 2, stuck: 0 }));
    assert_eq!(Ok(*heard.lock().expect("no holder panics")), swept, "it was told");
    for n in [1, 3, 5] {
        assert_eq!(take(&mut deliveries).await, Content::Action(input(10, n)));
    }
    silence(&mut deliveries).await;
    let all = Sweep { deed: Deed::Discard, reason: None };
    assert_eq!(soon("a sweep", carrier.dead.sweep(all, told)).await, Ok(Swept { done: 2, ..Swept::default() }));
    assert_eq!(carrier.dead.list(10).await, Ok(Vec::new()));
    silence(&mut deliveries).await;
}

async fn strangers_are_told_apart(carrier: &Carrier, stranger: &dyn Stranger) {
    let own = serde_json::to_vec(&input(9, 1)).expect("JSON");
    let mut ingress = soon("consuming", carrier.queue.consume_ingress()).await.expect("a consumer");
    for body in [&b"no JSON at all \xff\x00"[..], b"", &own] {
        soon("a put", stranger.put(QUEUE_INGRESS, body)).await;
        assert_eq!(take(&mut ingress).await, foreign(body));
    }
    // Straight on a shard's queue it is as foreign, and holds nothing up.
    let mut deliveries = consume(carrier, 9).await;
    soon("a put", stranger.put(&shard_queue(Shard(9), Lane::Work), &own)).await;
    carrier.queue.publish(&[input(9, 2)]).await.expect("published");
    let stray = next(&mut deliveries).await;
    assert_eq!(stray.content, foreign(&own));
    soon("a burial", deliveries.bury(stray.tag, "not from here")).await.expect("buried");
    assert_eq!(seq(&take(&mut deliveries).await), 2);
    let letters = carrier.dead.list(10).await.expect("a look");
    assert_eq!(letters.iter().map(|letter| &letter.body).collect::<Vec<_>>(), [&own]);
    // Sent back, it is as foreign as before.
    assert_eq!(carrier.dead.redrive(&letters[0].id).await, Ok(true));
    assert_eq!(take(&mut deliveries).await, foreign(&own));
}
