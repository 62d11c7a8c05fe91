//! How operations end when nobody dies.

use super::*;

async fn ended(say: Vec<Say>, operation: Operation) -> (Value, usize) {
    let place = Place::new(Tools::that_say(say)).await;
    let id = operation.operation_id.to_string();
    place.dispatch(vec![operation]).await;
    let executor = place.executor("e1");
    let result = place.until_ended(&id).await;
    executor.drain().await;
    assert_eq!(place.results().await, 1);
    let heard = place.queue.0.lock().expect("unpoisoned").len();
    assert_eq!(heard, 1, "the owner is told of the result");
    (result, place.tools.performed(&id))
}

#[tokio::test(start_paused = true)]
async fn an_answer_becomes_a_result() {
    let (result, performed) = ended(vec![ok()], task("o1", EffectClass::AtMostOnce)).await;
    assert_eq!((result["success"].clone(), result["result"].clone()), (json!(true), json!({"found": 3})));
    assert_eq!((result["operation_id"].clone(), result["tool_call_id"].clone()), (json!("o1"), json!("call \"1\"")));
    assert_eq!(performed, 1);
}

#[tokio::test(start_paused = true)]
async fn infrastructure_is_tried_again_and_business_is_not() {
    let (result, performed) =
        ended(vec![trouble(true), trouble(true), ok()], task("o1", EffectClass::Idempotent)).await;
    assert_eq!((result["success"].clone(), performed), (json!(true), 3));
    let (result, performed) = ended(vec![trouble(true)], task("o1", EffectClass::Idempotent)).await;
    assert_eq!((result["success"].clone(), performed), (json!(false), 3));
    assert_eq!(result["error"]["code"], "EXECUTION_FAILED");
    assert_eq!(result["error"]["retriable"], true);
    let wrong = ActionFailure::business(ToolErrorCode::NotFound, "no such city");
    let (result, performed) =
        ended(vec![Say { after_ms: 0, outcome: Err(wrong) }], task("o1", EffectClass::Pure)).await;
    assert_eq!((result["error"]["message"].clone(), performed), (json!("no such city"), 1));
}

#[tokio::test(start_paused = true)]
async fn attempts_have_waits_between_them() {
    let begun = Instant::now();
    let (_, performed) = ended(vec![trouble(false)], task("o1", EffectClass::AtMostOnce)).await;
    let took = begun.elapsed().as_millis();
    assert_eq!(performed, 3, "what did not reach its target may be sent again");
    assert!((300..1_000).contains(&took), "100 and 200 ms between three attempts, {took}");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_is_not_repeated_blindly() {
    let (result, performed) = ended(vec![trouble(true)], task("o1", EffectClass::AtMostOnce)).await;
    assert_eq!(performed, 1);
    assert!(result["error"]["message"].as_str().unwrap().contains("in doubt"), "{result}");
    let silent = Say { after_ms: 100_000, outcome: Ok(json!(1)) };
    let (result, performed) = ended(vec![silent.clone()], task("o1", EffectClass::AtMostOnce)).await;
    assert_eq!(performed, 1);
    assert!(result["error"]["message"].as_str().unwrap().contains("within 1000 ms"), "{result}");
    assert_eq!((&result["error"]["code"], &result["error"]["retriable"]), (&json!("TIMEOUT"), &json!(false)));
    let (result, performed) = ended(vec![silent, ok()], task("o1", EffectClass::Idempotent)).await;
    assert_eq!((result["success"].clone(), performed), (json!(true), 2));
}

#[tokio::test(start_paused = true)]
async fn what_the_target_reports_is_tried_again_as_often_as_is_configured() {
    let away = ActionFailure::trouble(Trouble::ServerError, "answered with status 503", true);
    let away = Say { after_ms: 0, outcome: Err(ActionFailure { reported: true, ..away }) };
    let (result, performed) = ended(vec![away.clone(), ok()], task("o1", EffectClass::AtMostOnce)).await;
    assert_eq!((result["success"].clone(), performed), (json!(true), 2));
    let once = Operation { max_attempts: 1, ..task("o1", EffectClass::AtMostOnce) };
    let (result, performed) = ended(vec![away], once).await;
    assert_eq!((result["error"]["message"].clone(), performed), (json!("answered with status 503"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_probe_decides_where_there_is_one() {
    for (probe, success, performed) in
        [(Probe::Happened(json!("done")), true, 1), (Probe::DidNotHappen, true, 2), (Probe::Unknown, false, 1)]
    {
        let tools = Tools::that_say(vec![trouble(true), ok()]);
        tools.with(|world| world.probe = Some((5, probe.clone())));
        let place = Place::new(tools).await;
        place.dispatch(vec![task("o1", EffectClass::Probeable)]).await;
        let executor = place.executor("e1");
        let result = place.until_ended("o1").await;
        assert_eq!((result["success"].clone(), place.tools.performed("o1")), (json!(success), performed), "{probe:?}");
        executor.drain().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_breakdown_and_nonsense_are_told_and_not_repeated() {
    let panics = Operation { tool: "panics".to_owned(), ..task("o1", EffectClass::Idempotent) };
    let (result, performed) = ended(vec![ok()], panics).await;
    assert_eq!((result["error"]["code"].clone(), performed), (json!("INTERNAL_ERROR"), 1));
    let nonsense = Operation { request: Json::of(&json!({"input": 1})), ..task("o1", EffectClass::Pure) };
    let (result, performed) = ended(vec![ok()], nonsense).await;
    assert_eq!((result["error"]["code"].clone(), performed), (json!("INTERNAL_ERROR"), 0));
}

#[tokio::test(start_paused = true)]
async fn approvals_get_their_default_when_their_time_has_come() {
    let place = Place::new(Tools::that_say(vec![ok()])).await;
    place.dispatch(vec![gated("o-deny", false), gated("o-approve", true)]).await;
    let executor = place.executor("e1");
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!(place.ports.work_state("o-deny").await, OperationState::Pending, "not yet");
    for (id, approved) in [("o-deny", false), ("o-approve", true)] {
        let told = place.until_ended(id).await;
        // As a person's answer: what follows from it is the turn's to decide.
        assert_eq!(
            (told["success"].clone(), told["result"]["approved"].clone()),
            (json!(true), json!(approved)),
            "{id}"
        );
        assert_eq!(place.tools.performed(id), 0, "{id}");
    }
    executor.drain().await;
    assert_eq!(place.results().await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_answer_in_time_ends_with_timeout() {
    let place = Place::new(Tools::default()).await;
    let called = |id, timeout_ms| Operation {
        kind: OperationKind::Agent,
        pool: String::new(),
        timeout_ms,
        ..task(id, EffectClass::AtMostOnce)
    };
    place.dispatch(vec![called("o-late", 5_000), called("o-waits", 3_600_000)]).await;
    let executors = [place.executor("e1"), place.executor("e2")];
    sleep(Duration::from_millis(4_500)).await;
    assert_eq!(place.results().await, 0, "not yet");
    let told = place.until_ended("o-late").await;
    assert_eq!((told["error"]["code"].clone(), told["error"]["retriable"].clone()), (json!("TIMEOUT"), json!(false)));
    assert_eq!((place.results().await, place.tools.performed("o-late")), (1, 0));
    assert_eq!(place.ports.work_state("o-waits").await, OperationState::Pending);
    for executor in executors {
        executor.drain().await;
    }
}

#[tokio::test(start_paused = true)]
async fn work_of_others_that_nobody_takes_ends_with_timeout() {
    let place = Place::new(Tools::default()).await;
    let theirs =
        |id| Operation { pool: "default:python".to_owned(), wait_ms: Some(5_000), ..task(id, EffectClass::AtMostOnce) };
    place.dispatch(vec![theirs("o-late"), theirs("o-held")]).await;
    let hold = domain::ports::Hold::Attempt(3_600_000);
    place.ports.operations.claim("default:python", "external:w", hold, 1).await.expect("a claim");
    let executors = [place.executor("e1"), place.executor("e2")];
    sleep(Duration::from_millis(4_500)).await;
    assert_eq!(place.results().await, 0, "not yet");
    sleep(Duration::from_millis(2_000)).await;
    let states = [place.ports.work_state("o-late").await, place.ports.work_state("o-held").await];
    assert!(states.contains(&OperationState::Failed) && states.contains(&OperationState::Running), "{states:?}");
    let late = if states[0] == OperationState::Failed { "o-late" } else { "o-held" };
    let told = place.result(late).await;
    assert_eq!((told["error"]["code"].clone(), told["error"]["retriable"].clone()), (json!("TIMEOUT"), json!(true)));
    assert_eq!((place.results().await, place.tools.performed(late)), (1, 0));
    for executor in executors {
        executor.drain().await;
    }
}
