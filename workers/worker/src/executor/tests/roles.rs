//! The role: how soon work begins, how much runs at a time, and how it ends.

use super::*;

#[tokio::test(start_paused = true)]
async fn work_begins_at_a_nudge_and_soon_without_one() {
    let place = Place::new(Tools::that_say(vec![Say { after_ms: 0, outcome: Ok(json!(1)) }])).await;
    let nudge = Nudge::default();
    let executor = Executor::start(place.deps(place.ports.operations.clone()), config("e1"), nudge.clone());
    sleep(Duration::from_millis(1_050)).await;
    place.dispatch(vec![task("o1", EffectClass::Pure)]).await;
    let begun = Instant::now();
    nudge.tell();
    sleep(Duration::from_millis(2)).await;
    assert_eq!(place.ports.work_state("o1").await, OperationState::Completed, "after {:?}", begun.elapsed());
    place.dispatch(vec![task("o2", EffectClass::Pure)]).await;
    sleep(Duration::from_millis(schemas::limits::OPERATION_POLL_MS + 2)).await;
    assert_eq!(place.ports.work_state("o2").await, OperationState::Completed);
    executor.drain().await;
}

#[tokio::test(start_paused = true)]
async fn only_so_many_run_at_a_time_and_all_get_their_turn() {
    let place = Place::new(Tools::that_say(vec![Say { after_ms: 500, outcome: Ok(json!(1)) }])).await;
    let all: Vec<String> = (0..50).map(|n| format!("o{n:02}")).collect();
    place.dispatch(all.iter().map(|id| task(id, EffectClass::Pure)).collect()).await;
    let config = ExecutorConfig { running_max: 7, ..config("e1") };
    let executor = Executor::start(place.deps(place.ports.operations.clone()), config, Nudge::default());
    let begun = Instant::now();
    for id in &all {
        place.until_ended(id).await;
    }
    assert_eq!(place.tools.with(|world| world.running_most), 7);
    let took = begun.elapsed().as_millis();
    assert!((4_000..6_000).contains(&took), "eight rounds of half a second, {took} ms");
    executor.drain().await;
    assert_eq!(place.results().await, 50);
}

#[tokio::test(start_paused = true)]
async fn two_executors_share_the_work() {
    let place = Place::new(Tools::that_say(vec![ok()])).await;
    let all: Vec<String> = (0..40).map(|n| format!("o{n:02}")).collect();
    let executors = [place.executor("e1"), place.executor("e2")];
    place.dispatch(all.iter().map(|id| task(id, EffectClass::AtMostOnce)).collect()).await;
    for id in &all {
        place.until_ended(id).await;
        assert_eq!(place.tools.performed(id), 1, "{id}");
    }
    for executor in executors {
        executor.drain().await;
    }
    assert_eq!(place.results().await, 40);
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_attempts_end_and_claims_nothing_more() {
    let place = Place::new(Tools::that_say(vec![Say { after_ms: 600, outcome: Ok(json!(1)) }])).await;
    place.dispatch(vec![task("o1", EffectClass::AtMostOnce)]).await;
    let executor = place.executor("e1");
    sleep(Duration::from_millis(50)).await;
    place.dispatch(vec![task("o2", EffectClass::AtMostOnce)]).await;
    executor.drain().await;
    assert_eq!(place.ports.work_state("o1").await, OperationState::Completed);
    assert_eq!((place.ports.work_state("o2").await, place.tools.performed("o2")), (OperationState::Pending, 0));
}

#[tokio::test(start_paused = true)]
async fn what_outlasts_a_drain_is_handed_back_where_that_is_safe() {
    let endless = Say { after_ms: 1_000_000, outcome: Ok(json!(1)) };
    let place = Place::new(Tools::that_say(vec![endless, ok()])).await;
    let long = |id, class| Operation { timeout_ms: 3_600_000, ..task(id, class) };
    place.dispatch(vec![long("o-same", EffectClass::Idempotent), long("o-once", EffectClass::AtMostOnce)]).await;
    let executor = place.executor("e1");
    sleep(Duration::from_millis(50)).await;
    let begun = Instant::now();
    executor.drain().await;
    let grace = schemas::limits::DESTROY_GRACE_MS;
    assert!(begun.elapsed().as_millis() as u64 <= grace + 1_000, "{:?}", begun.elapsed());
    assert_eq!(place.ports.work_state("o-same").await, OperationState::Pending);
    assert_eq!(place.ports.work_state("o-once").await, OperationState::Running, "its claim has to end first");
    let second = place.executor("e2");
    assert_eq!(place.until_ended("o-same").await["success"], true);
    second.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_waited_for() {
    let place = Place::new(Tools::that_say(vec![ok()])).await;
    let faults = Faults::none("e1");
    faults.outage(&[testkit::unreliable::Port::Operations], Duration::from_secs(20));
    let executor = place.mortal("e1", &faults);
    place.dispatch(vec![task("o1", EffectClass::Idempotent)]).await;
    let begun = Instant::now();
    assert_eq!(place.until_ended("o1").await["success"], true);
    let took = begun.elapsed().as_secs();
    assert!((19..30).contains(&took), "{took} s");
    executor.drain().await;
}

#[tokio::test(start_paused = true)]
async fn commits_of_the_same_process_tell_of_what_they_dispatch() {
    let place = Place::new(Tools::that_say(vec![Say { after_ms: 0, outcome: Ok(json!(1)) }])).await;
    let nudge = Nudge::default();
    let ports = Ports {
        commits: Arc::new(NudgingCommits::new(place.ports.commits.clone(), nudge.clone())),
        ..place.ports.clone()
    };
    let executor = Executor::start(place.deps(place.ports.operations.clone()), config("e1"), nudge);
    sleep(Duration::from_millis(1_050)).await;
    ports.dispatch(&worker("w1"), "s1", vec![task("o1", EffectClass::Pure)]).await;
    sleep(Duration::from_millis(2)).await;
    assert_eq!(place.ports.work_state("o1").await, OperationState::Completed);
    executor.drain().await;
}

/// A broker that keeps what it is handed, and may be away.
#[derive(Default)]
struct Broker {
    opened: Mutex<Vec<String>>,
    taken: Mutex<Vec<(String, String, u32)>>,
    away: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl TaskQueue for Broker {
    async fn open(&self, pool: &str) -> Result<(), Failure> {
        if self.away.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Failure::unavailable("the broker is away"));
        }
        self.opened.lock().expect("unpoisoned").push(pool.to_owned());
        Ok(())
    }

    async fn send(&self, pool: &str, task: &schemas::api::TaskBody) -> Result<(), Failure> {
        if self.away.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Failure::unavailable("the broker is away"));
        }
        let sent = (pool.to_owned(), task.operation_id.to_string(), task.attempt);
        self.taken.lock().expect("unpoisoned").push(sent);
        Ok(())
    }
}

/// A broker that does not answer.
struct Silent;

#[async_trait]
impl TaskQueue for Silent {
    async fn open(&self, _pool: &str) -> Result<(), Failure> {
        std::future::pending().await
    }

    async fn send(&self, _pool: &str, _task: &schemas::api::TaskBody) -> Result<(), Failure> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_does_not_answer_holds_up_no_drain() {
    let place = Place::new(Tools::default()).await;
    let pool = Relayed { namespace: Namespace::default_ns(), pool: "python".to_owned() };
    let deps = ExecutorDeps { tasks: Some(Arc::new(Silent)), ..place.deps(place.ports.operations.clone()) };
    let config = ExecutorConfig { relayed: vec![pool], ..config("e1") };
    let executor = Executor::start(deps, config, Nudge::default());
    sleep(Duration::from_millis(100)).await;
    tokio::time::timeout(Duration::from_secs(60), executor.drain()).await.expect("an end");
}

/// Longer than so many starts may be lost.
#[tokio::test(start_paused = true)]
async fn a_broker_that_is_away_for_long_uses_up_no_start() {
    let place = Place::new(Tools::default()).await;
    let broker = Arc::new(Broker::default());
    broker.away.store(true, std::sync::atomic::Ordering::Relaxed);
    let pool = Relayed { namespace: Namespace::default_ns(), pool: "python".to_owned() };
    let deps = ExecutorDeps { tasks: Some(broker.clone()), ..place.deps(place.ports.operations.clone()) };
    let config = ExecutorConfig { relayed: vec![pool], ..config("e1") };
    let executor = Executor::start(deps, config, Nudge::default());
    let theirs = Operation { pool: "default:python".to_owned(), ..task("o1", EffectClass::AtMostOnce) };
    place.dispatch(vec![theirs]).await;
    sleep(Duration::from_secs(3 * u64::from(schemas::limits::OPERATION_LOST_MAX))).await;
    let waiting = place.ports.work("o1").await.operation;
    assert_eq!((waiting.lost, waiting.state.is_open()), (0, true), "{waiting:?}");
    assert_eq!(waiting.error.as_deref(), Some("the broker is away"));
    broker.away.store(false, std::sync::atomic::Ordering::Relaxed);
    sleep(Duration::from_millis(1_200)).await;
    let taken = broker.taken.lock().expect("unpoisoned").clone();
    assert_eq!(taken, [("python".to_owned(), "o1".to_owned(), 1)], "its first start");
    assert_eq!(*broker.opened.lock().expect("unpoisoned"), ["python"], "once, when it can be");
    executor.drain().await;
}

#[tokio::test(start_paused = true)]
async fn tasks_of_relayed_pools_go_to_the_broker_and_come_again_where_that_is_safe() {
    let place = Place::new(Tools::default()).await;
    let broker = Arc::new(Broker::default());
    broker.away.store(true, std::sync::atomic::Ordering::Relaxed);
    let pool = Relayed { namespace: Namespace::default_ns(), pool: "python".to_owned() };
    let deps = ExecutorDeps { tasks: Some(broker.clone()), ..place.deps(place.ports.operations.clone()) };
    let config = ExecutorConfig { relayed: vec![pool], ..config("e1") };
    let executor = Executor::start(deps, config, Nudge::default());
    let theirs = |id, class| Operation { pool: "default:python".to_owned(), ..task(id, class) };
    place.dispatch(vec![theirs("o-same", EffectClass::Idempotent), theirs("o-once", EffectClass::AtMostOnce)]).await;
    sleep(Duration::from_millis(500)).await;
    broker.away.store(false, std::sync::atomic::Ordering::Relaxed);
    sleep(Duration::from_millis(1_200)).await;
    let taken = || broker.taken.lock().expect("unpoisoned").clone();
    let mut ids: Vec<String> = taken().into_iter().map(|(pool, id, _)| format!("{pool}/{id}")).collect();
    ids.sort();
    assert_eq!(ids, ["python/o-once", "python/o-same"]);
    // Nobody ends them before their claims do.
    sleep(Duration::from_millis(2_000)).await;
    let again: Vec<String> = taken().into_iter().skip(2).map(|(_, id, _)| id).collect();
    assert_eq!(again.first().map(String::as_str), Some("o-same"));
    assert!(!again.contains(&"o-once".to_owned()), "{again:?}");
    let told = place.until_ended("o-once").await;
    assert!(told["error"]["message"].as_str().unwrap().contains("in doubt"), "{told}");
    executor.drain().await;
}
