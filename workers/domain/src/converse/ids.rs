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

/// Of a record in the log of a conversation.
pub fn record_id(turn: &TurnId, what: &str) -> String {
    derived(turn.as_str(), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_are_bounded_and_differ() {
        let long = "x".repeat(ID_BYTES_MAX);
        let (a, b) = (operation_id(&long, "1.1"), operation_id(&long, "1.2"));
        assert!(a != b && a.as_str().len() <= ID_BYTES_MAX);
        assert_eq!(operation_id("t1", "1.2").as_str(), "t1.1.2");
        assert_eq!(message_id(&TurnId::parse("t1").unwrap(), 3).as_str(), "t1.m3");
    }
}
