//! The payloads of all verbs but `create`, and bulk bodies.

use schemas::action::ActionType;
use schemas::conversation::OperationState;
use schemas::id::{ActionId, Namespace, SessionId};
use schemas::problem::Code;
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::{fields_of, ok};
use crate::action::bulk;

fn to(kind: &str, payload: Value) -> Value {
    json!({"type": kind, "session_id": "s1", "payload": payload})
}

#[test]
fn interrupt_needs_guidance() {
    for wrong in [json!({}), json!({"guidance": null}), json!({"guidance": "dogs"}), json!({"guidance": [1]})] {
        assert_eq!(fields_of(to("interrupt", wrong)), ["payload.guidance"]);
    }
    assert_eq!(fields_of(json!({"type": "interrupt", "session_id": "s1"})), ["payload.guidance"]);
    assert_eq!(fields_of(to("interrupt", json!({"guidance": {}, "mode": "later"}))), ["payload.mode"]);
    ok(to("interrupt", json!({"guidance": {}, "mode": "now"})));
}

#[test]
fn reasons_are_texts() {
    for kind in ["pause", "resume", "destroy"] {
        ok(to(kind, json!({"reason": "deploy"})));
        assert_eq!(fields_of(to(kind, json!({"reason": 5}))), ["payload.reason"]);
        assert_eq!(fields_of(to(kind, json!({"reason": "x".repeat(2_001)}))), ["payload.reason"]);
        assert_eq!(fields_of(to(kind, json!({"because": "x"}))), ["payload.because"]);
        assert_eq!(fields_of(to(kind, json!("deploy"))), ["payload"]);
    }
}

#[test]
fn input_needs_something() {
    assert_eq!(fields_of(to("input", json!({}))), ["payload"]);
    assert_eq!(fields_of(to("input", json!("hello"))), ["payload"]);
    ok(to("input", json!({"document": {"name": "x"}})));
}

#[test]
fn tool_result_needs_an_operation_and_one_outcome() {
    for (payload, field) in [
        (json!({"result": 1}), "payload.operation_id"),
        (json!({"operation_id": "o"}), "payload.result"),
        (json!({"operation_id": "o", "result": 1, "error": "x"}), "payload.error"),
        (json!({"operation_id": "o", "error": 5}), "payload.error"),
        (json!({"tool_call_id": 5, "operation_id": "o", "result": 1}), "payload.tool_call_id"),
        (json!({"operation_id": "o", "result": 1, "success": false}), "payload.success"),
        (json!({"operation_id": "o", "error": "x", "success": true}), "payload.success"),
        (json!({"operation_id": "o", "error": "x", "attempt": 0}), "payload.attempt"),
    ] {
        assert_eq!(fields_of(to("tool_result", payload)), [field]);
    }
    ok(to("tool_result", json!({"tool_call_id": "t", "error": {"code": "TIMEOUT"}})));
}

#[test]
fn an_operation_says_which_session_its_result_is_for() {
    let result = |payload: Value| json!({"type": "tool_result", "payload": payload});
    let new = ok(result(json!({"operation_id": "o", "result": null})));
    assert_eq!((&new.session_id, &new.agent_id), (&None, &None));
    let ended = crate::action::result_of(&new).map(|(id, state)| (id.to_string(), state));
    assert_eq!(ended, Some(("o".to_owned(), OperationState::Completed)));
    let failed = ok(result(json!({"operation_id": "o", "error": "no \"luck\"\u{0}"})));
    assert_eq!(crate::action::result_of(&failed).map(|(_, state)| state), Some(OperationState::Failed));
    assert_eq!(fields_of(result(json!({"tool_call_id": "t", "result": 1}))), ["session_id"]);
    assert_eq!(crate::action::result_of(&ok(to("tool_result", json!({"tool_call_id": "t", "result": 1})))), None);
}

#[test]
fn a_failure_is_told_with_its_operation_and_its_start() {
    let failure = |payload: Value| crate::action::failure_of(&ok(to("tool_result", payload)));
    let error = json!({"code": "TIMEOUT", "message": "away", "retriable": true});
    let told = failure(json!({"operation_id": "o", "error": error, "attempt": 2})).expect("a failure");
    assert_eq!((told.operation_id.as_str(), told.attempt), ("o", Some(2)));
    assert_eq!((told.error.message.as_str(), told.error.retriable), ("away", true));
    assert_eq!(failure(json!({"operation_id": "o", "error": "x"})).map(|told| told.attempt), Some(None));
    assert_eq!(failure(json!({"operation_id": "o", "result": null})), None);
    assert_eq!(failure(json!({"tool_call_id": "t", "error": "x"})), None);
    assert_eq!(crate::action::failure_of(&ok(to("input", json!({"operation_id": "o", "error": "x"})))), None);
}

#[test]
fn bulk_names_a_verb_and_a_filter() {
    let body = bulk::parse(&json!({"action": "pause", "filter": {"status": ["running"], "moniker": "count"}})).unwrap();
    assert_eq!((body.action, body.filter.status.as_slice()), (ActionType::Pause, &[SessionStatus::Running][..]));
    for (body, field) in [
        (json!({"action": "pause"}), "filter"),
        (json!({"filter": {}}), "action"),
        (json!({"action": "create", "filter": {}}), "action"),
        (json!({"action": "pause", "filter": {"agent": "a"}}), "filter.agent"),
        (json!({"action": "pause", "filter": {"status": ["runing"]}}), "filter.status[0]"),
        (json!({"action": "pause", "filter": {"status": []}}), "filter.status"),
        (json!({"action": "pause", "filter": {"session_ids": ["a b"]}}), "filter.session_ids[0]"),
        (json!({"action": "pause", "filter": {"session_ids": "s"}}), "filter.session_ids"),
        (json!({"action": "interrupt", "filter": {}}), "payload.guidance"),
        (json!([]), "body"),
    ] {
        let problem = bulk::parse(&body).unwrap_err();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    assert_eq!(bulk::parse(&json!({"action": "create", "filter": {}})).unwrap_err().code, Code::UnknownType);
}

#[test]
fn members_of_a_bulk_action_have_ids_of_their_own() {
    let id = |ns: &str, key: &str, verb, session: &str| {
        let namespace = Namespace::parse(ns).unwrap();
        let key = ActionId::parse(key).unwrap();
        bulk::member_id(&namespace, &key, verb, &SessionId::parse(session).unwrap())
    };
    let one = id("n", "k", ActionType::Pause, "s");
    assert_eq!(one, id("n", "k", ActionType::Pause, "s"));
    for other in [
        id("m", "k", ActionType::Pause, "s"),
        id("n", "l", ActionType::Pause, "s"),
        id("n", "k", ActionType::Resume, "s"),
        id("n", "k", ActionType::Pause, "t"),
    ] {
        assert_ne!(one, other);
    }
}
