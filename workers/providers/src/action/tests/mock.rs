//! Answers on demand.

use domain::tool::schema;

use super::*;

#[tokio::test]
async fn answers_are_fixed_made_or_echoed_and_the_same_each_time() {
    let actions = actions(config(false));
    let run = |settings: Value| {
        let call = call(ActionKind::Mock, settings, json!({"q": 1}));
        let actions = &actions;
        async move { actions.run(&call).await.unwrap() }
    };
    assert_eq!(run(json!({})).await, json!({"q": 1}));
    assert_eq!(run(json!({"output": [1, 2]})).await, json!([1, 2]));
    let wanted = json!({"type": "object", "properties": {
        "name": {"type": "string", "minLength": 12, "maxLength": 14}, "age": {"type": "integer", "minimum": 18, "maximum": 20},
        "score": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}, "ok": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 4},
        "kind": {"const": "x"}, "none": {"type": "null"}}});
    let made = run(json!({"schema": wanted, "seed": 7})).await;
    let errors = schema::check(wanted.as_object().unwrap(), &made);
    assert!(errors.is_empty(), "{made}: {errors:?}");
    assert_eq!(made, run(json!({"schema": wanted, "seed": 7})).await);
    assert_ne!(made, run(json!({"schema": wanted, "seed": 8})).await);
}

#[tokio::test]
async fn failures_are_of_the_class_that_is_asked_for() {
    let actions = actions(config(false));
    let run = |error: Value| {
        let call = call(ActionKind::Mock, json!({ "error": error }), json!({}));
        let actions = &actions;
        async move { actions.run(&call).await.unwrap_err() }
    };
    let business = run(json!({"code": "NOT_FOUND", "message": "none"})).await;
    assert_eq!((business.error.code, business.trouble), (ToolErrorCode::NotFound, None));
    let limited = run(json!({"code": "rate_limit", "retryable": true})).await;
    assert_eq!(limited.trouble, Some(Trouble::RateLimit));
    assert_eq!(run(json!({"retryable": true})).await.trouble, Some(Trouble::ServerError));
    assert_eq!(run(json!({"code": "odd"})).await.error.code, ToolErrorCode::ExecutionFailed);
}

#[tokio::test(start_paused = true)]
async fn delays_are_within_their_bounds() {
    let begun = tokio::time::Instant::now();
    let slow = call(ActionKind::Mock, json!({"delay_ms": {"min": 200, "max": 300}}), json!({}));
    mock_run(&slow).await;
    let took = begun.elapsed().as_millis();
    assert!((200..=301).contains(&took), "{took}");
}

async fn mock_run(call: &ActionCall) {
    crate::action::mock::run(call).await.expect("an answer");
}
