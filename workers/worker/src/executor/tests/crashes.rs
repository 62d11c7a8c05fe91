//! Executors that die: before an attempt, within it, after it, and after its end was written. Whatever
//! happens, there is one result, and what must not be repeated is not.

use std::sync::atomic::{AtomicUsize, Ordering};

use schemas::limits::OPERATION_LOST_MAX;
use testkit::crash::{Run, at_every_call};
use testkit::unreliable::CrashPoint;

use super::*;

/// What is the same wherever the process dies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct History {
    state: OperationState,
    results: usize,
    result: Option<String>,
}

/// One operation, an executor that may crash at a point, and another one after it.
fn scenario(class: EffectClass, point: Option<CrashPoint>) -> (Run<History>, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let place = Place::new(Tools::that_say(vec![ok()])).await;
        place.dispatch(vec![task("o1", class)]).await;
        let faults = Faults::none("e1");
        if let Some(point) = point {
            faults.crash_at(point);
        }
        let first = place.mortal("e1", &faults);
        sleep(Duration::from_millis(100)).await;
        let calls = faults.calls();
        first.kill();
        let second = place.executor("e2");
        let result = place.until_ended("o1").await;
        // Nothing more comes of it, however long one waits.
        sleep(Duration::from_secs(30)).await;
        second.drain().await;
        let history = History {
            state: place.ports.work_state("o1").await,
            results: place.results().await,
            result: result.get("result").map(ToString::to_string),
        };
        (Run { calls, history }, place.tools.performed("o1"))
    })
}

#[test]
fn what_may_be_repeated_has_the_same_result_wherever_its_executor_dies() {
    for class in [EffectClass::Pure, EffectClass::Idempotent] {
        let most = AtomicUsize::new(0);
        let tried = at_every_call(1, |point| {
            let (run, performed) = scenario(class, point);
            most.fetch_max(performed, Ordering::Relaxed);
            assert!((1..=2).contains(&performed), "{point:?}: performed {performed} times");
            run
        });
        let tried = tried.expect("one history");
        assert!(tried >= 4, "claim and end, before and after each: {tried}");
        assert_eq!(most.into_inner(), 2, "a crash after the attempt and before its end repeats it");
    }
}

#[test]
fn what_must_not_be_repeated_is_in_doubt_and_has_one_result() {
    let (clean, performed) = scenario(EffectClass::AtMostOnce, None);
    assert_eq!((clean.history.state, clean.history.results, performed), (OperationState::Completed, 1, 1));
    let mut doubts = 0;
    for call in 1..=clean.calls {
        for side in [testkit::unreliable::Side::Before, testkit::unreliable::Side::After] {
            let point = CrashPoint { call, side };
            let (run, performed) = scenario(EffectClass::AtMostOnce, Some(point));
            assert_eq!(run.history.results, 1, "{point:?}");
            assert!(performed <= 1, "{point:?}: performed {performed} times");
            doubts += usize::from(run.history.state == OperationState::Failed);
        }
    }
    assert!(doubts >= 2, "a crash between claim and end leaves it in doubt");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_cut_in_the_middle_is_repeated_or_in_doubt() {
    let slow = Say { after_ms: 800, outcome: Ok(json!(1)) };
    let place = Place::new(Tools::that_say(vec![slow])).await;
    place.dispatch(vec![task("o-same", EffectClass::Idempotent), task("o-once", EffectClass::AtMostOnce)]).await;
    let first = place.executor("e1");
    sleep(Duration::from_millis(300)).await;
    first.kill();
    assert_eq!((place.tools.performed("o-same"), place.tools.performed("o-once")), (1, 1));
    let second = place.executor("e2");
    let same = place.until_ended("o-same").await;
    let once = place.until_ended("o-once").await;
    assert_eq!((same["success"].clone(), place.tools.performed("o-same")), (json!(true), 2));
    assert_eq!(place.tools.performed("o-once"), 1);
    assert!(once["error"]["message"].as_str().unwrap().contains("in doubt"), "{once}");
    assert_eq!(once["error"]["retriable"], false);
    second.drain().await;
}

#[tokio::test(start_paused = true)]
async fn losses_have_a_bound() {
    let slow = Say { after_ms: 900, outcome: Ok(json!(1)) };
    let place = Place::new(Tools::that_say(vec![slow])).await;
    place.dispatch(vec![Operation { max_attempts: 1, ..task("o1", EffectClass::Idempotent) }]).await;
    for n in 0..OPERATION_LOST_MAX + 5 {
        let mortal = place.executor(&format!("e{n}"));
        sleep(Duration::from_millis(500)).await;
        mortal.kill();
        sleep(Duration::from_millis(1_500)).await;
    }
    let result = place.until_ended("o1").await;
    assert!(result["error"]["message"].as_str().unwrap().contains("died"), "{result}");
    assert_eq!(place.tools.performed("o1"), OPERATION_LOST_MAX as usize + 1);
}

#[tokio::test(start_paused = true)]
async fn neither_a_drain_nor_a_death_costs_an_attempt() {
    let endless = Say { after_ms: 1_000_000, outcome: Ok(json!(1)) };
    for drains in [true, false] {
        let say = vec![trouble(true), endless.clone(), endless.clone(), trouble(true)];
        let place = Place::new(Tools::that_say(say)).await;
        place.dispatch(vec![Operation { timeout_ms: 3_600_000, ..task("o1", EffectClass::Idempotent) }]).await;
        for (name, performed) in [("e1", 2), ("e2", 3)] {
            let executor = place.executor(name);
            sleep(Duration::from_millis(2_000)).await;
            assert_eq!(place.tools.performed("o1"), performed, "{name}");
            if drains {
                executor.drain().await;
            } else {
                executor.kill();
            }
        }
        let last = place.executor("e3");
        let result = place.until_ended("o1").await;
        last.drain().await;
        assert_eq!((result["success"].clone(), place.tools.performed("o1")), (json!(false), 5), "drains: {drains}");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("(after 3 attempts)"), "{message}");
        let row = place.ports.work("o1").await.operation;
        assert_eq!((row.attempt, row.lost), (5, 2), "drains: {drains}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_settles_what_a_dead_executor_left() {
    for (probe, performed) in [(Probe::Happened(json!("done")), 1), (Probe::DidNotHappen, 2)] {
        let tools = Tools::that_say(vec![Say { after_ms: 800, outcome: Ok(json!(1)) }]);
        tools.with(|world| world.probe = Some((0, probe.clone())));
        let place = Place::new(tools).await;
        place.dispatch(vec![task("o1", EffectClass::Probeable)]).await;
        let first = place.executor("e1");
        sleep(Duration::from_millis(300)).await;
        first.kill();
        let second = place.executor("e2");
        let result = place.until_ended("o1").await;
        assert_eq!((result["success"].clone(), place.tools.performed("o1")), (json!(true), performed), "{probe:?}");
        second.drain().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_extended_while_its_holder_lives() {
    // Asking takes longer than the claim; the other executor must not take it for dead.
    let tools = Tools::that_say(vec![Say { after_ms: 900, outcome: Ok(json!(1)) }]);
    tools.with(|world| world.probe = Some((10_000, Probe::DidNotHappen)));
    let place = Place::new(tools).await;
    place.dispatch(vec![task("o1", EffectClass::Probeable)]).await;
    let first = place.executor("e1");
    sleep(Duration::from_millis(300)).await;
    first.kill();
    let (second, third) = (place.executor("e2"), place.executor("e3"));
    place.until_ended("o1").await;
    assert_eq!(place.tools.with(|world| world.probes), 1);
    assert_eq!((place.tools.performed("o1"), place.results().await), (2, 1));
    second.drain().await;
    third.drain().await;
}

#[tokio::test(start_paused = true)]
async fn work_of_a_dead_executor_does_not_wait_for_its_timeout() {
    let slow = Say { after_ms: 40_000, outcome: Ok(json!(1)) };
    let place = Place::new(Tools::that_say(vec![slow, ok()])).await;
    place.dispatch(vec![Operation { timeout_ms: 60_000, ..task("o1", EffectClass::Idempotent) }]).await;
    let (first, second) = (place.executor("e1"), place.executor("e2"));
    sleep(Duration::from_millis(20_000)).await;
    assert_eq!(place.tools.performed("o1"), 1, "its claim, far shorter than the work, was extended all the while");
    let begun = Instant::now();
    for executor in [first, second] {
        executor.kill();
    }
    let third = place.executor("e3");
    assert_eq!(place.until_ended("o1").await["success"], true);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!((place.tools.performed("o1"), place.results().await), (2, 1));
    third.drain().await;
}
