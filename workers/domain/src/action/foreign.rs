//! Actions that come as messages of other programs: the same body as over HTTP, with `namespace`
//! beside the other fields, and nobody who waits for an answer.
//!
//! A message that comes twice must act once, so it needs a name that is the same both times:
//! `action_id` in the body, else the message id of the broker's protocol. A message with neither is
//! an action of its own each time it is delivered: two equal ones may well both be meant.

use schemas::action::NewAction;
use schemas::id::{ActionId, AgentId, Namespace, SessionId};
use schemas::limits::{ACTION_BYTES_MAX, ERROR_CHARS_MAX};
use schemas::problem::{Code, Problem};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{ParseContext, fields};

/// Who acts, unless the message names somebody.
const ACTOR: &str = "amqp";

/// Ids for what a message does not name itself.
#[derive(Debug, Clone)]
pub struct Ids {
    pub action_id: ActionId,
    pub session_id: SessionId,
    pub agent_id: AgentId,
}

impl Ids {
    /// Ids out of a text that no other message is given.
    pub fn from_seed(seed: &str) -> Self {
        let text = hashed("amqp-", seed);
        Self {
            action_id: ActionId::parse(&text).expect("hex digits are of the alphabet of ids"),
            session_id: SessionId::parse(&text).expect("hex digits are of the alphabet of ids"),
            agent_id: AgentId::parse(&text).expect("hex digits are of the alphabet of ids"),
        }
    }
}

/// Checks a message as a whole; the error names every wrong field.
pub fn parse(body: &[u8], message_id: Option<&str>, fresh: Ids) -> Result<NewAction, Box<Problem>> {
    if body.len() > ACTION_BYTES_MAX {
        let what = format!("the message has {} bytes, at most {ACTION_BYTES_MAX} are allowed", body.len());
        return Err(Box::new(Problem::new(Code::TooLarge, what)));
    }
    let mut value: Value = serde_json::from_slice(body).map_err(|error| {
        Box::new(Problem::new(Code::InvalidJson, format!("The message is not well-formed JSON: {error}.")))
    })?;
    let namespace = match value.as_object_mut().and_then(|map| map.remove("namespace")) {
        None | Some(Value::Null) => Namespace::default_ns(),
        Some(Value::String(text)) => {
            Namespace::parse(&text).map_err(|error| fields::wrong("namespace", error.to_string()))?
        }
        Some(other) => {
            let what = format!("must be a string, not {}", fields::kind_of(&other));
            return Err(fields::wrong("namespace", what));
        }
    };
    let context = ParseContext {
        namespace,
        actor: ACTOR.into(),
        action_id: message_id.filter(|id| !id.is_empty()).map_or(fresh.action_id, named),
        session_id: fresh.session_id,
        agent_id: fresh.agent_id,
        idempotency_key: None,
    };
    super::parse(&value, context)
}

/// A message id is the action id if it can be one, so that its sender can look it up.
fn named(message_id: &str) -> ActionId {
    ActionId::parse(message_id).unwrap_or_else(|_| {
        ActionId::parse(&hashed("amqp-message-", message_id)).expect("hex digits are of the alphabet of ids")
    })
}

fn hashed(prefix: &str, text: &str) -> String {
    let digest = Sha256::digest(text);
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{hex}")
}

/// Why a message is buried, for whoever finds it: code, detail, and every wrong field.
pub fn reason_of(problem: &Problem) -> String {
    let mut text = refusal_of(problem.code, &problem.detail);
    for error in &problem.errors {
        // The detail of a single wrong field tells it already.
        if !text.contains(error.message.as_str()) {
            text.push_str(&format!("; {}: {}", error.field, error.message));
        }
    }
    text.chars().take(ERROR_CHARS_MAX).collect()
}

/// The same for a refusal of the ledger.
pub fn refusal_of(code: Code, detail: &str) -> String {
    format!("{}: {detail}", code.as_str()).chars().take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: &Value, message_id: Option<&str>) -> Result<NewAction, Box<Problem>> {
        parse(body.to_string().as_bytes(), message_id, Ids::from_seed("1"))
    }

    fn pause() -> Value {
        json!({"type": "pause", "session_id": "s1"})
    }

    #[test]
    fn the_name_of_a_message_is_its_own_first() {
        let fresh = Ids::from_seed("1").action_id;
        let with_id = json!({"type": "pause", "session_id": "s1", "action_id": "mine"});
        assert_eq!(read(&with_id, Some("m-7")).unwrap().action_id.as_str(), "mine");
        assert_eq!(read(&pause(), Some("m-7")).unwrap().action_id.as_str(), "m-7");
        assert_eq!(read(&pause(), Some("")).unwrap().action_id, fresh);
        assert_eq!(read(&pause(), None).unwrap().action_id, fresh);
        // Names that are no ids still name: alike for equal ones, apart for others.
        let ids = ["<a@host>", "<a@host>", "<b@host>"].map(|id| read(&pause(), Some(id)).unwrap().action_id);
        assert!(ids[0] == ids[1] && ids[0] != ids[2]);
    }

    #[test]
    fn the_namespace_is_a_field_and_no_part_of_the_action() {
        let mut body = pause();
        body["namespace"] = json!("acme");
        let action = read(&body, None).unwrap();
        assert_eq!((action.namespace.as_str(), action.actor.as_str()), ("acme", "amqp"));
        assert_eq!(read(&pause(), None).unwrap().namespace, Namespace::default_ns());
        for wrong in [json!(7), json!("a b"), json!("")] {
            body["namespace"] = wrong;
            let problem = read(&body, None).unwrap_err();
            assert_eq!(problem.errors[0].field, "namespace");
        }
    }

    #[test]
    fn a_bad_message_tells_all_that_is_wrong() {
        let problem = read(&json!({"type": "pause", "session": "s1", "urgency": "huge"}), None).unwrap_err();
        let reason = reason_of(&problem);
        assert!(reason.starts_with("invalid_request: ") && reason.contains("urgency"), "{reason}");
        assert!(reason.contains("session_id"), "{reason}");
        let garbage = parse(b"\xff{", None, Ids::from_seed("1")).unwrap_err();
        assert_eq!(garbage.code, Code::InvalidJson);
        let large = parse(&vec![b' '; ACTION_BYTES_MAX + 1], None, Ids::from_seed("1")).unwrap_err();
        assert_eq!(large.code, Code::TooLarge);
        assert_eq!(read(&json!([1]), None).unwrap_err().errors[0].field, "body");
    }
}
