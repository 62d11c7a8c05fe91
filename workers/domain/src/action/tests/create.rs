//! Creating sessions.

use serde_json::{Value, json};

use super::{fields_of, ok, refused};
use schemas::problem::Code;

fn create(payload: Value) -> Value {
    json!({"type": "create", "session_id": "s1", "agent_id": "a1", "payload": payload})
}

#[test]
fn defaults_come_from_the_moniker() {
    let new = ok(create(json!({"moniker": "count"}))).session.unwrap();
    assert!(new.spec.stop_on_done);
    assert_eq!((new.spec.loop_interval_ms, new.spec.max_steps, new.spec.max_runtime_ms), (0, None, None));
    assert_eq!((new.spec.config.as_str(), new.state.as_str()), ("{}", "{}"));
    let new = ok(create(json!({"moniker": "echo"}))).session.unwrap();
    assert!(!new.spec.stop_on_done);
    let new = ok(create(json!({"moniker": "tell_a_joke"}))).session.unwrap();
    assert_eq!(new.spec.loop_interval_ms, 3_000);
    assert!(!new.spec.stop_on_done);
}

#[test]
fn given_settings_are_kept() {
    let payload = json!({"moniker": "count", "config": {"until": 3}, "state": {"n": 1, "who": "me"},
                         "conversation_id": "c1", "stop_on_done": false, "max_steps": 5, "max_runtime_s": 2,
                         "loop_interval_ms": 10, "task": "count"});
    let new = ok(create(payload)).session.unwrap();
    let spec = new.spec;
    assert_eq!((spec.max_steps, spec.max_runtime_ms, spec.loop_interval_ms), (Some(5), Some(2_000), 10));
    assert_eq!((spec.stop_on_done, spec.task.as_deref()), (false, Some("count")));
    assert_eq!(spec.conversation_id.unwrap().as_str(), "c1");
    assert_eq!(new.state.to_value(), json!({"n": 1, "who": "me"}));
}

#[test]
fn the_moniker_is_needed_and_known() {
    let problem = refused(create(json!({})));
    assert_eq!(problem.errors[0].field, "payload.moniker");
    assert!(problem.detail.contains("echo"), "{}", problem.detail);
    let problem = refused(create(json!({"moniker": "cuont"})));
    assert_eq!(problem.code, Code::UnknownMoniker);
    assert!(problem.detail.contains("run_step") && problem.detail.contains("\"count\"?"), "{}", problem.detail);
    assert_eq!(fields_of(create(json!({"moniker": 5}))), ["payload.moniker"]);
    assert_eq!(fields_of(json!({"type": "create"})), ["payload.moniker"]);
}

#[test]
fn limits_are_whole_numbers_above_zero() {
    for field in ["max_steps", "max_runtime_s"] {
        for wrong in [json!(0), json!(-1), json!(1.5), json!("5"), json!(true), json!(u64::MAX)] {
            let mut payload = json!({"moniker": "count"});
            payload[field] = wrong.clone();
            assert_eq!(fields_of(create(payload)), [format!("payload.{field}")], "{wrong}");
        }
    }
    let field = "payload.loop_interval_ms";
    assert_eq!(fields_of(create(json!({"moniker": "count", "loop_interval_ms": -1}))), [field]);
    ok(create(json!({"moniker": "count", "loop_interval_ms": 0})));
}

#[test]
fn types_are_checked() {
    for (field, wrong) in [
        ("state", json!([1])),
        ("state", json!("x")),
        ("config", json!("x")),
        ("task", json!({})),
        ("stop_on_done", json!("yes")),
        ("conversation_id", json!("a b")),
    ] {
        let mut payload = json!({"moniker": "count"});
        payload[field] = wrong;
        assert_eq!(fields_of(create(payload)), [format!("payload.{field}")]);
    }
}

#[test]
fn unknown_fields_are_named() {
    let problem = refused(create(json!({"moniker": "count", "maxsteps": 3, "initial_subject": "cats"})));
    assert!(problem.detail.contains("payload.maxsteps: is not a known field; did you mean \"max_steps\"?"));
    assert!(problem.errors.iter().any(|error| error.field == "payload.initial_subject"));
}

#[test]
fn the_moniker_checks_its_own_settings() {
    assert_eq!(fields_of(create(json!({"moniker": "count", "config": {"until": 0}}))), ["payload.config.until"]);
    assert_eq!(fields_of(create(json!({"moniker": "count", "state": {"n": "x"}}))), ["payload.state.n"]);
    assert_eq!(fields_of(create(json!({"moniker": "http"}))), ["payload.config.url"]);
}

#[test]
fn names_of_paths_are_no_session_ids() {
    let mut body = create(json!({"moniker": "count"}));
    body["session_id"] = json!("bulk");
    let problem = refused(body.clone());
    assert_eq!((problem.code, problem.errors[0].field.as_str()), (Code::InvalidRequest, "session_id"));
    assert!(problem.detail.contains("/api/sessions/bulk") && problem.detail.contains("leave it out"), "{problem:?}");
    body["session_id"] = json!("bulk2");
    ok(body);
}

#[test]
fn null_is_absent() {
    let new = ok(create(json!({"moniker": "count", "state": null, "max_steps": null}))).session.unwrap();
    assert_eq!((new.spec.max_steps, new.state.as_str()), (None, "{}"));
}

/// Approvals and other sessions are named in it: it would speak for people, and stop what is not the caller's.
#[test]
fn nobody_brings_the_state_of_a_conversation_along() {
    for state in [
        json!({"lanes": []}),
        json!({"moves": 0}),
        serde_json::to_value(crate::converse::TalkState::default()).unwrap(),
        json!({"nonsense": true}),
    ] {
        assert_eq!(fields_of(create(json!({"moniker": "converse", "state": state}))), ["payload.state"], "{state}");
    }
    for payload in [json!({"moniker": "converse"}), json!({"moniker": "converse", "state": {}})] {
        assert_eq!(ok(create(payload)).session.unwrap().state.as_str(), "{}");
    }
}
