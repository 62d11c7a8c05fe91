//! What the archive keeps of a log: all that a transcript shows, as messages, and the moves of turns with the
//! results of their tools (SPEC K-08). What models and tools made it keeps as it is, too: contexts, replies,
//! results, and records of providers' calls (SPEC C-PRV-08). Those are most of a log, and SQL lets go of their
//! bodies after a while: such a record is *light*.

use std::collections::{HashMap, HashSet};

use schemas::conversation::{LogKind, LogRecord, LogRow, Message};
use schemas::id::{AgentId, ConversationId, Namespace, SessionId, TurnId};
use schemas::json::Json;

use super::transcript::message_view;
use crate::failure::Failure;

/// Kinds of what models and tools made. What was said stays whole in SQL: a message that comes again is compared with
/// the first one. So do summaries, which contexts are made of however old they are, and what is small anyway.
pub const HEAVY: &[LogKind] =
    &[LogKind::Assembly, LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult, LogKind::ProviderCall];

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
    /// The number of the reply within its turn; 0 where a late result of an earlier release does not tell.
    pub sequence: u64,
    pub reasoning: Option<String>,
    pub tool_calls: Option<Json>,
    pub tool_results: Option<Json>,
    /// As the provider gave it.
    pub raw: Option<Json>,
}

/// A record as it is, at its place.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptRecord {
    pub place: LogPlace,
    pub record: LogRecord,
}

/// The body of a record of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptBody {
    pub offset: u64,
    pub id: String,
    pub body: Json,
}

/// Places and ids of records, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordIds {
    pub messages: Vec<(u64, String)>,
    pub moves: Vec<(u64, String)>,
    pub records: Vec<(u64, String)>,
}

/// What is kept of some records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptRecords {
    pub messages: Vec<KeptMessage>,
    pub moves: Vec<KeptMove>,
    /// Those of [`HEAVY`] kinds, whole.
    pub records: Vec<KeptRecord>,
}

impl KeptRecords {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.moves.is_empty() && self.records.is_empty()
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
        if let LogKind::Move | LogKind::ToolResult | LogKind::AsyncResult = record.kind {
            self.moves.push(kept_move(place, record));
        }
        self.add_whole(place, row);
        Ok(())
    }

    /// Adds one record as it is, if it is of a kind that SQL lets go of.
    pub fn add_whole(&mut self, place: &LogPlace, row: &LogRow) {
        if HEAVY.contains(&row.record.kind) && light_bytes(&row.record).is_none() {
            self.records.push(KeptRecord { place: place.clone(), record: row.record.clone() });
        }
    }

    /// Where they are, and their ids.
    pub fn ids(&self) -> RecordIds {
        let messages = self.messages.iter().map(|kept| (kept.place.offset, kept.message.message_id.to_string()));
        let moves = self.moves.iter().map(|kept| (kept.place.offset, kept.id.clone()));
        let records = self.records.iter().map(|kept| (kept.place.offset, kept.record.id.clone()));
        RecordIds { messages: messages.collect(), moves: moves.collect(), records: records.collect() }
    }
}

/// Of a light record: how many bytes its body has. SQL has that number in its place; the bodies of
/// these kinds are objects.
pub fn light_bytes(record: &LogRecord) -> Option<usize> {
    if HEAVY.contains(&record.kind) { record.body.as_str().parse().ok() } else { None }
}

/// Ends a page before it has more bytes of bodies, as if no record of it were light; one row stays.
pub fn cut(rows: &mut Vec<LogRow>, bytes: usize) {
    let mut taken = 0_usize;
    let fits = rows.iter().take_while(|row| {
        let own = light_bytes(&row.record).unwrap_or(row.record.body.as_str().len());
        taken = taken.saturating_add(own);
        taken <= bytes
    });
    let fits = fits.count();
    rows.truncate(fits.max(1));
}

/// The offsets of the light ones.
pub fn light(rows: &[LogRow]) -> Vec<u64> {
    rows.iter().filter(|row| light_bytes(&row.record).is_some()).map(|row| row.offset).collect()
}

/// The first and the last offset of the light ones, if turns of theirs called tools: other replies are told by their
/// messages, and need no body.
pub fn light_calls(rows: &[LogRow]) -> Option<(u64, u64)> {
    let light = || rows.iter().filter(|row| light_bytes(&row.record).is_some());
    let turns: HashSet<&TurnId> = light().filter_map(|row| row.record.turn_id.as_ref()).collect();
    let is_result = |row: &LogRow| matches!(row.record.kind, LogKind::ToolResult | LogKind::AsyncResult);
    let is_of_these = |row: &LogRow| row.record.turn_id.as_ref().is_some_and(|turn| turns.contains(turn));
    if !rows.iter().any(|row| is_result(row) && is_of_these(row)) {
        return None;
    }
    let offsets = || light().map(|row| row.offset);
    Some((offsets().min()?, offsets().max()?))
}

/// Leaves out all of [`HEAVY`] kinds up to the newest light one: replies and results are told together, or not.
pub fn without_light(rows: &mut Vec<LogRow>) {
    let newest = light(rows).into_iter().max().unwrap_or(0);
    rows.retain(|row| row.offset > newest || !HEAVY.contains(&row.record.kind));
}

/// Gives light records their bodies, as far as those are there.
pub fn fill(rows: &mut [LogRow], bodies: Vec<KeptBody>) {
    // By the id, too: a database that lost its newest commits has other records in their places since.
    let by_record = bodies.into_iter().map(|kept| ((kept.offset, kept.id), kept.body));
    let mut bodies: HashMap<(u64, String), Json> = by_record.collect();
    for row in rows.iter_mut().filter(|row| light_bytes(&row.record).is_some()) {
        if let Some(body) = bodies.remove(&(row.offset, row.record.id.clone())) {
            row.record.body = body;
        }
    }
}

fn kept_move(place: &LogPlace, record: &LogRecord) -> KeptMove {
    let body = record.body.to_value();
    let given = |name: &str| body.get(name).filter(|value| !value.is_null());
    let is_result = matches!(record.kind, LogKind::ToolResult | LogKind::AsyncResult);
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
        tool_results: is_result.then(|| Json::of(&[&body])),
        raw: given("raw").map(Json::of),
    }
}
