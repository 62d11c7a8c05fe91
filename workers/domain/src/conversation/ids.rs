//! Ids that are derived from what causes them, so that a repeated request causes the same.

use schemas::id::{ActionId, AgentId, ConversationId, MessageId, Namespace, ParticipantId, SessionId};
use schemas::id::{TurnId, UserId};
use schemas::limits::ID_BYTES_MAX;

use crate::action::hash;

/// A prefix and half a SHA-256 of the parts, between which stands what no id contains.
fn derived(prefix: &str, parts: &[&str]) -> String {
    let hex = hash::hex(&hash::sha256(&parts.join("/")));
    format!("{prefix}-{}", &hex[..32])
}

macro_rules! derive_id {
    ($type:ident, $prefix:literal, $($part:expr),+) => {
        $type::parse(&derived($prefix, &[$($part),+])).expect("hex digits are of the alphabet of ids")
    };
}

/// The action by which a message reaches a session, whatever becomes of it there.
pub fn delivery(ns: &Namespace, conversation: &ConversationId, message: &MessageId, session: &SessionId) -> ActionId {
    derive_id!(ActionId, "message", ns.as_str(), conversation.as_str(), message.as_str(), session.as_str())
}

/// The turn that a message starts at a session.
pub fn turn(ns: &Namespace, conversation: &ConversationId, message: &MessageId, session: &SessionId) -> TurnId {
    derive_id!(TurnId, "turn", ns.as_str(), conversation.as_str(), message.as_str(), session.as_str())
}

/// The `nth` seat of an agent in the request that creates a conversation.
pub fn seat(ns: &Namespace, conversation: &ConversationId, agent: &AgentId, nth: usize) -> ParticipantId {
    derive_id!(ParticipantId, "agent", ns.as_str(), conversation.as_str(), agent.as_str(), &nth.to_string())
}

/// The seat of a user.
pub fn user_seat(ns: &Namespace, conversation: &ConversationId, user: &UserId) -> ParticipantId {
    derive_id!(ParticipantId, "user", ns.as_str(), conversation.as_str(), user.as_str())
}

/// The session of an agent's seat.
pub fn session(ns: &Namespace, conversation: &ConversationId, seat: &ParticipantId) -> SessionId {
    derive_id!(SessionId, "session", ns.as_str(), conversation.as_str(), seat.as_str())
}

/// The action that creates the session of a seat.
pub fn creation(ns: &Namespace, conversation: &ConversationId, seat: &ParticipantId) -> ActionId {
    derive_id!(ActionId, "seat", ns.as_str(), conversation.as_str(), seat.as_str())
}

/// The `nth` message that a conversation begins with.
pub fn first_message(ns: &Namespace, conversation: &ConversationId, nth: usize) -> MessageId {
    derive_id!(MessageId, "first", ns.as_str(), conversation.as_str(), &nth.to_string())
}

/// The action that cancels a turn.
pub fn cancellation(ns: &Namespace, turn: &TurnId) -> ActionId {
    derive_id!(ActionId, "cancel", ns.as_str(), turn.as_str())
}

/// The name of a token as the id of a user: what an id cannot hold becomes a dash.
pub fn user_of(name: &str) -> UserId {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
    let text: String = name.chars().map(|c| if allowed(c) { c } else { '-' }).take(ID_BYTES_MAX).collect();
    UserId::parse(&text).unwrap_or_else(|_| UserId::parse("user").expect("it is of the alphabet of ids"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_for_the_same_cause_only() {
        let (ns, other) = (Namespace::default_ns(), Namespace::parse("other").unwrap());
        let conversation = ConversationId::parse("c1").unwrap();
        let (message, session) = (MessageId::parse("m1").unwrap(), SessionId::parse("s1").unwrap());
        let id = delivery(&ns, &conversation, &message, &session);
        assert_eq!(id, delivery(&ns, &conversation, &message, &session));
        assert_ne!(id, delivery(&other, &conversation, &message, &session));
        assert_ne!(
            id.as_str()[8..],
            turn(&ns, &conversation, &MessageId::parse("m2").unwrap(), &session).as_str()[5..]
        );
    }

    #[test]
    fn any_name_makes_a_user() {
        assert_eq!(user_of("ana").as_str(), "ana");
        assert_eq!(user_of("Ana María / ops").as_str(), "Ana-Mar-a---ops");
        assert_eq!(user_of("").as_str(), "user");
        assert_eq!(user_of(&"x".repeat(500)).as_str().len(), ID_BYTES_MAX);
    }
}
