//! Ids of what turns cause: derived, so that they are the same after a crash.

use schemas::id::{ActionId, ConversationId, MessageId, OperationId, SessionId, TurnId};
use schemas::limits::ID_BYTES_MAX;

use crate::action::hash;

/// `base.suffix`, or the hash of it when that is too long for an id.
fn derived(base: &str, suffix: &str) -> String {
    let text = format!("{base}.{suffix}");
    if text.len() <= ID_BYTES_MAX { text } else { hash::hex(&hash::sha256(&text)) }
}

macro_rules! derive_id {
    ($(#[$doc:meta])* $name:ident, $id:ident) => {
        $(#[$doc])*
        pub fn $name(base: &str, suffix: &str) -> $id {
            // Made of ids and plain words, and never too long.
            $id::parse(&derived(base, suffix)).expect("a derived id is an id")
        }
    };
}

derive_id!(action_id, ActionId);
derive_id!(conversation_id, ConversationId);
derive_id!(operation_id, OperationId);
derive_id!(session_id, SessionId);
derive_id!(turn_id, TurnId);

/// Of the message that the `number`th reply of a turn becomes; pieces of it are streamed under it.
pub fn message_id(turn: &TurnId, number: u32) -> MessageId {
    MessageId::parse(&derived(turn.as_str(), &format!("m{number}"))).expect("a derived id is an id")
}

/// Whether an id of somebody else could be one that a turn derives: the log has one space for all.
pub fn is_reserved(id: &str) -> bool {
    const WORDS: [&str; 14] = [
        "agent_call_completed",
        "agent_call_started",
        "assemble",
        "compacted",
        "compaction",
        "context_assembly",
        "conversation_turn",
        "extract",
        "late",
        "memory_extraction",
        "move",
        "note",
        "result",
        "summary",
    ];
    let is_word = |rest: &str| {
        let word = rest.split('.').next().unwrap_or(rest);
        let number = word.strip_prefix('m').unwrap_or_default();
        let is_reply = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_reply || WORDS.contains(&word) || ["turn", "tool"].contains(&word)
    };
    id.char_indices().any(|(at, c)| c == '.' && is_word(&id[at + 1..]))
}

/// The message that an input becomes which was not posted as one.
pub fn input_message_id(action: &ActionId) -> MessageId {
    let text = action.as_str();
    let text = if is_reserved(text) { hash::hex(&hash::sha256(text)) } else { text.to_owned() };
    MessageId::parse(&text).expect("both are ids")
}

/// Of a record in the log of a conversation.
pub fn record_id(turn: &TurnId, what: &str) -> String {
    derived(turn.as_str(), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_turn_derives_is_reserved() {
        let turn = TurnId::parse("t.1").unwrap();
        let derived = [message_id(&turn, 12).to_string(), record_id(&turn, "assemble"), record_id(&turn, "move.3")];
        for id in derived.iter().map(String::as_str).chain(["t.result.x.1", "t.turn.completed", "t.tool.failed.9"]) {
            assert!(is_reserved(id), "{id}");
            let action = ActionId::parse(id).unwrap();
            assert!(!is_reserved(input_message_id(&action).as_str()), "{id}");
        }
        for id in ["m1", "order.17", "mail.m", "a.mx1", "01ARZ3NDEKTSV4RRFFQ69G5FAV"] {
            assert!(!is_reserved(id) && input_message_id(&ActionId::parse(id).unwrap()).as_str() == id, "{id}");
        }
    }

    #[test]
    fn derived_ids_are_bounded_and_differ() {
        let long = "x".repeat(ID_BYTES_MAX);
        let (a, b) = (operation_id(&long, "1.1"), operation_id(&long, "1.2"));
        assert!(a != b && a.as_str().len() <= ID_BYTES_MAX);
        assert_eq!(operation_id("t1", "1.2").as_str(), "t1.1.2");
        assert_eq!(message_id(&TurnId::parse("t1").unwrap(), 3).as_str(), "t1.m3");
    }
}
