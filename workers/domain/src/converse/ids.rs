//! Ids of what turns and steps cause: derived, so that they are the same after a crash.

use std::fmt::Display;

use schemas::id::{ActionId, ConversationId, MessageId, OperationId, ParticipantId, SessionId, TurnId};
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

/// What a record of a turn, of a participant or of a step is of. No record's id is made without one, so all of them are
/// reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word(&'static str);

impl Word {
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

macro_rules! words {
    ($($name:ident = $word:literal,)*) => {
        $(pub const $name: Word = Word($word);)*
        const WORDS: &[Word] = &[$($name),*];
    };
}

words! {
    AGENT_CALL_COMPLETED = "agent_call_completed",
    AGENT_CALL_STARTED = "agent_call_started",
    ASSEMBLE = "assemble",
    ASSEMBLY_FAILED = "context_assembly.failed",
    CALL = "call",
    COMPACTED = "compacted",
    COMPACTION_FAILED = "compaction.failed",
    CONVERSATION_TURN = "conversation_turn",
    EXTRACT = "extract",
    EXTRACTION_FAILED = "memory_extraction.failed",
    ITERATION = "iteration",
    LATE = "late",
    MOVE = "move",
    NOTE = "note",
    PARTICIPANT_JOINED = "participant_joined",
    PARTICIPANT_LEFT = "participant_left",
    RESULT = "result",
    SUMMARY = "summary",
    TOOL_FAILED = "tool.failed",
    TURN_COMPLETED = "turn.completed",
    TURN_FAILED = "turn.failed",
}

/// Id and name of a conversation's first event, whichever turn tells it.
pub const STARTED: &str = "conversation_started";
/// Before the number of a reply.
const REPLY: &str = "m";

/// Of the message that the `number`th reply of a turn becomes; pieces of it are streamed under it.
pub fn message_id(turn: &TurnId, number: u32) -> MessageId {
    MessageId::parse(&derived(turn.as_str(), &format!("{REPLY}{number}"))).expect("a derived id is an id")
}

/// Of the message that a step becomes whose moniker has no turns.
pub fn iteration_message_id(session: &SessionId, iteration: u64) -> MessageId {
    let id = |base: &str| format!("{base}.{}.{iteration}", ITERATION.0);
    let text = id(session.as_str());
    // Of a long one the hash, so that the last parts are there, which reserve it.
    let is_short = text.len() <= ID_BYTES_MAX;
    let text = if is_short { text } else { id(&hash::hex(&hash::sha256(session.as_str()))) };
    MessageId::parse(&text).expect("a derived id is an id")
}

/// Whether an id of somebody else could be one that a turn derives: the log has one space for all.
pub fn is_reserved(id: &str) -> bool {
    let is_word = |rest: &str| {
        let word = first(rest);
        let number = word.strip_prefix(REPLY).unwrap_or_default();
        let is_reply = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_reply || WORDS.iter().any(|known| first(known.0) == word)
    };
    id == STARTED || id.char_indices().any(|(at, c)| c == '.' && is_word(&id[at + 1..]))
}

/// Up to the first dot.
fn first(text: &str) -> &str {
    text.split_once('.').map_or(text, |(first, _)| first)
}

/// The message that an input becomes which was not posted as one.
pub fn input_message_id(action: &ActionId) -> MessageId {
    let text = action.as_str();
    let text = if is_reserved(text) { hash::hex(&hash::sha256(text)) } else { text.to_owned() };
    MessageId::parse(&text).expect("both are ids")
}

/// Of a record in the log of a conversation, one of its kind in the turn.
pub fn record_id(turn: &TurnId, word: Word) -> String {
    derived(turn.as_str(), word.0)
}

/// The same for one of several.
pub fn record_id_of(turn: &TurnId, word: Word, which: impl Display) -> String {
    derived(turn.as_str(), &format!("{}.{which}", word.0))
}

/// Of the record of a turn's context, as it is made behind so many replies.
pub fn assembly_id(turn: &TurnId, replies: u32) -> String {
    if replies == 0 { record_id(turn, ASSEMBLE) } else { record_id_of(turn, ASSEMBLE, replies) }
}

/// Of the record that tells that somebody came or went, which each participant does once.
pub fn participant_record_id(participant: &ParticipantId, word: Word) -> String {
    // Always a hash, so that it is short enough for its last part, which reserves it.
    format!("{}.{}", hash::hex(&hash::sha256(participant.as_str())), word.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_turn_derives_is_reserved() {
        let turn = TurnId::parse("t.1").unwrap();
        let of_turn = WORDS.iter().flat_map(|word| [record_id(&turn, *word), record_id_of(&turn, *word, "3.c1")]);
        let derived: Vec<String> =
            of_turn.chain([message_id(&turn, 0).to_string(), message_id(&turn, 12).to_string()]).collect();
        for id in derived.iter().map(String::as_str).chain([
            STARTED,
            "t.result.x.1",
            "t.tool.failed.9",
            "t.1.call",
            "t.compact.1.call",
        ]) {
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

    #[test]
    fn each_step_of_each_session_has_an_id_for_its_message_that_is_reserved() {
        let session = |text: &str| SessionId::parse(text).unwrap();
        assert_eq!(iteration_message_id(&session("s-1"), 7).as_str(), "s-1.iteration.7");
        let long = ["x", "y"].map(|letter| session(&letter.repeat(ID_BYTES_MAX)));
        let all = [&session("s"), &session("s.iteration.1"), &long[0], &long[1]]
            .map(|session| [0, 1, u64::MAX].map(|iteration| iteration_message_id(session, iteration)));
        let mut ids: Vec<_> = all.into_iter().flatten().collect();
        assert!(ids.iter().all(|id| is_reserved(id.as_str()) && id.as_str().len() <= ID_BYTES_MAX), "{ids:?}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 12);
    }
}
