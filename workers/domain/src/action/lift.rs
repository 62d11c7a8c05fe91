//! Short forms: the path names verb and target, the body is the payload (DESIGN 8).

use schemas::action::ActionType;
use schemas::problem::Problem;
use serde_json::{Map, Value, json};

use super::{ENVELOPE, fields};

/// What a path says about an action.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    Session(&'a str),
    Agent(&'a str),
    /// The body must name it.
    InBody,
}

/// Makes a whole action of a short form's body. Fields of the envelope (`action_id`, `actor`,
/// `metadata`, …) are lifted; all others are the payload, unless `payload` is given.
pub fn whole(kind: ActionType, target: Target<'_>, body: Option<Value>) -> Result<Value, Box<Problem>> {
    let given = match body {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map,
        Some(other) => {
            return Err(fields::wrong("body", format!("must be a JSON object, not {}", fields::kind_of(&other))));
        }
    };
    let (mut envelope, rest): (Map<_, _>, Map<_, _>) =
        given.into_iter().partition(|(name, _)| ENVELOPE.contains(&name.as_str()));
    if let Some(name) = rest.keys().next().filter(|_| envelope.contains_key("payload")) {
        let what = "stands beside payload; put it into payload, or leave payload out";
        return Err(fields::wrong(name, what.to_owned()));
    }
    if !rest.is_empty() {
        envelope.insert("payload".into(), Value::Object(rest));
    }
    set(&mut envelope, "type", kind.as_str())?;
    match target {
        Target::Session(id) => set(&mut envelope, "session_id", id)?,
        Target::Agent(id) => set(&mut envelope, "agent_id", id)?,
        Target::InBody => {}
    }
    Ok(Value::Object(envelope))
}

fn set(envelope: &mut Map<String, Value>, name: &str, value: &str) -> Result<(), Box<Problem>> {
    match envelope.insert(name.to_owned(), json!(value)) {
        Some(Value::Null) | None => Ok(()),
        Some(given) if given == value => Ok(()),
        Some(_) => Err(fields::wrong(name, format!("differs from {value:?} in the path; leave it out"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(target: Target<'_>, body: Value) -> Value {
        whole(ActionType::Interrupt, target, Some(body)).unwrap()
    }

    #[test]
    fn the_body_is_the_payload() {
        assert_eq!(
            ok(Target::Session("s"), json!({"guidance": {"a": 1}, "actor": "ana"})),
            json!({"type": "interrupt", "session_id": "s", "actor": "ana", "payload": {"guidance": {"a": 1}}})
        );
    }

    #[test]
    fn a_whole_payload_may_be_given() {
        let body = json!({"payload": {"actor": "of the payload"}, "metadata": {}});
        let made = ok(Target::Agent("a"), body);
        assert_eq!(made["payload"]["actor"], "of the payload");
        assert_eq!(made["agent_id"], "a");
    }

    #[test]
    fn contradictions_are_refused() {
        for (body, field) in [
            (json!({"payload": {}, "guidance": {}}), "guidance"),
            (json!({"session_id": "other"}), "session_id"),
            (json!({"type": "pause"}), "type"),
            (json!([1]), "body"),
        ] {
            let problem = whole(ActionType::Interrupt, Target::Session("s"), Some(body)).unwrap_err();
            assert_eq!(problem.errors[0].field, field);
        }
    }

    #[test]
    fn no_body_is_an_empty_payload() {
        let made = whole(ActionType::Pause, Target::Session("s"), None).unwrap();
        assert_eq!(made, json!({"type": "pause", "session_id": "s"}));
    }
}
