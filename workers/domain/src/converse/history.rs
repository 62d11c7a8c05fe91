//! What was said in a conversation before a turn, as its model is shown it.

use std::collections::BTreeMap;

use schemas::conversation::{LogKind, LogRow, Message, MessageRole, SenderType};
use schemas::id::MessageId;
use serde_json::Value;

use super::assembly::{Gathered, Placed};
use super::earlier::exchanges;
use super::quoting::{heading, quote};
use super::summary::{Extent, Summary};
use super::voices::Voices;
use crate::chat::{self, Part, Role};
use crate::compact::shortened;
use crate::context::build_messages;

/// Of data that a step says without words, so much is shown.
const DATA_CHARS_MAX: usize = 4_096;

/// The summary that goes furthest of those that the agent made itself: what another agent has summed up
/// lies in that one's memory.
pub(super) fn newest_summary(gathered: &Gathered) -> Option<(String, Summary)> {
    let rows = gathered.history.iter().filter(|row| row.record.kind == LogKind::Summary);
    let own = rows.filter(|row| row.record.agent_id.as_ref() == Some(&gathered.agent));
    let read = own.filter_map(|row| Some((row.record.id.clone(), row.record.body.to::<Summary>().ok()?)));
    read.filter(|(_, summary)| summary.scope == Extent::Conversation).max_by_key(|(_, summary)| summary.upto)
}

/// The messages behind `upto` that the model is shown, by their places in the log.
pub(super) fn spoken(gathered: &Gathered, upto: u64) -> BTreeMap<u64, Message> {
    let noted = noted(gathered);
    let rows = gathered.history.iter().filter(|row| row.offset > upto);
    let said = rows.filter_map(|row| Some((row.offset, said_before(gathered, row)?)));
    said.filter(|(_, message)| !noted.contains(&message.message_id)).collect()
}

/// What was said before, behind `summary_at` messages: the summary, working memory, memories that were
/// found, and the messages and calls that the summary does not stand for. Beside them, which of them may be
/// summarised: a call and its results have one place, so they go together.
pub(super) fn told(
    gathered: &Gathered,
    summary: Option<&Summary>,
    (mut spoken, voices): (BTreeMap<u64, Message>, &Voices<'_>),
    summary_at: usize,
) -> (Vec<chat::Message>, Vec<Placed>) {
    let upto = summary.map_or(0, |summary| summary.upto);
    let mut told: Vec<(Option<&LogRow>, chat::Message)> =
        summary.iter().map(|summary| (None, summary.message())).collect();
    let mut exchanges = exchanges(gathered, upto);
    for row in gathered.history.iter().filter(|row| row.offset > upto) {
        if let Some(messages) = exchanges.remove(&row.offset) {
            told.extend(messages.into_iter().map(|message| (Some(row), message)));
        } else if let Some(message) = spoken.remove(&row.offset) {
            told.push((Some(row), as_chat(&message, voices)));
        }
    }
    let leading = told.iter().take_while(|(_, message)| message.role == Role::System).count();
    if !gathered.found.is_empty() {
        let found = gathered.found.join("\n- ");
        told.insert(leading, (None, chat::Message::text(Role::User, format!("[Memories that may help]\n- {found}"))));
    }
    let plain: Vec<chat::Message> = told.iter().map(|(_, message)| message.clone()).collect();
    let messages = build_messages(&gathered.blocks, &plain);
    // Working memory stands behind what leads.
    let added = messages.len() - plain.len();
    let open_from = open_from(gathered);
    let placed = told.iter().enumerate().filter_map(|(n, (row, _))| {
        let row = row.filter(|row| row.offset < open_from)?;
        let at = summary_at + n + if n < leading { 0 } else { added };
        Some(Placed { at, offset: row.offset, at_ms: row.record.at_ms })
    });
    let placed = placed.collect();
    (messages, placed)
}

/// What a record says that is neither this turn's nor being answered by another.
fn said_before(gathered: &Gathered, row: &LogRow) -> Option<Message> {
    // What the turn itself has said is told behind its input.
    let is_own = row.record.turn_id.as_ref() == Some(&gathered.turn);
    let message = Some(row).filter(|row| row.record.kind == LogKind::Message && !is_own)?.record.body.to::<Message>();
    let is_open = |id: &MessageId| *id == gathered.input.message_id || gathered.in_work.contains(id);
    message.ok().filter(|message| !is_open(&message.message_id))
}

/// Messages that the turn is told as notes, where they came.
fn noted(gathered: &Gathered) -> Vec<MessageId> {
    let notes = gathered.history.iter().filter(|row| row.record.kind == LogKind::Note);
    let own = notes.filter(|row| row.record.turn_id.as_ref() == Some(&gathered.turn));
    own.filter_map(|row| MessageId::parse(row.record.body.to_value().get("message_id")?.as_str()?).ok()).collect()
}

/// From here on no summary may reach: a message that a turn is at work on stays for those after it, and
/// is part of no summary.
fn open_from(gathered: &Gathered) -> u64 {
    let is_open = |id: &str| {
        id == gathered.input.message_id.as_str() || gathered.in_work.iter().any(|message| message.as_str() == id)
    };
    let open = gathered.history.iter().filter(|row| is_open(&row.record.id));
    open.map(|row| row.offset).min().unwrap_or(u64::MAX)
}

/// How a model is shown what somebody said: the words of other agents come as a user's, by name.
fn as_chat(message: &Message, voices: &Voices<'_>) -> chat::Message {
    // A step of an agent without turns may say data alone.
    let data = || message.data.as_ref().map(|data| shortened(&data.to_string(), DATA_CHARS_MAX));
    let text = || message.text.clone().or_else(data).unwrap_or_default();
    let said = match message.sender_type {
        SenderType::Agent if voices.is_own(message) => return chat::Message::text(Role::Assistant, text()),
        SenderType::System if message.role == MessageRole::System => return chat::Message::text(Role::System, text()),
        SenderType::Agent => vec![Part::text(text())],
        SenderType::User | SenderType::System => parts(message),
    };
    match voices.label(message) {
        Some(who) => chat::Message::new(Role::User, labelled(&who, said)),
        None => chat::Message { name: message.name.clone(), ..chat::Message::new(Role::User, said) },
    }
}

fn labelled(who: &str, mut parts: Vec<Part>) -> Vec<Part> {
    let label = format!("[{who}]: ");
    if let Some(Part::Text { text, .. }) = parts.first_mut() {
        text.insert_str(0, &label);
    } else {
        parts.insert(0, Part::text(label));
    }
    parts
}

pub(super) fn input(gathered: &Gathered, voices: &Voices<'_>) -> chat::Message {
    let mut shown = as_chat(&gathered.input, voices);
    if shown.role != Role::User {
        shown = chat::Message::text(Role::User, gathered.input.text.clone().unwrap_or_default());
    }
    if let Some(replied) = gathered.replied.as_ref().and_then(quote) {
        shown.content.insert(0, Part::text(heading(&replied)));
    }
    shown
}

/// A message's parts; a text is one part.
fn parts(message: &Message) -> Vec<Part> {
    let structured = message.content.clone().and_then(|content| serde_json::from_value::<Vec<Part>>(content).ok());
    structured.filter(|parts| !parts.is_empty()).unwrap_or_else(|| {
        let data = message.data.as_ref().map(Value::to_string);
        vec![Part::text(message.text.clone().or(data).unwrap_or_default())]
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schemas::id::AgentId;
    use serde_json::json;

    use super::*;

    /// What a step of the agent `count` says, as `ben` is shown it.
    fn shown(more: &Value) -> (Role, Vec<Part>) {
        let mut message = json!({"message_id": "s.iteration.1", "sender_type": "agent", "role": "assistant",
                                 "agent_id": "count", "event_type": "utterance"});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let me = AgentId::parse("ben").unwrap();
        let voices = Voices { me: &me, is_delegate: false, people: BTreeSet::new(), agents: BTreeSet::new() };
        let message = as_chat(&serde_json::from_value(message).unwrap(), &voices);
        (message.role, message.content)
    }

    fn said(role: Role, text: &str) -> (Role, Vec<Part>) {
        (role, vec![Part::text(text)])
    }

    /// Agents without turns say what their steps say, and that may be data.
    #[test]
    fn what_other_agents_say_in_data_is_shown_like_words() {
        assert_eq!(shown(&json!({"text": "7", "data": [1]})), said(Role::User, "[count]: 7"));
        assert_eq!(shown(&json!({"data": {"n": 7}})), said(Role::User, "[count]: {\"n\":7}"));
        assert_eq!(shown(&json!({"data": {"n": 7}, "agent_id": "ben"})), said(Role::Assistant, "{\"n\":7}"));
    }

    /// Whole, the data of one step could be more than all that a model takes.
    #[test]
    fn of_long_data_a_model_is_shown_the_beginning_and_the_end() {
        // With its quotes it is as long as may be.
        let most = "x".repeat(DATA_CHARS_MAX - 2);
        assert_eq!(shown(&json!({ "data": most })), said(Role::User, &format!("[count]: \"{most}\"")));
        let (half, longer) = ("x".repeat(DATA_CHARS_MAX / 2 - 1), "x".repeat(DATA_CHARS_MAX - 1));
        let short = format!("\"{half}\n(… 1 characters left out …)\n{half}\"");
        assert_eq!(shown(&json!({ "data": longer })), said(Role::User, &format!("[count]: {short}")));
        assert_eq!(shown(&json!({ "data": longer, "agent_id": "ben" })), said(Role::Assistant, &short));
        let words = shown(&json!({ "text": longer, "data": longer }));
        assert_eq!(words, said(Role::User, &format!("[count]: {longer}")), "words are shown as they were said");
    }
}
