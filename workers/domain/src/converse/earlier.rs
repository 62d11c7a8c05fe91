//! Calls of tools in earlier turns, as a turn's model is shown them (SPEC K-09): each reply with the results
//! of all its calls, because no provider takes one without the other. The newest are shown, within bounds.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemas::conversation::{LogKind, LogRow};
use schemas::id::{OperationId, TurnId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::assembly::Gathered;
use super::ids;
use super::transcript::{LateResult, accepted, in_words};
use crate::chat::{Message, Part, Role, ToolCall, ToolResult, made_id};
use crate::compact::shortened;
use crate::context::{ContextBudget, estimate_messages};
use crate::tool;

/// Of what a request may have, calls of earlier turns have at most this part, and this many tokens.
const SHARE: u64 = 4;
const TOKENS_MAX: u64 = 16_000;
/// Of each text in arguments and results, so much is shown.
const TEXT_CHARS_MAX: usize = 4_096;
/// Ids of calls that every provider takes are no longer.
const ID_CHARS_MAX: usize = 40;
/// Stands behind results that no reply followed: a question right behind results would look like one of them.
const SILENCE: &str = "[Nothing more was said in this turn.]";

/// What is shown instead of a record behind `upto`, by the record's offset.
pub(super) fn exchanges(gathered: &Gathered, upto: u64) -> BTreeMap<u64, Vec<Message>> {
    let mut earlier = Earlier { gathered, rounds: Vec::new(), late: BTreeMap::new(), spoke: HashMap::new() };
    gathered.history.iter().for_each(|row| earlier.take(row));
    let mut told = earlier.told();
    told.retain(|offset, _| *offset > upto);
    let budget =
        ContextBudget { context_budget: gathered.persona.context_budget, model_max_tokens: gathered.model_max_tokens };
    newest(told, (budget.tokens() / SHARE).min(TOKENS_MAX))
}

/// What of a `move` record is told again. Thoughts and proofs are not: providers want them back within their
/// turn alone, and another model may have the next one.
#[derive(Deserialize)]
struct Called {
    #[serde(rename = "move")]
    number: u32,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    parts: Vec<Part>,
    #[serde(default)]
    in_background: Vec<(String, OperationId)>,
}

/// A reply that called tools.
struct Round<'g> {
    turn: &'g TurnId,
    called: Called,
    results: HashMap<String, ToolResult>,
    /// Of the message that its text became, or else its own.
    offset: u64,
}

struct Earlier<'g> {
    gathered: &'g Gathered,
    rounds: Vec<Round<'g>>,
    /// Results that came later, by their offsets.
    late: BTreeMap<u64, Message>,
    /// Where the agent spoke last in each turn.
    spoke: HashMap<&'g TurnId, u64>,
}

impl<'g> Earlier<'g> {
    fn take(&mut self, row: &'g LogRow) {
        let Some(turn) = self.turn_of(row) else { return };
        let (body, offset) = (&row.record.body, row.offset);
        match row.record.kind {
            LogKind::Move => {
                if let Some(called) = body.to::<Called>().ok().filter(|called| !called.tool_calls.is_empty()) {
                    self.rounds.push(Round { turn, called, results: HashMap::new(), offset });
                }
            }
            LogKind::ToolResult => {
                if let (Some(round), Ok(result)) = (self.last(turn), body.to::<ToolResult>()) {
                    round.results.entry(result.tool_call_id.clone()).or_insert(result);
                }
            }
            LogKind::AsyncResult => {
                if let Ok(late) = body.to::<LateResult>() {
                    let text = shortened(&in_words(&late), TEXT_CHARS_MAX);
                    self.late.insert(offset, Message::text(Role::User, text));
                }
            }
            LogKind::Message => {
                self.spoke.insert(turn, offset);
                let is_text_of =
                    |round: &&mut Round<'_>| row.record.id == ids::message_id(turn, round.called.number).as_str();
                if let Some(round) = self.last(turn).filter(is_text_of) {
                    round.offset = offset;
                }
            }
            _ => {}
        }
    }

    /// The turn of a record, if it is the agent's own, and over.
    fn turn_of(&self, row: &'g LogRow) -> Option<&'g TurnId> {
        let turn = row.record.turn_id.as_ref()?;
        let is_own = row.record.agent_id.as_ref() == Some(&self.gathered.agent);
        let is_over = *turn != self.gathered.turn && !self.gathered.active.contains(turn);
        (is_own && is_over).then_some(turn)
    }

    /// The reply that results of a turn belong to.
    fn last(&mut self, turn: &TurnId) -> Option<&mut Round<'g>> {
        self.rounds.iter_mut().rev().find(|round| round.turn == turn)
    }

    fn told(self) -> BTreeMap<u64, Vec<Message>> {
        let offered: HashSet<String> = tool::specs(&self.gathered.tools).into_iter().map(|spec| spec.name).collect();
        // Providers refuse a history with calls of tools that are not offered.
        let is_offered = |round: &Round<'_>| round.called.tool_calls.iter().all(|call| offered.contains(&call.name));
        let rounds: Vec<Round<'g>> = self.rounds.into_iter().filter(is_offered).collect();
        let ends: HashMap<&TurnId, u64> = rounds.iter().map(|round| (round.turn, round.offset)).collect();
        let mut told: BTreeMap<u64, Vec<Message>> =
            self.late.into_iter().map(|(offset, message)| (offset, vec![message])).collect();
        let mut known = HashSet::new();
        for round in rounds {
            let mut messages = round.messages(&mut known);
            let is_last = ends.get(round.turn) == Some(&round.offset);
            if is_last && self.spoke.get(round.turn).is_none_or(|at| *at <= round.offset) {
                messages.push(Message::text(Role::Assistant, SILENCE));
            }
            told.insert(round.offset, messages);
        }
        told
    }
}

impl Round<'_> {
    /// The reply, and the results of all its calls in their order (SPEC K-15). `known` are the ids of calls that
    /// others have.
    fn messages(&self, known: &mut HashSet<String>) -> Vec<Message> {
        let texts = self.called.parts.iter().filter_map(Part::as_text).filter(|text| !text.trim().is_empty());
        let mut reply: Vec<Part> = texts.map(Part::text).collect();
        let mut results = Vec::with_capacity(self.called.tool_calls.len());
        for (n, call) in self.called.tool_calls.iter().enumerate() {
            let is_free = is_plain(&call.id) && known.insert(call.id.clone());
            let id = if is_free { call.id.clone() } else { self.new_id(n) };
            reply.push(Part::ToolCall(ToolCall {
                id: id.clone(),
                name: call.name.clone(),
                input: arguments(call),
                invalid: None,
                signature: None,
            }));
            results.push(self.result(call, id));
        }
        vec![Message::new(Role::Assistant, reply), Message::new(Role::Tool, results)]
    }

    /// Providers of other turns may have counted the same way, or in letters that the next one refuses.
    fn new_id(&self, n: usize) -> String {
        made_id(&format!("earlier.{}.{}", self.turn, self.called.number), n)
    }

    fn result(&self, call: &ToolCall, id: String) -> Part {
        if let Some(result) = self.results.get(&call.id) {
            return short_part(ToolResult { tool_call_id: id, ..result.clone() }.part());
        }
        let text = match self.called.in_background.iter().find(|(known, _)| *known == call.id) {
            Some((_, operation)) => accepted(operation),
            // The turn was cut off: it may have been carried out.
            None => "no result of it is known".to_owned(),
        };
        Part::tool_result(id, text, false)
    }
}

/// The newest that fit; what is older than one that does not is left out, too.
fn newest(told: BTreeMap<u64, Vec<Message>>, most_tokens: u64) -> BTreeMap<u64, Vec<Message>> {
    let mut left = most_tokens;
    let fit = told.into_iter().rev().take_while(|(_, messages)| {
        let tokens = estimate_messages(messages);
        let fits = tokens <= left;
        left = left.saturating_sub(tokens);
        fits
    });
    fit.collect()
}

fn is_plain(id: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !id.is_empty() && id.len() <= ID_CHARS_MAX && id.chars().all(is_known)
}

fn short_part(part: Part) -> Part {
    match part {
        Part::Text { text, signature } => Part::Text { text: shortened(&text, TEXT_CHARS_MAX), signature },
        Part::ToolResult { call_id, content, is_error } => {
            Part::ToolResult { call_id, content: content.into_iter().map(short_part).collect(), is_error }
        }
        other => other,
    }
}

/// An object in any case: many servers read what they are sent back, and refuse what is none. A call that went wrong
/// would fail all turns that are shown it.
fn arguments(call: &ToolCall) -> Value {
    match &call.invalid {
        Some(text) => json!({"INVALID_JSON": shortened(text, TEXT_CHARS_MAX)}),
        None if call.input.is_object() => short_value(&call.input),
        None => json!({}),
    }
}

/// The same shape with shorter texts: models do again what they have seen.
fn short_value(value: &Value) -> Value {
    match value {
        Value::String(text) => shortened(text, TEXT_CHARS_MAX).into(),
        Value::Array(items) => items.iter().map(short_value).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), short_value(value))).collect(),
        other => other.clone(),
    }
}
