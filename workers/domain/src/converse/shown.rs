//! What a turn's model is shown next, part by part, and which part of it is summarised next.

use schemas::conversation::{LogKind, LogRow, Participant};
use schemas::id::{AgentId, ConversationId, SessionId, TurnId};
use schemas::problem::Code;

use super::assembly::{Assembly, Context};
use super::summary::{Extent, Summary};
use super::transcript::replies;
use crate::action::hash;
use crate::chat::{ChatFailure, ChatRequest, ErrorCategory, Message, Role, ToolChoice};
use crate::compact::{Batch, Entry, Job, Piece, old};
use crate::context::estimate_request;

/// Records of a turn that its model is shown behind its context: replies, what came of them and beside them, and what
/// stands for them.
pub const SHOWN: [LogKind; 5] =
    [LogKind::Move, LogKind::ToolResult, LogKind::AsyncResult, LogKind::Note, LogKind::Summary];

/// Stands before a history that would begin with the agent's own words or calls: providers want a user's first.
const OPENING: &str = "[What came before is summed up, or left out.]";

/// The context of a turn as the log has it.
pub struct Shown<'a> {
    assembly: &'a Assembly,
    /// The newest summary of the conversation: the assembly's, or one that came since.
    newest: Option<&'a Summary>,
    turn_summary: Option<Summary>,
    /// Replies, results and notes of the turn; the place of each is the number of its reply.
    replies: Vec<Entry>,
}

/// What is summarised next.
pub struct Due {
    pub scope: Extent,
    /// How far the summary goes that there is.
    pub upto: u64,
    subject: String,
    messages: Vec<Entry>,
    batches: Vec<Batch>,
}

impl<'a> Shown<'a> {
    /// `rows` are the turn's records in the order of the log; `newest` is the newest summary of the
    /// conversation.
    pub fn of(assembly: &'a Assembly, newest: Option<&'a Summary>, rows: &[LogRow]) -> Self {
        let summaries = rows.iter().rev().filter(|row| row.record.kind == LogKind::Summary);
        let mut summaries = summaries.filter_map(|row| row.record.body.to::<Summary>().ok());
        Self {
            assembly,
            newest,
            turn_summary: summaries.find(|summary| summary.scope == Extent::Turn),
            replies: replies(rows),
        }
    }

    /// What stands for the first replies of the turn.
    pub fn turn_summary(&self) -> Option<&Summary> {
        self.turn_summary.as_ref()
    }

    /// Why there is no next request. A body in a provider's own shape is sent as it is (SPEC K-31), and nothing can
    /// be added to it: it is good for one reply without tools. Sent again, it would get the same calls again.
    pub fn problem(&self) -> Option<ChatFailure> {
        let native = self.assembly.request.native.as_ref()?;
        let what = if !self.assembly.tools.is_empty() {
            "the results of its tools"
        } else if !self.replies.is_empty() {
            "what has come since: replies, results or notes"
        } else {
            return None;
        };
        let provider = native.provider.clone();
        let message = format!(
            "the context of the turn is a request in the own shape of {provider}, to which nothing can be added, and \
             so the model could not be told {what}; make a context of messages, or give the agent no tools and one \
             message at a time"
        );
        Some(ChatFailure {
            category: ErrorCategory::Validation,
            code: Code::InvalidRequest,
            message,
            provider,
            raw: None,
            retriable: false,
            may_have_happened: false,
        })
    }

    /// The next request. Without tools, they stay in sight: providers refuse a history with calls of
    /// tools that are not offered.
    pub fn request(&self, without_tools: bool) -> ChatRequest {
        let mut request = ChatRequest { messages: self.assembled(), ..self.assembly.request.clone() };
        request.messages.extend(self.turn_summary().map(Summary::message));
        request.messages.extend(self.live().map(|entry| entry.message.clone()));
        let leading = request.messages.iter().take_while(|message| message.role == Role::System).count();
        if request.messages.get(leading).is_some_and(|first| first.role == Role::Assistant) {
            request.messages.insert(leading, Message::text(Role::User, OPENING));
        }
        if without_tools && !request.tools.is_empty() {
            request.parameters.tool_choice = Some(ToolChoice::None);
        }
        request
    }

    /// The assembly's messages, with the newest summary in the place of what it stands for.
    fn assembled(&self) -> Vec<Message> {
        let Some(newest) = self.newest else { return self.assembly.request.messages.clone() };
        let mut messages = Vec::with_capacity(self.assembly.request.messages.len() + 1);
        for (at, message) in self.assembly.request.messages.iter().enumerate() {
            let is_summary = at == self.assembly.summary_at;
            if is_summary {
                messages.push(newest.message());
            }
            let is_replaced = is_summary && self.assembly.summary.is_some();
            let is_gone = self.assembly.history.iter().any(|one| one.at == at && one.offset <= newest.upto);
            if !is_replaced && !is_gone {
                messages.push(message.clone());
            }
        }
        messages
    }

    fn live(&self) -> impl Iterator<Item = &Entry> {
        let upto = self.turn_summary.as_ref().map(|summary| summary.upto);
        self.replies.iter().filter(move |entry| upto.is_none_or(|upto| entry.key > upto))
    }

    /// What is summarised next: old messages of the conversation; and old replies of the turn itself, if
    /// that is not enough or the model has `asked` for all of it. `None`: nothing is old enough.
    pub fn due(&self, (conversation, turn): (&ConversationId, &TurnId), limits: &Context, asked: bool) -> Option<Due> {
        let tokens = estimate_request(&self.request(false));
        // What does not go into the window at all is no use to the model, however new it is.
        let keep = if tokens > limits.window { 0 } else { limits.compaction.keep_recent as usize };
        let found = self.old_messages(conversation, keep);
        if found.piece(conversation, limits).is_some() {
            return Some(found);
        }
        let found = self.old_replies(turn, keep);
        let wanted = asked || tokens > limits.tokens;
        (wanted && found.piece(conversation, limits).is_some()).then_some(found)
    }

    fn old_messages(&self, conversation: &ConversationId, keep: usize) -> Due {
        let upto = self.newest.map_or(0, |summary| summary.upto);
        let placed = self.assembly.history.iter().filter(|one| one.offset > upto);
        let entries = placed.filter_map(|one| {
            let message = self.assembly.request.messages.get(one.at)?.clone();
            Some(Entry { key: one.offset, at_ms: one.at_ms, message })
        });
        let mut messages: Vec<Entry> = entries.collect();
        messages.truncate(old(&messages, keep));
        let batches = self.newest.map(|summary| summary.batches.clone()).unwrap_or_default();
        Due { scope: Extent::Conversation, upto, subject: conversation.to_string(), messages, batches }
    }

    /// The last reply stays, whatever it brought: the model has not seen its results yet.
    fn old_replies(&self, turn: &TurnId, keep: usize) -> Due {
        let mut messages: Vec<Entry> = self.live().cloned().collect();
        let last = messages.last().map(|entry| entry.key);
        let before_last = messages.iter().take_while(|entry| Some(entry.key) != last).count();
        messages.truncate(old(&messages, keep).min(before_last));
        let summary = self.turn_summary.clone();
        let (upto, batches) = summary.map_or((0, Vec::new()), |summary| (summary.upto, summary.batches));
        Due { scope: Extent::Turn, upto, subject: turn.to_string(), messages, batches }
    }
}

impl Due {
    /// Batches lie in the memory of the agent, which may have several sessions in one conversation, each with
    /// summaries of its own: from the second that joined on, the labels name the session, too.
    pub fn of_session(mut self, (agent, session): (&AgentId, &SessionId), here: &[Participant]) -> Self {
        let seats = here.iter().filter(|one| one.agent_id.as_ref() == Some(agent));
        let first = seats.min_by_key(|one| (one.joined_at_ms, &one.participant_id));
        let is_another = first.and_then(|one| one.session_id.as_ref()).is_some_and(|first| first != session);
        if self.scope == Extent::Conversation && is_another {
            let digest = hash::hex(&hash::sha256(session.as_str())[..8]);
            self.subject = format!("{}-{digest}", self.subject);
        }
        self
    }

    /// As a job for whoever summarises. The persona is what the agent's own model is told.
    pub fn job<'j>(&'j self, conversation: &'j ConversationId, limits: &'j Context, persona: &'j str) -> Job<'j> {
        Job {
            conversation_id: conversation,
            subject: &self.subject,
            messages: &self.messages,
            batches: &self.batches,
            persona,
            settings: &limits.compaction,
            window_tokens: limits.summary_window.unwrap_or(limits.window),
        }
    }

    fn piece(&self, conversation: &ConversationId, limits: &Context) -> Option<Piece> {
        self.job(conversation, limits, "").next()
    }
}
