//! Failures of the infrastructure that workers of others tell: what is tried again, how often, and what ends.

use domain::ports::{Claim, DeadLetters, Ended, Ending, Hold};
use schemas::definition::RetryPolicy;
use schemas::topology::QUEUE_INGRESS;

use super::*;

/// A task of three attempts, with a wait of a second after the first one.
fn retried(id: &str, effect_class: EffectClass) -> Operation {
    let task = task(id, effect_class);
    let mut request: ActionRequest = task.request.to().unwrap();
    request.retry_on = RetryPolicy::default().retryable_errors;
    Operation { request: Json::of(&request), max_attempts: 3, backoff_ms: 1_000, ..task }
}

fn failed(id: &str, code: &str, more: Value) -> Value {
    let error = json!({"code": code, "message": "upstream is away", "retriable": true});
    let mut body = json!({"operation_id": id, "error": error});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Claims the only task there is; its attempt.
async fn claimed(world: &World) -> Value {
    let reply = world.post_as(ACT, CLAIM, json!({})).await;
    assert_eq!(reply.status, StatusCode::OK, "there is one: {}", reply.text);
    reply.json()["attempt"].clone()
}

/// Tells an end; whether it was new.
async fn tell(world: &World, body: Value) -> bool {
    let reply = world.post_as(ACT, "/api/tool-results", body).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    reply.json()["accepted"].as_bool().unwrap()
}

async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_infrastructure_costs_an_attempt_until_they_are_used_up() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![retried("o1", EffectClass::Idempotent)]).await;
    assert_eq!(claimed(&world).await, 1);
    assert!(tell(&world, failed("o1", "TIMEOUT", json!({"attempt": 1}))).await);
    let row = ports.work("o1").await.operation;
    assert_eq!((row.state, row.attempt, row.lost), (OperationState::Pending, 1, 0));
    assert_eq!((row.claimed_by, row.error.as_deref()), (None, Some("upstream is away")));
    assert_eq!(world.post_as(ACT, CLAIM, json!({})).await.status, StatusCode::NO_CONTENT, "it waits");
    assert!(!tell(&world, failed("o1", "TIMEOUT", json!({}))).await, "the same once more");
    pass(1_000).await;
    assert_eq!(claimed(&world).await, 2, "and costs nothing");
    assert!(!tell(&world, failed("o1", "TIMEOUT", json!({"attempt": 1}))).await, "late, of the first attempt");
    assert_eq!(ports.work_state("o1").await, OperationState::Running, "it stays with its holder");
    assert!(tell(&world, failed("o1", "EXECUTION_FAILED", json!({"session_id": "s1"}))).await);
    pass(1_990).await;
    assert_eq!(world.post_as(ACT, CLAIM, json!({})).await.status, StatusCode::NO_CONTENT, "waits double");
    pass(10).await;
    assert_eq!(claimed(&world).await, 3);
    let action = result_id(&operation_id("o1"));
    assert!(world.store.action(&Namespace::default_ns(), &action).await.unwrap().is_none(), "no end was told");
    assert!(tell(&world, failed("o1", "TIMEOUT", json!({"attempt": 3}))).await);
    assert_eq!(ports.work_state("o1").await, OperationState::Failed);
    let told = world.store.action(&Namespace::default_ns(), &action).await.unwrap().expect("a result");
    assert_eq!(told.payload.to_value()["error"]["code"], "TIMEOUT");
}

/// However late that is: only a start that fails may be the last one there is time for.
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_told_once_more_does_not_end_what_waits() {
    let (world, ports) = talking().await;
    let task = retried("o1", EffectClass::Idempotent);
    dispatch(&ports, vec![Operation { wait_ms: Some(1_500), ..task }]).await;
    assert_eq!(claimed(&world).await, 1);
    let report = || failed("o1", "TIMEOUT", json!({"attempt": 1}));
    assert!(tell(&world, report()).await);
    pass(900).await;
    assert!(!tell(&world, report()).await);
    assert_eq!(ports.work_state("o1").await, OperationState::Pending);
    pass(100).await;
    assert_eq!(claimed(&world).await, 2);
}

/// Of workers with names of their own.
#[tokio::test(start_paused = true)]
async fn a_failure_that_does_not_say_its_attempt_ends_no_later_one() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![retried("o1", EffectClass::Idempotent)]).await;
    let claim = async |worker: &str| {
        let reply = world.post_as(ACT, &format!("{CLAIM}&worker={worker}"), json!({})).await;
        assert_eq!(reply.status, StatusCode::OK, "there is one: {}", reply.text);
        reply.json()["attempt"].clone()
    };
    let report = |more: Value| failed("o1", "TIMEOUT", more);
    assert_eq!(claim("w1").await, 1);
    assert!(tell(&world, report(json!({}))).await, "there is but one attempt");
    assert!(!tell(&world, report(json!({}))).await, "nobody has it");
    pass(1_000).await;
    assert_eq!(claim("w2").await, 2);
    for of_whom in [json!({}), json!({"actor": "w1"})] {
        let refused = world.post_as(ACT, "/api/tool-results", report(of_whom)).await;
        assert!(refused.text.contains("send the attempt of the task"), "{}", refused.text);
        assert_eq!(refused.refusal(), ("invalid_request".to_owned(), vec!["payload.attempt".to_owned()]));
    }
    assert_eq!(ports.work_state("o1").await, OperationState::Running, "it stays with its holder");
    let end = json!({"code": "NOT_FOUND", "message": "there is none", "retriable": false});
    let of_another = failed("o1", "NOT_FOUND", json!({"attempt": 1, "error": end}));
    assert!(!tell(&world, of_another).await, "an end of another start");
    assert!(tell(&world, report(json!({"actor": "w2"}))).await, "who holds it tells of that");
    pass(2_000).await;
    assert_eq!(claim("w1").await, 3);
    // The last one would end by it.
    assert_eq!(world.post_as(ACT, "/api/tool-results", report(json!({}))).await.problem(), "invalid_request");
    assert!(!tell(&world, report(json!({"attempt": 2}))).await);
    assert_eq!(ports.work_state("o1").await, OperationState::Running);
    assert!(tell(&world, json!({"operation_id": "o1", "result": 21})).await, "a result needs no attempt");
    assert_eq!(ports.work_state("o1").await, OperationState::Completed);
}

/// A relay has it for whoever takes it from the broker, and that has no name here.
#[tokio::test(start_paused = true)]
async fn what_was_sent_to_a_broker_is_put_back_whoever_tells_of_it() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![retried("o1", EffectClass::Idempotent)]).await;
    let relay = async || {
        let claimed = ports.operations.claim("default:python", "worker-1", Hold::Attempt(60_000), 1).await.unwrap();
        claimed.first().map(|row| row.operation.attempt)
    };
    assert_eq!(relay().await, Some(1));
    assert!(tell(&world, failed("o1", "TIMEOUT", json!({}))).await);
    pass(1_000).await;
    assert_eq!(relay().await, Some(2));
    assert!(tell(&world, failed("o1", "TIMEOUT", json!({}))).await, "although one has failed before");
    pass(2_000).await;
    assert_eq!(relay().await, Some(3));
    assert!(tell(&world, failed("o1", "TIMEOUT", json!({}))).await);
    assert_eq!(ports.work_state("o1").await, OperationState::Failed, "with its own error");
}

/// A relay could not tell whether the broker took it, and it did.
#[tokio::test(start_paused = true)]
async fn what_is_told_of_a_start_that_was_taken_for_lost_counts() {
    let (world, ports) = talking().await;
    for (id, attempts, state) in [("o1", 1, OperationState::Failed), ("o2", 3, OperationState::Pending)] {
        let task = Operation { max_attempts: attempts, ..retried(id, EffectClass::Idempotent) };
        dispatch(&ports, vec![task]).await;
        let claimed = ports.operations.claim("default:python", "worker-1", Hold::Attempt(60_000), 1).await.unwrap();
        let claim = Claim { claimant: "worker-1", until_ms: claimed.first().expect("it is sent").operation.until_ms };
        let lost = Ended::Again { after_ms: 1_000, error: "not confirmed".to_owned(), lost: true };
        let ending =
            ports.operations.end(&Namespace::default_ns(), &operation_id(id), Some(claim), lost).await.unwrap();
        assert!(matches!(ending, Ending::Scheduled), "{ending:?}");
        tell(&world, failed(id, "TIMEOUT", json!({"attempt": 1}))).await;
        assert_eq!(ports.work_state(id).await, state, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_need_not_say_its_attempt_however_many_were_lost() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![retried("o1", EffectClass::Pure)]).await;
    assert_eq!(claimed(&world).await, 1);
    pass(60_000 + schemas::limits::OPERATION_GRACE_MS + 10).await;
    let reply = world.post_as(ACT, &format!("{CLAIM}&worker=w2"), json!({})).await.json();
    assert_eq!(reply["attempt"], 2);
    assert!(tell(&world, failed("o1", "TIMEOUT", json!({}))).await);
    let row = ports.work("o1").await.operation;
    assert_eq!((row.state, row.attempt, row.lost), (OperationState::Pending, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn what_must_not_be_repeated_or_is_no_matter_of_infrastructure_ends() {
    let (world, ports) = talking().await;
    for (id, class, code) in [
        ("o-once", EffectClass::AtMostOnce, "TIMEOUT"),
        ("o-probe", EffectClass::Probeable, "TIMEOUT"),
        ("o-input", EffectClass::Pure, "INVALID_INPUT"),
    ] {
        dispatch(&ports, vec![retried(id, class)]).await;
        claimed(&world).await;
        assert!(tell(&world, failed(id, code, json!({"attempt": 1}))).await);
        assert_eq!(ports.work_state(id).await, OperationState::Failed, "{id}");
    }
    dispatch(&ports, vec![retried("o1", EffectClass::Pure)]).await;
    claimed(&world).await;
    let payload = failed("o1", "TIMEOUT", json!({}));
    let astray = json!({"type": "tool_result", "action_id": "astray", "session_id": "s2", "payload": payload});
    let refused = world.post_as(ACT, "/api/actions", astray).await;
    assert_eq!(refused.problem(), "session_not_found", "{}", refused.text);
    assert_eq!(ports.work_state("o1").await, OperationState::Running);
    assert!(tell(&world, json!({"operation_id": "o1", "result": 21})).await);
    let late = world.post_as(ACT, "/api/tool-results", failed("o1", "TIMEOUT", json!({}))).await;
    assert_eq!(late.problem(), "no_open_operation", "the first end counts");
}

#[tokio::test(start_paused = true)]
async fn what_comes_over_the_broker_is_tried_again_as_well() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![retried("o1", EffectClass::Pure)]).await;
    assert_eq!(claimed(&world).await, 1);
    let report = json!({"type": "tool_result", "payload": failed("o1", "TIMEOUT", json!({"attempt": 1}))});
    for _ in 0..2 {
        world.queue.put(QUEUE_INGRESS, report.to_string().into_bytes());
    }
    world.until(|| world.queue.acknowledged(QUEUE_INGRESS) == 2).await;
    assert!(world.queue.list(10).await.unwrap().is_empty(), "none is dead");
    let row = ports.work("o1").await.operation;
    assert_eq!((row.state, row.attempt), (OperationState::Pending, 1));
    pass(1_000).await;
    assert_eq!(claimed(&world).await, 2);
    let result = json!({"type": "tool_result", "payload": {"operation_id": "o1", "result": 21, "attempt": 2}});
    world.queue.put(QUEUE_INGRESS, result.to_string().into_bytes());
    world.until(|| world.queue.acknowledged(QUEUE_INGRESS) == 3).await;
    assert_eq!(ports.work_state("o1").await, OperationState::Completed);
}
