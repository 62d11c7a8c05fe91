//! Helpers for the monikers' tests, and what holds for all of them.

use proptest::prelude::*;
use schemas::frame::{FrameIn, FrameOut, StepToken};
use schemas::id::ActionId;
use schemas::json::Json;
use schemas::session::SessionSpec;
use serde_json::{Value, json};

use super::*;

pub fn spec(moniker: &str, config: Value) -> SessionSpec {
    SessionSpec {
        moniker: moniker.to_owned(),
        task: None,
        config: Json::of(&config),
        stop_on_done: true,
        max_steps: None,
        max_runtime_ms: None,
        loop_interval_ms: 0,
        conversation_id: None,
        parent: None,
    }
}

pub fn frame(step: &str, state: Value, guidance: Option<Value>) -> FrameIn {
    FrameIn { step: StepToken::parse(step).expect("a token"), state, guidance }
}

pub fn arrival(payload: Value) -> Arrival {
    Arrival { action_id: ActionId::parse("a-1").expect("an id"), kind: ArrivalKind::Input, payload, accepted_at_ms: 1 }
}

pub fn decide(
    moniker: &dyn Moniker,
    spec: &SessionSpec,
    frame: &FrameIn,
    arrival: Option<&Arrival>,
    outcomes: &[Outcome],
) -> Decision {
    with_input(spec, frame, arrival, outcomes, |input| moniker.decide(input))
}

/// Asks something of a step of the session `s-1` of `agent-1`.
pub fn with_input<T>(
    spec: &SessionSpec,
    frame: &FrameIn,
    arrival: Option<&Arrival>,
    outcomes: &[Outcome],
    ask: impl FnOnce(&StepInput<'_>) -> T,
) -> T {
    let session = SessionKey::new(schemas::id::Namespace::default_ns(), SessionId::parse("s-1").expect("an id"));
    let agent = AgentId::parse("agent-1").expect("an id");
    ask(&StepInput { session: &session, agent: &agent, frame, spec, arrival, answer: None, outcomes })
}

pub fn finish(
    moniker: &dyn Moniker,
    spec: &SessionSpec,
    frame: &FrameIn,
    arrival: Option<&Arrival>,
    outcomes: &[Outcome],
) -> (FrameOut, bool) {
    match decide(moniker, spec, frame, arrival, outcomes) {
        Decision::Finish { out, took_arrival } => (out, took_arrival),
        other => panic!("expected a finished step, got {other:?}"),
    }
}

#[test]
fn names_are_found_and_unique() {
    for moniker in ALL {
        let same = ALL.iter().filter(|other| other.name() == moniker.name()).count();
        assert_eq!(same, 1, "{}", moniker.name());
        assert!(find(moniker.name()).is_some());
    }
    assert!(find("").is_none() && find("Count").is_none());
}

#[test]
fn a_config_that_is_no_object_is_refused_by_all() {
    for moniker in ALL {
        let problems = moniker.check(&spec(moniker.name(), json!([1])), &json!({}));
        assert!(problems.iter().any(|p| p.field == "payload.config"), "{}: {problems:?}", moniker.name());
    }
}

#[test]
fn unknown_settings_are_named_by_all() {
    for moniker in ALL {
        let problems = moniker.check(&spec(moniker.name(), json!({"no_such": 1})), &json!({}));
        assert!(problems.iter().any(|p| p.field == "payload.config.no_such"), "{}: {problems:?}", moniker.name());
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é🦀]{0,12}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("n".to_owned()),
        Just("set".to_owned()),
        Just("state".to_owned()),
        Just("text".to_owned()),
        Just("next_step".to_owned()),
        Just("done".to_owned()),
        Just("name".to_owned()),
        Just("subject".to_owned()),
        Just("step".to_owned()),
        "[a-z]{1,6}",
    ];
    leaf.prop_recursive(3, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // Whatever the state, the settings and the world's answers: an answer, never a panic, and a
    // finished step is always that of the token it was asked for.
    #[test]
    fn any_frame_gets_an_answer(
        which in 0..ALL.len(),
        config in any_json(),
        state in any_json(),
        guidance in prop::option::of(any_json()),
        payload in prop::option::of(any_json()),
        answers in prop::collection::vec(any_json(), 0..3),
        as_text in any::<bool>(),
    ) {
        let moniker = ALL[which];
        let mut spec = spec(moniker.name(), config);
        spec.task = Some("do it".to_owned());
        moniker.check(&spec, &state);
        let frame = frame("review/1", moniker.initial_state(&spec, state), guidance);
        let arrival = payload.map(arrival);
        let outcomes: Vec<Outcome> = answers
            .into_iter()
            .map(|a| Outcome::Ok(if as_text { json!({"text": a.to_string()}) } else { a }))
            .collect();
        match decide(moniker, &spec, &frame, arrival.as_ref(), &outcomes) {
            Decision::Finish { out, took_arrival } | Decision::Emit { out, took_arrival, .. } => {
                prop_assert_eq!(out.step, frame.step);
                prop_assert!(!took_arrival || arrival.is_some());
            }
            Decision::Fail { message, .. } => prop_assert!(!message.is_empty()),
            Decision::Refuse { message, .. } => prop_assert!(!message.is_empty() && arrival.is_some()),
            Decision::Perform(_) | Decision::AwaitInput | Decision::AwaitOperation => {}
        }
    }
}
