//! The schema of messages on the ingress, by which programs in other languages make theirs, says what the
//! parser does: what one of them takes, the other one takes.

use super::schema::Schema;
use super::*;
use crate::action::{create, foreign, interrupt, reason, tool_result};

const SCHEMA: &str = include_str!("../../../../../schemas/ingress.schema.json");

/// A change of a message: a field that gets another value, or none.
#[derive(Debug, Clone)]
struct Change {
    place: Place,
    to: Option<Value>,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Envelope(&'static str),
    Payload(&'static str),
}

/// Good messages of every type: the least, and one with all there is.
fn good() -> Vec<Value> {
    vec![
        json!({"type": "create", "payload": {"moniker": "count"}}),
        json!({
            "type": "create", "namespace": "acme", "action_id": "a:1", "session_id": "s-1", "agent_id": "g_1",
            "metadata": {"from": "me"}, "urgency": "low", "actor": "me & co",
            "payload": {
                "moniker": "count", "state": {"n": 3}, "task": "count", "config": {"until": 5},
                "conversation_id": "c.1", "stop_on_done": false, "max_steps": 5, "max_runtime_s": 60, "loop_interval_ms": 0
            }
        }),
        json!({"type": "input", "agent_id": "g1", "payload": {"text": "hello"}}),
        json!({"type": "interrupt", "session_id": "s1", "payload": {"guidance": {"set": 7}, "mode": "now"}}),
        json!({"type": "pause", "session_id": "s1"}),
        json!({"type": "resume", "session_id": "s1", "urgency": "high", "payload": {"reason": "go on"}}),
        json!({"type": "destroy", "agent_id": "g1", "payload": {}}),
        json!({"type": "tool_result", "payload": {"operation_id": "op1", "result": null}}),
        json!({
            "type": "tool_result", "session_id": "s1",
            "payload": {
                "tool_call_id": "call 1", "turn_id": "t1", "success": false, "error": {"code": "x"}, "attempt": 2
            }
        }),
    ]
}

/// What a field may be changed to: something of each kind, what some field allows, what lies at the limits.
fn samples() -> Vec<Value> {
    let mut samples = vec![json!(null), json!(true), json!(false), json!(1.5), json!(-1), json!([]), json!(["x"])];
    samples.extend([json!({}), json!({"a": 1}), json!({"reason": "x"}), json!({"operation_id": "op1", "result": 1})]);
    let limits = [2_592_000_000, 315_360_000, 1_000_000_000_000_u64];
    samples.extend(limits.into_iter().flat_map(|max| [json!(max), json!(max + 1)]));
    samples.extend([json!(0), json!(1)]);
    samples.extend(ActionType::ALL.map(|kind| json!(kind.as_str())));
    let texts =
        ["", " ", "x", "a b", "now", "bulk", "high", "count", "ü", "a\nb", "\u{85}", "\u{2003}", "\u{feff}", "\0"];
    samples.extend(texts.map(|text| json!(text)));
    samples.extend(["session:", "session:s1", "Session:s1", "approval-default", "approval-default:1"].map(Value::from));
    samples.extend([128, 129, 2_000, 2_001].map(|length| json!("x".repeat(length))));
    samples
}

fn places() -> Vec<Place> {
    let envelope = ENVELOPE.iter().chain(&["namespace", "more"]).copied().map(Place::Envelope);
    let fields = [create::FIELDS, interrupt::FIELDS, reason::FIELDS, tool_result::FIELDS, &["text", "more"]];
    envelope.chain(fields.concat().into_iter().map(Place::Payload)).collect()
}

fn changed(mut body: Value, changes: &[Change]) -> Value {
    for change in changes {
        let map = body.as_object_mut().expect("a message is an object");
        let (map, name) = match change.place {
            Place::Envelope(name) => (Some(map), name),
            Place::Payload(name) => (map.entry("payload").or_insert_with(|| json!({})).as_object_mut(), name),
        };
        let Some(map) = map else { continue };
        match &change.to {
            Some(value) => drop(map.insert(name.to_owned(), value.clone())),
            None => drop(map.remove(name)),
        }
    }
    body
}

fn parsed(body: &Value) -> Result<NewAction, Box<Problem>> {
    foreign::parse(body.to_string().as_bytes(), None, foreign::Ids::from_seed("1"))
}

/// A schema does not know the monikers, nor what each of them wants to be told.
fn is_of_the_moniker(problem: &Problem) -> bool {
    let mut fields = problem.errors.iter().map(|error| error.field.as_str());
    !problem.errors.is_empty()
        && fields.all(|field| {
            field.starts_with("payload.config.")
                || field.starts_with("payload.state.")
                || (field == "payload.moniker" && problem.code == Code::UnknownMoniker)
        })
}

/// Whether both take it, or both refuse it. `None`: they differ as they may.
fn agreed(schema: &Schema, body: &Value) -> Option<bool> {
    match (parsed(body), schema.takes(body)) {
        (Ok(_), true) => Some(true),
        (Err(_), false) => Some(false),
        (Err(problem), true) if is_of_the_moniker(&problem) => None,
        (Err(problem), true) => panic!("the schema takes what is refused: {body}: {problem:?}"),
        (Ok(_), false) => panic!("the schema refuses what is taken: {body}"),
    }
}

#[test]
fn schema_and_parser_agree_on_every_change_of_a_field() {
    let schema = Schema::parse(SCHEMA);
    let (mut taken, mut refused) = (0, 0);
    for body in good() {
        assert_eq!(agreed(&schema, &body), Some(true), "{body}");
        for place in places() {
            for to in samples().into_iter().map(Some).chain([None]) {
                match agreed(&schema, &changed(body.clone(), &[Change { place, to }])) {
                    Some(true) => taken += 1,
                    Some(false) => refused += 1,
                    None => {}
                }
            }
        }
    }
    assert!(taken > 1_000 && refused > 1_000, "{taken} taken, {refused} refused");
    for body in [json!(null), json!([]), json!("create"), json!({})] {
        assert_eq!(agreed(&schema, &body), Some(false), "{body}");
    }
}

/// What the schema's description says about its limits.
#[test]
fn what_a_schema_cannot_say_is_refused_all_the_same() {
    let schema = Schema::parse(SCHEMA);
    let differing = [
        (Place::Envelope("actor"), json!("ü".repeat(100)), "actor"),
        (Place::Payload("max_steps"), json!(2.0), "payload.max_steps"),
        (Place::Payload("moniker"), json!("nobody"), "payload.moniker"),
        (Place::Payload("config"), json!({"untl": 1}), "payload.config.untl"),
    ];
    for (place, to, field) in differing {
        let body = changed(good().swap_remove(0), &[Change { place, to: Some(to) }]);
        assert!(schema.takes(&body), "{body}");
        let problem = parsed(&body).expect_err("it is refused");
        assert_eq!(problem.errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), [field]);
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    let to = prop_oneof![1 => Just(None::<Value>), 9 => proptest::sample::select(samples()).prop_map(Some)];
    (proptest::sample::select(places()), to).prop_map(|(place, to)| Change { place, to })
}

proptest! {
    #[test]
    fn schema_and_parser_agree_on_several_changes(
        body in proptest::sample::select(good()),
        changes in proptest::collection::vec(any_change(), 2..6),
    ) {
        agreed(&Schema::parse(SCHEMA), &changed(body, &changes));
    }
}
