//! How sessions leave: with a shard that is given back or lost, and memory while nothing happens.

use domain::commit::{Commit, CommitResult};
use domain::effect::{EffectState, effect_key};
use domain::failure::Failure;
use domain::ports::{Commits, Leases};
use schemas::id::{Shard, WorkerId};
use schemas::limits::{DESTROY_GRACE_MS, IDLE_EVICT_MS, LEASE_MS};
use schemas::session::{Head, StopReason};
use testkit::fake::ScriptedEffects;
use testkit::fake::effects::Scripted;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::*;
use crate::runner::RunnerDeps;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A step function that takes as long as the state says, and is done with its second step.
fn step_function(clock: &SimClock) -> ScriptedEffects {
    let script = |call: &EffectCall, _earlier: usize| {
        let Effect::HttpPost { body, .. } = &call.effect else { panic!("asked for {:?}", call.effect) };
        let delay_ms = body["state"]["delay_ms"].as_u64().expect("how long it takes");
        let n = body["state"]["n"].as_u64().unwrap_or(0) + 1;
        let state = json!({"delay_ms": delay_ms, "n": n});
        let answer = json!({"step": body["step"], "next_step": format!("s/{n}"), "state": state, "done": n >= 2});
        Scripted { delay: MS(delay_ms), outcome: Outcome::Ok(answer) }
    };
    ScriptedEffects::new(Arc::new(script), clock.clone())
}

/// A session whose steps are calls that must not be repeated.
fn calling(delay_ms: u64) -> Value {
    let config = json!({"url": "http://step.example/", "effect": "at_most_once"});
    json!({"moniker": "http", "config": config, "state": {"delay_ms": delay_ms}})
}

/// A session that takes a step an hour.
fn hourly(max_runtime_s: u64) -> Value {
    json!({"moniker": "count", "loop_interval_ms": 3_600_000, "max_runtime_s": max_runtime_s})
}

async fn until_calls(world: &ScriptedEffects, calls: usize) {
    while world.performed().len() < calls {
        sleep(MS(10)).await;
    }
}

/// A store that answers some commits late: they are durable well before that.
struct LateAnswers {
    store: MemStore,
    is_late: fn(&Commit) -> bool,
    /// Told when such a commit has become durable.
    durable: Notify,
}

const LATE_MS: u64 = 200;

#[async_trait]
impl Commits for LateAnswers {
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure> {
        let is_late = commits.iter().any(self.is_late);
        let results = self.store.commit(owner, commits).await;
        if is_late {
            self.durable.notify_one();
            sleep(MS(LATE_MS)).await;
        }
        results
    }
}

fn late_answers(store: &MemStore, is_late: fn(&Commit) -> bool) -> Arc<LateAnswers> {
    Arc::new(LateAnswers { store: store.clone(), is_late, durable: Notify::new() })
}

/// Drains, and says how long that took.
async fn drain(runner: Runner) -> Duration {
    let begun = Instant::now();
    runner.drain().await;
    begun.elapsed()
}

async fn head(store: &MemStore, session: &str) -> Head {
    store.session(&key(session)).await.expect("a read").expect("a session").head
}

async fn head_at_rest(store: &MemStore, session: &str) -> Head {
    for _ in 0..2_000 {
        let head = head(store, session).await;
        if head.status.is_at_rest() {
            return head;
        }
        sleep(MS(10)).await;
    }
    panic!("{session} goes on");
}

/// What the effects ledger has of the call of a session's step.
fn call_of(store: &MemStore, session: &str, iteration: u64) -> Option<EffectState> {
    store.effect_row(&effect_key(&key(session), iteration, 0)).map(|row| row.state)
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_when_its_shard_is_given_back_ends_within_the_grace() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    let world = step_function(&clock);
    accept(&store, "call", calling(1_500)).await;
    let first = start("w1", &store, Arc::new(world.clone()), &clock);
    until_calls(&world, 1).await;
    let took = drain(first).await;
    assert!((MS(1_400)..MS(2_000)).contains(&took), "{took:?}");
    let left = head(&store, "call").await;
    assert_eq!((left.status, left.steps, &left.last_error), (SessionStatus::Running, 1, &None));
    assert_eq!(call_of(&store, "call", 0), Some(EffectState::Settled));
    // Whoever is next goes on from there.
    let second = start("w2", &store, Arc::new(world.clone()), &clock);
    let ended = head_at_rest(&store, "call").await;
    second.drain().await;
    assert_eq!((ended.status, ended.steps, &ended.last_error), (SessionStatus::Completed, 2, &None));
    assert_eq!(world.performed().iter().map(|call| call.answered).collect::<Vec<_>>(), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlasts_the_grace_is_torn_off_and_in_doubt() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    let world = step_function(&clock);
    accept(&store, "call", calling(60_000)).await;
    let first = start("w1", &store, Arc::new(world.clone()), &clock);
    until_calls(&world, 1).await;
    let took = drain(first).await;
    assert!((MS(DESTROY_GRACE_MS)..MS(DESTROY_GRACE_MS + 500)).contains(&took), "{took:?}");
    assert_eq!((head(&store, "call").await.steps, call_of(&store, "call", 0)), (0, Some(EffectState::Sent)));
    let second = start("w2", &store, Arc::new(world.clone()), &clock);
    let ended = head_at_rest(&store, "call").await;
    second.drain().await;
    let error = ended.last_error.unwrap_or_default();
    assert!(ended.status == SessionStatus::Error && error.starts_with("effect_in_doubt"), "{error:?}");
    assert_eq!(world.performed().len(), 1, "it is not repeated");
}

#[tokio::test(start_paused = true)]
async fn a_call_noted_as_sent_when_its_shard_is_given_back_is_made() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    let world = step_function(&clock);
    let late = late_answers(&store, |commit| commit.effects.iter().any(|row| row.state == EffectState::Sent));
    accept(&store, "call", calling(500)).await;
    let slow = RunnerDeps { commits: late.clone(), ..deps(&store, Arc::new(world.clone()), &clock) };
    let first = Runner::start(slow, config("w1"));
    late.durable.notified().await;
    assert_eq!((world.performed().len(), call_of(&store, "call", 0)), (0, Some(EffectState::Sent)));
    let took = drain(first).await;
    assert!((MS(LATE_MS + 400)..MS(LATE_MS + 1_000)).contains(&took), "{took:?}");
    assert_eq!((head(&store, "call").await.steps, call_of(&store, "call", 0)), (1, Some(EffectState::Settled)));
    let second = start("w2", &store, Arc::new(world.clone()), &clock);
    let ended = head_at_rest(&store, "call").await;
    second.drain().await;
    assert_eq!((ended.status, ended.steps, &ended.last_error), (SessionStatus::Completed, 2, &None));
    assert_eq!(world.performed().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_call_is_noted_as_sent_once_its_shard_is_given_back() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    let world = step_function(&clock);
    let late = late_answers(&store, |commit| !commit.entry.steps.is_empty());
    let mut payload = calling(20);
    payload["loop_interval_ms"] = json!(50);
    accept(&store, "call", payload).await;
    let slow = RunnerDeps { commits: late.clone(), ..deps(&store, Arc::new(world.clone()), &clock) };
    let first = Runner::start(slow, config("w1"));
    late.durable.notified().await;
    // The second step is due, and its call waits for the answer to the commit of the first.
    sleep(MS(LATE_MS / 2)).await;
    let took = drain(first).await;
    assert!(took < MS(LATE_MS), "{took:?}");
    assert_eq!((head(&store, "call").await.steps, call_of(&store, "call", 1)), (1, None));
    let second = start("w2", &store, Arc::new(world.clone()), &clock);
    let ended = head_at_rest(&store, "call").await;
    second.drain().await;
    assert_eq!((ended.status, ended.steps, &ended.last_error), (SessionStatus::Completed, 2, &None));
    assert_eq!(world.performed().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_leave_at_once_when_their_shard_is_given_back() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    accept(&store, "echo", json!({"moniker": "echo"})).await;
    accept(&store, "hourly", hourly(86_400)).await;
    let runner = start("w1", &store, Arc::new(step_function(&clock)), &clock);
    sleep(MS(1_000)).await;
    assert_eq!(runner.live_sessions(), 2);
    let took = drain(runner).await;
    assert!(took < MS(100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_older_than_the_schema_goes_on() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    let owner = async || store.shards().await.expect("an answer")[0].owner.clone();
    let old = start("w1", &store, Arc::new(step_function(&clock)), &clock);
    sleep(MS(500)).await;
    assert_eq!(owner().await, Some(worker("w1")));
    store.migrated_to(99);
    sleep(MS(2 * LEASE_MS)).await;
    assert_eq!(owner().await, Some(worker("w1")), "whoever migrates need not have a new worker at hand");
    old.drain().await;
}

#[tokio::test(start_paused = true)]
async fn no_call_goes_on_once_the_shard_is_known_to_be_lost() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    let world = step_function(&clock);
    accept(&store, "short", calling(500)).await;
    accept(&store, "long", calling(4_000)).await;
    let first = start("w1", &store, Arc::new(world.clone()), &clock);
    until_calls(&world, 2).await;
    let robbed = async {
        // After the renewal at the beginning of the drain: the next thing to meet the fence is a commit.
        sleep(MS(300)).await;
        store.release_all().await.expect("a release");
        store.claim(Shard(0), &worker("w2"), LEASE_MS).await.expect("a claim").expect("it is free");
    };
    let (took, ()) = tokio::join!(drain(first), robbed);
    assert!(took < MS(700), "{took:?}");
    sleep(MS(5_000)).await;
    let mut answered: Vec<_> =
        world.performed().iter().map(|call| (call.call.session.session_id.to_string(), call.answered)).collect();
    answered.sort();
    assert_eq!(answered, [("long".to_owned(), false), ("short".to_owned(), true)]);
    assert_eq!((head(&store, "short").await.steps, head(&store, "long").await.steps), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_timer_is_far_away_leaves_memory_and_comes_back_in_time() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    accept(&store, "hourly", hourly(86_400)).await;
    let runner = start("w1", &store, Arc::new(step_function(&clock)), &clock);
    sleep(MS(IDLE_EVICT_MS - 1_000)).await;
    assert_eq!((runner.live_sessions(), store.steps_of(&key("hourly"))), (1, Some(1)));
    sleep(MS(2_000)).await;
    assert_eq!(runner.live_sessions(), 0);
    sleep(MS(3_600_000)).await;
    assert_eq!(store.steps_of(&key("hourly")), Some(2));
    runner.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_in_memory_ends_with_its_runtime() {
    let clock = SimClock::new();
    let store = MemStore::new(1, Arc::new(clock.clone()));
    accept(&store, "hourly", hourly(60)).await;
    let runner = start("w1", &store, Arc::new(step_function(&clock)), &clock);
    sleep(MS(59_000)).await;
    assert_eq!((runner.live_sessions(), head(&store, "hourly").await.status), (0, SessionStatus::Running));
    sleep(MS(1_500)).await;
    let ended = head(&store, "hourly").await;
    assert_eq!((ended.status, ended.stop_reason), (SessionStatus::Stopped, Some(StopReason::MaxRuntime)));
    assert_eq!(ended.steps, 1);
    runner.drain().await;
}
