//! Which of the stored messages a model is shown, and which of them a turn answers (SPEC C-ENG-03).

use super::estimate::{estimate_message, estimate_messages};
use super::message::{ConversationMessage, MessageKind, MessageRole};
use crate::chat::{Message, Role};

/// Bounds of a history; without any it is whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Messages besides those that the history always has.
    pub max_messages: Option<usize>,
    /// Tokens of all of it, by the estimate.
    pub max_tokens: Option<u64>,
}

/// The history for a model, oldest first.
///
/// It always has the system messages that the conversation begins with, the newest summary instead
/// of what that stands for, and the newest message. Of the others the newest that fit are kept. A
/// history that is cut begins with a message of a user and never with the result of a call that is
/// not shown, because providers refuse anything else; if the last message of the user is so far back
/// that it does not fit, or is summarised already, it is kept and more of the rest is left out.
pub fn build_history(messages: &[ConversationMessage], limits: &HistoryLimits) -> Vec<Message> {
    let view = View::of(messages);
    let for_model =
        |messages: &[&ConversationMessage]| messages.iter().map(|one| one.for_model()).collect::<Vec<Message>>();
    let mut history = for_model(&view.leading);
    history.extend(view.summary.map(ConversationMessage::for_model));
    let rest = for_model(&view.rest);
    let (asked, start) = cut(&rest, limits, estimate_messages(&history));
    let begins = rest[start..].iter().find(|message| message.role != Role::System).map(|message| message.role);
    let summarised = view.asked.filter(|_| begins.is_some_and(|role| role != Role::User));
    let asked = asked.map(|at| rest[at].clone()).or_else(|| summarised.map(ConversationMessage::for_model));
    history.extend(asked);
    history.extend_from_slice(&rest[start..]);
    history
}

/// A message of a user that must be there, if it is not among the kept ones, and where those begin.
fn cut(rest: &[Message], limits: &HistoryLimits, taken_tokens: u64) -> (Option<usize>, usize) {
    let max_messages = limits.max_messages.unwrap_or(usize::MAX);
    let max_tokens = limits.max_tokens.unwrap_or(u64::MAX).saturating_sub(taken_tokens);
    let start = newest(rest, max_messages, max_tokens);
    let is_user = |message: &Message| message.role == Role::User;
    if start == 0 {
        return (None, 0);
    }
    if let Some(ahead) = rest[start..].iter().position(is_user) {
        return (None, start + ahead);
    }
    let Some(asked) = rest[..start].iter().rposition(is_user) else {
        return (None, whole_exchange(rest, start));
    };
    let tokens = max_tokens.saturating_sub(estimate_message(&rest[asked]));
    let start = newest(rest, max_messages.saturating_sub(1), tokens).max(asked + 1);
    (Some(asked), whole_exchange(rest, start))
}

/// Where the newest messages begin that fit; the newest of all always does.
fn newest(rest: &[Message], max_messages: usize, max_tokens: u64) -> usize {
    let (mut start, mut tokens) = (rest.len(), 0);
    while start > 0 {
        tokens += estimate_message(&rest[start - 1]);
        let kept = rest.len() - start;
        if kept > 0 && (kept >= max_messages || tokens > max_tokens) {
            break;
        }
        start -= 1;
    }
    start
}

/// Past results whose calls are not shown; back to the calls if nothing would be left.
fn whole_exchange(rest: &[Message], start: usize) -> usize {
    let is_result = |message: &Message| message.role == Role::Tool;
    match rest[start..].iter().position(|message| !is_result(message)) {
        Some(ahead) => start + ahead,
        None => rest[..start].iter().rposition(|message| !is_result(message)).unwrap_or(start),
    }
}

/// The summary that stands for the oldest messages, and those that it does not stand for. Neither what a
/// conversation begins with nor what is for people only is among them.
pub fn not_summarised(messages: &[ConversationMessage]) -> (Option<&ConversationMessage>, Vec<&ConversationMessage>) {
    let view = View::of(messages);
    (view.summary, view.rest)
}

/// The messages that a turn answers: what came after the last answer. Instructions that came with
/// them are not among them unless there is nothing else.
pub fn turn_inputs(messages: &[ConversationMessage]) -> Vec<ConversationMessage> {
    let new = messages.iter().rev().take_while(|message| message.role != MessageRole::Assistant);
    let mut new: Vec<&ConversationMessage> =
        new.filter(|message| !matches!(message.kind, MessageKind::Status | MessageKind::Summary)).collect();
    new.reverse();
    if new.iter().any(|message| message.role != MessageRole::System) {
        new.retain(|message| message.role != MessageRole::System);
    }
    new.into_iter().cloned().collect()
}

/// What set off a turn with these inputs.
pub fn trigger_of(inputs: &[ConversationMessage]) -> &'static str {
    match inputs.last().map(|message| message.role) {
        Some(MessageRole::User) => "user_message",
        Some(MessageRole::Tool) => "tool_result",
        _ => "system_trigger",
    }
}

/// The messages of a conversation that still count.
struct View<'m> {
    /// System messages that the conversation begins with.
    pub leading: Vec<&'m ConversationMessage>,
    pub summary: Option<&'m ConversationMessage>,
    /// The last message of a user among those that the summary stands for.
    pub asked: Option<&'m ConversationMessage>,
    /// All others that are shown and that no summary stands for.
    pub rest: Vec<&'m ConversationMessage>,
}

impl<'m> View<'m> {
    pub fn of(messages: &'m [ConversationMessage]) -> Self {
        let is_leading =
            |one: &&ConversationMessage| one.role == MessageRole::System && one.kind == MessageKind::Utterance;
        let leading: Vec<_> = messages.iter().take_while(is_leading).collect();
        let summary =
            messages.iter().rev().find(|one| one.kind == MessageKind::Summary && one.compacts_through.is_some());
        // What is not found is older than all that was loaded.
        let through = summary.and_then(|summary| summary.compacts_through.as_ref());
        let through = through.and_then(|id| messages.iter().position(|one| one.id == *id));
        let start = through.map_or(0, |at| at + 1).max(leading.len());
        let counts = |one: &&ConversationMessage| !matches!(one.kind, MessageKind::Status | MessageKind::Summary);
        let rest = messages[start..].iter().filter(counts).collect();
        let is_user = |one: &&ConversationMessage| one.role.for_model() == Role::User;
        let asked = messages[leading.len()..start].iter().rev().filter(counts).find(is_user);
        Self { leading, summary, asked, rest }
    }
}
