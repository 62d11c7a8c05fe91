//! What the log has of a turn since its assembly, as messages for its model.

use std::collections::HashMap;

use schemas::conversation::{LogKind, LogRow};
use schemas::id::{OperationId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids;
use super::quoting::{heading, quoted};
use crate::chat::{Message, Part, Role, ToolCall, ToolResult};
use crate::compact::Entry;

/// What comes beside replies: notes, and results of work in the background.
pub const BESIDE: [LogKind; 2] = [LogKind::Note, LogKind::AsyncResult];

/// Field of a note: who says it, where that is somebody else than whoever the turn answers.
pub(super) const BY: &str = "by";

/// The body of a `move` record: one recorded reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MoveRecord {
    /// Its number in the turn, from 1.
    #[serde(rename = "move")]
    pub number: u32,
    /// What it said, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Its parts as the provider wants them back.
    pub parts: Vec<Part>,
    pub finish: String,
    /// It was cut short to make room for guidance.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Calls that the model was not to wait for, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_background: Vec<(String, OperationId)>,
    /// Offset of the last record that the model was shown: what has come since is told after.
    #[serde(default)]
    pub seen: u64,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub raw: Value,
}

/// The body of an `async_result` record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LateResult {
    pub operation_id: OperationId,
    /// The reply that called; not known of calls that an earlier release has planned.
    #[serde(rename = "move", default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    pub tool: String,
    #[serde(flatten)]
    pub result: ToolResult,
}

/// Replies with the results of their calls, and what came beside them. The place of each message is the
/// number of the reply that it belongs to; 0 for what came before the first. `rows` are the turn's
/// records in the order of the log.
pub(super) fn replies(rows: &[LogRow]) -> Vec<Entry> {
    let mut fold = Fold::default();
    for row in rows {
        fold.take(row);
    }
    fold.close(u64::MAX);
    fold.messages
}

/// Id of the record that has the `number`th reply of a turn.
pub fn move_id(turn: &TurnId, number: u64) -> String {
    ids::record_id_of(turn, ids::MOVE, number)
}

/// Offset of the last record that the model of a reply was shown; 0 if the reply does not tell.
pub fn seen(reply: &LogRow) -> u64 {
    #[derive(Deserialize)]
    struct Seen {
        #[serde(default)]
        seen: u64,
    }
    reply.record.body.to::<Seen>().map_or(0, |reply| reply.seen)
}

/// How much of a turn's records came beside its replies.
pub fn heard(rows: &[LogRow]) -> u32 {
    let beside = rows.iter().filter(|row| BESIDE.contains(&row.record.kind));
    u32::try_from(beside.count()).unwrap_or(u32::MAX)
}

#[derive(Default)]
struct Fold {
    messages: Vec<Entry>,
    /// The last reply, with the results of its calls so far.
    last: Option<Last>,
    /// Number of the reply that was put down last.
    number: u64,
    /// What came since the last reply and is no result of it, with its offset.
    aside: Vec<(u64, i64, Message)>,
}

struct Last {
    reply: MoveRecord,
    results: HashMap<String, ToolResult>,
    at_ms: i64,
}

impl Fold {
    fn take(&mut self, row: &LogRow) {
        let body = &row.record.body;
        match row.record.kind {
            LogKind::Move => {
                if let Ok(reply) = body.to::<MoveRecord>() {
                    self.close(reply.seen);
                    self.last = Some(Last { reply, results: HashMap::new(), at_ms: row.record.at_ms });
                }
            }
            LogKind::ToolResult => {
                if let (Some(last), Ok(result)) = (&mut self.last, body.to::<ToolResult>()) {
                    last.results.entry(result.tool_call_id.clone()).or_insert(result);
                }
            }
            LogKind::AsyncResult => {
                if let Ok(late) = body.to::<LateResult>() {
                    self.beside(row, vec![Part::text(in_words(&late))]);
                }
            }
            LogKind::Note => {
                let note = body.to_value();
                if let Some(text) = note.get("text").and_then(Value::as_str) {
                    self.beside(row, noted(text, &note));
                }
            }
            _ => {}
        }
    }

    fn beside(&mut self, row: &LogRow, parts: Vec<Part>) {
        self.aside.push((row.offset, row.record.at_ms, Message::new(Role::User, parts)));
    }

    /// Puts down the last reply with one result for each of its calls, in the order of the calls
    /// (SPEC K-15): providers refuse a call without one. Then comes what was known at `seen`.
    fn close(&mut self, seen: u64) {
        if let Some(Last { reply, results, at_ms }) = self.last.take() {
            self.number = u64::from(reply.number);
            if !reply.parts.is_empty() {
                self.put(at_ms, Message::new(Role::Assistant, reply.parts.clone()));
            }
            let parts: Vec<Part> = reply.tool_calls.iter().map(|call| result_part(call, &reply, &results)).collect();
            if !parts.is_empty() {
                self.put(at_ms, Message::new(Role::Tool, parts));
            }
        }
        for (offset, at_ms, message) in std::mem::take(&mut self.aside) {
            if offset <= seen {
                self.put(at_ms, message);
            } else {
                self.aside.push((offset, at_ms, message));
            }
        }
    }

    fn put(&mut self, at_ms: i64, message: Message) {
        self.messages.push(Entry { key: self.number, at_ms, message });
    }
}

/// What guidance, or the note of it, has beside its text: what a user can say to a model, and nothing else, for
/// whoever sends guidance is not asked for more.
pub(super) fn parts_in(told: &Value) -> Vec<Part> {
    let parts = told.get("content").and_then(Value::as_array).into_iter().flatten();
    let read = parts.filter_map(|part| Part::deserialize(part).ok());
    read.filter(|part| matches!(part, Part::Text { signature: None, .. } | Part::Image { .. })).collect()
}

/// The text of a posted message is that of its parts, which is not told twice.
fn noted(text: &str, note: &Value) -> Vec<Part> {
    let parts = parts_in(note);
    let of_parts: String = parts.iter().filter_map(Part::as_text).collect();
    let is_told = !parts.is_empty() && of_parts == text;
    let replied = quoted(note).as_deref().map(heading).unwrap_or_default();
    let by = note.get(BY).and_then(Value::as_str).map(|by| format!("[{by}]: ")).unwrap_or_default();
    let before = format!("[Note] {replied}{by}");
    let first = if is_told { before.trim_end().to_owned() } else { format!("{before}{text}") };
    std::iter::once(Part::text(first)).chain(parts).collect()
}

fn result_part(call: &ToolCall, reply: &MoveRecord, results: &HashMap<String, ToolResult>) -> Part {
    if let Some(result) = results.get(&call.id) {
        return result.part();
    }
    let text = match reply.in_background.iter().find(|(id, _)| *id == call.id) {
        Some((_, operation)) => accepted(operation),
        None => "not carried out".to_owned(),
    };
    Part::tool_result(call.id.clone(), text, false)
}

/// SPEC K-16: the protocol is satisfied at once, the result comes as a message later.
pub(super) fn accepted(operation: &OperationId) -> String {
    format!("accepted; it goes on in the background as operation {operation}")
}

pub(super) fn in_words(late: &LateResult) -> String {
    let outcome = if late.result.success { "has finished" } else { "has failed" };
    let Part::ToolResult { content, .. } = late.result.part() else { return String::new() };
    let text: String = content.iter().filter_map(Part::as_text).collect();
    format!("[Operation {} ({}) {outcome}]\n{text}", late.operation_id, late.tool)
}
