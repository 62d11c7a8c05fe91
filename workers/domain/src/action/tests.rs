//! Every refusal names its field, and what is right passes.

use proptest::prelude::*;
use schemas::session::SessionSpec;
use serde_json::json;

use super::*;

mod create;
mod ingress;
mod schema;
mod verbs;

pub(super) fn context() -> ParseContext {
    ParseContext {
        namespace: Namespace::default_ns(),
        actor: "token:ops".into(),
        action_id: ActionId::parse("fresh-action").unwrap(),
        session_id: SessionId::parse("fresh-session").unwrap(),
        agent_id: AgentId::parse("fresh-agent").unwrap(),
        idempotency_key: None,
    }
}

pub(super) fn ok(body: Value) -> NewAction {
    parse(&body, context()).unwrap_or_else(|problem| panic!("{body} is refused: {problem:?}"))
}

pub(super) fn refused(body: Value) -> Problem {
    match parse(&body, context()) {
        Err(problem) => *problem,
        Ok(action) => panic!("{body} is taken: {action:?}"),
    }
}

/// The fields that a body is refused for, in order.
pub(super) fn fields_of(body: Value) -> Vec<String> {
    refused(body).errors.into_iter().map(|problem| problem.field).collect()
}

#[test]
fn each_type_passes_with_its_least_payload() {
    let least = [
        ("create", json!({"moniker": "count"})),
        ("input", json!({"text": "hello"})),
        ("interrupt", json!({"guidance": {"subject": "dogs"}})),
        ("pause", json!({})),
        ("resume", json!({})),
        ("destroy", json!({})),
        ("tool_result", json!({"operation_id": "op1", "result": null})),
    ];
    for (kind, payload) in least {
        let action = ok(json!({"type": kind, "session_id": "s1", "payload": payload}));
        assert_eq!(action.kind.as_str(), kind);
        assert_eq!(action.session_id.as_ref().unwrap().as_str(), "s1");
        assert_eq!((action.urgency, action.actor.as_str()), (Urgency::Normal, "token:ops"));
        assert_eq!((action.payload.to_value(), action.metadata.as_str()), (payload, "{}"));
        assert_eq!(action.session.is_some(), kind == "create");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let body = json!({"type": "interrupt", "sesion_id": "s1", "session_id": "a b", "urgency": "urgent",
                      "metadata": [], "actor": " ", "payload": {"guidance": "cats", "mode": "later", "x": 1}});
    let problem = refused(body);
    let fields: Vec<&str> = problem.errors.iter().map(|problem| problem.field.as_str()).collect();
    let expected =
        ["sesion_id", "metadata", "session_id", "urgency", "actor", "payload.x", "payload.guidance", "payload.mode"];
    assert_eq!(sorted(fields), sorted(expected.to_vec()));
    assert!(problem.detail.contains("did you mean \"session_id\"?"), "{}", problem.detail);
    assert_eq!(problem.code, Code::InvalidRequest);
}

#[test]
fn nobody_acts_as_the_fleet_does() {
    for actor in ["session:s1", "session:", "approval-default"] {
        let problem = refused(json!({"type": "resume", "session_id": "s1", "actor": actor}));
        let fields: Vec<&str> = problem.errors.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!((problem.code, fields), (Code::InvalidRequest, vec!["actor"]), "{actor}");
    }
}

fn sorted(mut fields: Vec<&str>) -> Vec<&str> {
    fields.sort_unstable();
    fields
}

#[test]
fn an_unknown_type_names_the_known_ones() {
    let problem = refused(json!({"type": "pasue", "session_id": "s"}));
    assert_eq!(problem.code, Code::UnknownType);
    assert!(problem.detail.contains("did you mean \"pause\"?"), "{}", problem.detail);
    for body in [json!({}), json!({"type": null}), json!({"type": ""})] {
        assert_eq!(refused(body).code, Code::UnknownType);
    }
    assert_eq!(refused(json!({"type": 7})).errors[0].message, "must be a string, not the number 7");
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    for body in [json!(null), json!([]), json!("pause"), json!(3)] {
        assert_eq!(fields_of(body), ["body"]);
    }
}

#[test]
fn hostile_ids_are_refused_with_their_field() {
    for bad in ["", "a b", "a'b", "a\"b", "ü", "a/b", "a\0b", "a;--", &"x".repeat(129)] {
        for field in ["action_id", "session_id", "agent_id"] {
            let mut body = json!({"type": "pause", "session_id": "s1", "agent_id": "a1"});
            body[field] = json!(bad);
            assert_eq!(fields_of(body), [field], "{bad:?}");
        }
    }
    for wrong in [json!(1), json!({}), json!(true), json!(["s"])] {
        assert_eq!(fields_of(json!({"type": "pause", "session_id": wrong})), ["session_id"]);
    }
}

#[test]
fn all_but_create_need_a_target() {
    for kind in ActionType::ALL {
        let fields = fields_of(json!({"type": kind, "payload": {"nonsense": 1}}));
        assert_eq!(fields.contains(&"session_id".to_owned()), kind != ActionType::Create, "{kind:?}");
    }
    let by_agent = ok(json!({"type": "pause", "agent_id": "a1"}));
    assert_eq!((by_agent.session_id, by_agent.agent_id.unwrap().as_str()), (None, "a1"));
}

#[test]
fn the_header_is_another_place_for_the_action_id() {
    let parse_with =
        |header: &str, body: Value| parse(&body, ParseContext { idempotency_key: Some(header.into()), ..context() });
    let body = json!({"type": "pause", "session_id": "s1"});
    assert_eq!(parse_with("k1", body.clone()).unwrap().action_id.as_str(), "k1");
    let same = json!({"type": "pause", "session_id": "s1", "action_id": "k1"});
    assert_eq!(parse_with("k1", same.clone()).unwrap().action_id.as_str(), "k1");
    assert_eq!(parse_with("k2", same).unwrap_err().errors[0].field, "action_id");
    assert_eq!(parse_with("k 2", body).unwrap_err().errors[0].field, "Idempotency-Key");
}

#[test]
fn fresh_ids_are_used_where_none_is_given_and_are_not_hashed() {
    let body = json!({"type": "create", "payload": {"moniker": "count"}});
    let one = ok(body.clone());
    assert_eq!((one.action_id.as_str(), one.session_id.unwrap().as_str()), ("fresh-action", "fresh-session"));
    assert_eq!(one.agent_id.unwrap().as_str(), "fresh-agent");
    let other = ParseContext { session_id: SessionId::parse("another").unwrap(), ..context() };
    assert_eq!(parse(&body, other).unwrap().body_hash, one.body_hash);
}

#[test]
fn an_oversized_action_names_its_largest_field() {
    for (field, payload) in [
        ("payload.state", json!({"moniker": "count", "state": {"x": "y".repeat(ACTION_BYTES_MAX)}})),
        ("payload.task", json!({"moniker": "count", "task": "y".repeat(ACTION_BYTES_MAX)})),
        ("payload.config", json!({"moniker": "count", "config": {"x": "y".repeat(ACTION_BYTES_MAX)}})),
    ] {
        let problem = refused(json!({"type": "create", "payload": payload}));
        assert_eq!((problem.code, problem.errors[0].field.as_str()), (Code::TooLarge, field));
        assert!(problem.detail.len() < 500);
    }
}

#[test]
fn a_body_of_nonsense_gets_a_short_answer() {
    let map: Map<String, Value> = (0..5_000).map(|n| (format!("field{n}"), json!(n))).collect();
    assert_eq!(refused(Value::Object(map)).errors.len(), 50);
}

#[test]
fn documented_bodies_are_what_is_read() {
    use schemas::request::{ActionBody, Payload, ReasonPayload};
    let body = ActionBody {
        kind: ActionType::Pause,
        action_id: ActionId::parse("a").ok(),
        session_id: SessionId::parse("s").ok(),
        agent_id: AgentId::parse("g").ok(),
        payload: Some(Payload::Reason(ReasonPayload { reason: Some("deploy".into()) })),
        metadata: Some(Map::new()),
        urgency: Some(Urgency::High),
        actor: Some("ana".into()),
    };
    let value = serde_json::to_value(&body).unwrap();
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let mut known = ENVELOPE.to_vec();
    known.sort_unstable();
    assert_eq!(keys, known);
    let action = ok(value);
    assert_eq!((action.actor.as_str(), action.urgency), ("ana", Urgency::High));
}

/// Any JSON, three levels deep, with keys that mean something here.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|n| json!(n)),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["create", "pause", "count", "echo", "s1", "now"]).prop_map(Value::from),
    ];
    let keys = prop::sample::select(
        [ENVELOPE, create_fields(), &["guidance", "mode", "text", "result", "operation_id", "reason", "zzz"]].concat(),
    );
    leaf.prop_recursive(3, 40, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(keys.clone().prop_map(str::to_owned), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn create_fields() -> &'static [&'static str] {
    super::create::FIELDS
}

proptest! {
    #[test]
    fn any_body_is_taken_or_refused_with_a_field(body in any_json()) {
        match parse(&body, context()) {
            Ok(action) => prop_assert!(action.session_id.is_some() || action.agent_id.is_some()),
            Err(problem) => {
                prop_assert!(!problem.errors.is_empty());
                prop_assert!(problem.status == 400);
            }
        }
    }

    #[test]
    fn what_is_taken_is_taken_alike_again(body in any_json()) {
        if let (Ok(one), Ok(two)) = (parse(&body, context()), parse(&body, context())) {
            prop_assert_eq!(one.body_hash, two.body_hash);
            let spec = |action: &NewAction| action.session.as_ref().map(|new| -> SessionSpec { new.spec.clone() });
            prop_assert_eq!(spec(&one), spec(&two));
        }
    }
}
