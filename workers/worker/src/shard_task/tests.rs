//! What others put on a shard's queue, while the broker takes no messages.

use domain::ports::{DeadLetter, DeadLetters};
use schemas::action::ActionType;
use schemas::id::Shard;
use schemas::topology::shard_queue;
use serde_json::{Value, json};
use testkit::contract::build::{key, worker};
use testkit::fake::{FaultyQueue, MemStore, SimClock};
use tokio::time::sleep;

use super::*;
use crate::fakes;
use crate::runner::{Runner, RunnerConfig, RunnerDeps};

const S: fn(u64) -> Duration = Duration::from_secs;

fn runner(store: &MemStore, queue: &FaultyQueue, clock: &SimClock) -> Runner {
    let calm = fakes::deps(store, fakes::effects(clock), clock);
    let deps = RunnerDeps { queue: Arc::new(queue.clone()), ..calm };
    Runner::start(deps, RunnerConfig::new(worker("w1"), "here", "0"))
}

fn input(session: &str) -> Value {
    json!({"type": "input", "session_id": session, "payload": {"text": "hi"}})
}

async fn letters(queue: &FaultyQueue) -> Vec<DeadLetter> {
    queue.list(10).await.expect("the broker can be looked at")
}

#[tokio::test(start_paused = true)]
async fn an_alarm_of_the_broker_repeats_nothing_and_holds_nothing_up() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    let queue = FaultyQueue::reliable();
    let lane = shard_queue(Shard(0), Lane::Work);
    let put = |body: &Value| queue.put(&lane, body.to_string().into_bytes());
    let runner = runner(&store, &queue, &clock);
    put(&json!({"type": "create", "session_id": "s1", "payload": {"moniker": "echo"}}));
    sleep(S(5)).await;
    let before = queue.acknowledged(&lane);
    queue.alarm(S(30));
    // One makes no sense, one is refused by the ledger, and two have no name that would tell a repeat.
    queue.put(&lane, b"rubbish".to_vec());
    put(&input("none"));
    put(&input("s1"));
    sleep(S(10)).await;
    put(&input("s1"));
    sleep(S(10)).await;
    assert_eq!(queue.acknowledged(&lane) - before, 2, "what was accepted is off the queue");
    assert!(letters(&queue).await.is_empty());
    sleep(S(20)).await;
    let reasons: Vec<String> = letters(&queue).await.into_iter().map(|letter| letter.reason).collect();
    let codes: Vec<&str> = reasons.iter().filter_map(|reason| reason.split(':').next()).collect();
    assert_eq!(codes, ["invalid_json", "session_not_found"]);
    let inputs = store.all_actions().into_iter().filter(|one| one.kind == ActionType::Input).count();
    assert_eq!((inputs, store.steps_of(&key("s1"))), (3, Some(2)), "each once, the refused one included");
    runner.drain().await;
}
