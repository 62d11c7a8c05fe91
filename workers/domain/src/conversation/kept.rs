//! What the archive keeps of a log: all that a transcript shows, as messages, and the moves of turns with the
//! results of their tools (SPEC K-08). The rest of a log is the bookkeeping of turns.

use schemas::conversation::{LogKind, LogRecord, LogRow, Message};
use schemas::id::{AgentId, ConversationId, Namespace, SessionId, TurnId};
use schemas::json::Json;

use super::transcript::{EVERYTHING, message_view};
use crate::failure::Failure;

/// Kinds of which the archive keeps something.
pub const KINDS: &[LogKind] = EVERYTHING;

/// A place in the log of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPlace {
    pub namespace: Namespace,
    pub conversation_id: ConversationId,
    pub offset: u64,
}

impl LogPlace {
    pub fn is_in_log_of(&self, other: &Self) -> bool {
        (&self.namespace, &self.conversation_id) == (&other.namespace, &other.conversation_id)
    }
}

/// Records of one log that follow each other, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    pub first: LogPlace,
    /// The offset of the last one.
    pub upto: u64,
}

/// A message at its place.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptMessage {
    pub place: LogPlace,
    pub at_ms: i64,
    pub message: Message,
}

/// A reply of a model, or a result of one of its tools: that may come much later, and has a row of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptMove {
    pub place: LogPlace,
    pub at_ms: i64,
    pub id: String,
    pub turn_id: Option<TurnId>,
    pub agent_id: Option<AgentId>,
    pub session_id: Option<SessionId>,
    /// The number of the reply within its turn.
    pub sequence: u64,
    pub reasoning: Option<String>,
    pub tool_calls: Option<Json>,
    pub tool_results: Option<Json>,
    /// As the provider gave it.
    pub raw: Option<Json>,
}

/// Places and ids of records, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordIds {
    pub messages: Vec<(u64, String)>,
    pub moves: Vec<(u64, String)>,
}

/// What is kept of some records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptRecords {
    pub messages: Vec<KeptMessage>,
    pub moves: Vec<KeptMove>,
}

impl KeptRecords {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.moves.is_empty()
    }

    /// Adds what is kept of one record.
    ///
    /// # Errors
    /// It should be a message, and is none.
    pub fn add(&mut self, place: &LogPlace, row: &LogRow) -> Result<(), Failure> {
        let record = &row.record;
        match message_view(row) {
            Some(view) => {
                let (place, at_ms) = (place.clone(), record.at_ms);
                self.messages.push(KeptMessage { place, at_ms, message: view.message });
            }
            None if record.kind == LogKind::Message => return Err(Failure::internal("its body is no message")),
            None => {}
        }
        if let LogKind::Move | LogKind::ToolResult = record.kind {
            self.moves.push(kept_move(place, record));
        }
        Ok(())
    }

    /// Where they are, and their ids.
    pub fn ids(&self) -> RecordIds {
        let messages = self.messages.iter().map(|kept| (kept.place.offset, kept.message.message_id.to_string()));
        let moves = self.moves.iter().map(|kept| (kept.place.offset, kept.id.clone()));
        RecordIds { messages: messages.collect(), moves: moves.collect() }
    }
}

fn kept_move(place: &LogPlace, record: &LogRecord) -> KeptMove {
    let body = record.body.to_value();
    let given = |name: &str| body.get(name).filter(|value| !value.is_null());
    let calls = given("tool_calls").filter(|calls| calls.as_array().is_some_and(|calls| !calls.is_empty()));
    KeptMove {
        place: place.clone(),
        at_ms: record.at_ms,
        id: record.id.clone(),
        turn_id: record.turn_id.clone(),
        agent_id: record.agent_id.clone(),
        session_id: record.session_id.clone(),
        sequence: body["move"].as_u64().unwrap_or_default(),
        reasoning: given("reasoning").map(|said| said.as_str().map_or_else(|| said.to_string(), str::to_owned)),
        tool_calls: calls.map(Json::of),
        tool_results: (record.kind == LogKind::ToolResult).then(|| Json::of(&[&body])),
        raw: given("raw").map(Json::of),
    }
}
