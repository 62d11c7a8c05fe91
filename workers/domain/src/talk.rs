//! How conversations and operations change, whatever stores them.

use schemas::action::NewAction;
use schemas::conversation::{
    Conversation, ConversationStatus, Operation, OperationKind, OperationState, Participant, ParticipantKind,
    ParticipantRole, Visibility,
};
use schemas::id::{AgentId, ConversationId, ParticipantId, SessionId, TurnId};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::session::SessionSpec;

pub mod seats;
#[cfg(test)]
pub(crate) mod tests;

/// Fields that are given replace what is there.
#[derive(Debug, Clone, Default)]
pub struct ConversationChange {
    pub title: Option<String>,
    pub status: Option<ConversationStatus>,
    pub tags: Option<Vec<String>>,
    pub metadata: Option<Json>,
    pub branch_context: Option<Json>,
    /// Taken where there is none yet.
    pub first_branch_context: Option<Json>,
}

/// How long a claim lasts without a word of its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// So many milliseconds: its holder extends it while it works.
    Extended(u64),
    /// The timeout of one attempt and so many milliseconds more: for holders that say nothing before
    /// they are done.
    Attempt(u64),
}

/// Whose claim is meant, and which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'c> {
    pub claimant: &'c str,
    /// Its end, as it was given: a later claim ends later. `None`: whichever the claimant has. The number of the
    /// attempt does not tell claims apart, because a start that comes back gives it to the next one.
    pub until_ms: Option<i64>,
}

impl<'c> Claim<'c> {
    /// Whichever this one has.
    pub fn by(claimant: &'c str) -> Self {
        Self { claimant, until_ms: None }
    }

    /// Whether it is the one that an operation is held by.
    pub fn holds(&self, operation: &Operation) -> bool {
        let is_this_one = self.until_ms.is_none() || self.until_ms == operation.until_ms;
        is_this_one && operation.claimed_by.as_deref() == Some(self.claimant)
    }
}

/// Why a message is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objection {
    /// Its id is another one's.
    Conflict,
    /// Nothing is said there any more.
    Closed,
}

/// Whether something may still be said there.
pub fn is_closed(status: ConversationStatus) -> bool {
    matches!(status, ConversationStatus::Completed | ConversationStatus::Failed)
}

/// Fields that are given replace what is there. `waiting` is derived and so means `active`.
pub fn apply(conversation: &mut Conversation, change: &ConversationChange) {
    if let Some(title) = &change.title {
        conversation.title = Some(title.clone());
    }
    if let Some(status) = change.status {
        conversation.status = stored(status);
    }
    if let Some(tags) = &change.tags {
        conversation.tags = tags.clone();
    }
    if let Some(metadata) = &change.metadata {
        conversation.metadata = metadata.clone();
    }
    if let Some(context) = &change.branch_context {
        conversation.branch_context = Some(context.clone());
    }
    if conversation.branch_context.is_none() {
        conversation.branch_context.clone_from(&change.first_branch_context);
    }
}

/// The status as it is stored.
pub fn stored(status: ConversationStatus) -> ConversationStatus {
    match status {
        ConversationStatus::Waiting => ConversationStatus::Active,
        other => other,
    }
}

/// The conversation that a session talks in and that nobody has registered.
pub fn opened_by(
    id: &ConversationId,
    created_by: &str,
    agent_id: &AgentId,
    spec: &SessionSpec,
    now_ms: i64,
) -> Conversation {
    Conversation {
        conversation_id: id.clone(),
        title: None,
        created_by: created_by.to_owned(),
        subject_id: None,
        primary_agent_id: Some(agent_id.clone()),
        status: ConversationStatus::Active,
        tags: Vec::new(),
        metadata: Json::of(&serde_json::Map::new()),
        branch_context: None,
        visibility: if spec.parent.is_some() { Visibility::Internal } else { Visibility::Listed },
        last_offset: 0,
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
    }
}

/// A session as a participant (SPEC Q-CNV-13). Its id is the session's: joining twice is joining once.
/// `added_by`: the turn whose agent brought it in.
pub fn participant_of(
    session_id: &SessionId,
    agent_id: &AgentId,
    added_by: Option<&TurnId>,
    now_ms: i64,
) -> Option<Participant> {
    Some(Participant {
        // Both ids have one alphabet and one length.
        participant_id: ParticipantId::parse(session_id.as_str()).ok()?,
        kind: ParticipantKind::Agent,
        user_id: None,
        agent_id: Some(agent_id.clone()),
        session_id: Some(session_id.clone()),
        role: ParticipantRole::Responder,
        joined_at_ms: now_ms,
        left_at_ms: None,
        added_by_turn_id: added_by.cloned(),
    })
}

/// Whether both speak for the same: one user, or one agent in one session.
pub fn is_same(one: &Participant, other: &Participant) -> bool {
    (&one.user_id, &one.agent_id, &one.session_id) == (&other.user_id, &other.agent_id, &other.session_id)
}

/// An operation as it is when it is dispatched.
pub fn dispatched(operation: &Operation, now_ms: i64) -> Operation {
    let mut operation = operation.clone();
    operation.created_at_ms = now_ms;
    operation.due_at_ms = operation.due_at_ms.max(now_ms);
    if operation.kind == OperationKind::Approval
        && operation.state.is_open()
        && let Some(asked) = &operation.approval
    {
        operation.until_ms.get_or_insert(later(now_ms, asked.expires_ms));
    }
    if operation.kind == OperationKind::Agent && operation.state.is_open() && operation.timeout_ms > 0 {
        operation.until_ms.get_or_insert(later(now_ms, operation.timeout_ms));
    }
    operation
}

/// An operation that is dispatched or ended again: an open one takes the state that is given, but
/// nobody's claim is taken back, and what has ended stays.
pub fn take_state(known: &mut Operation, given: &Operation) {
    if known.state.is_open() && given.state != OperationState::Pending {
        known.state = given.state;
        known.error = given.error.clone().or_else(|| known.error.take());
        if !known.state.is_open() {
            release(known);
        }
    }
}

/// A claim of an operation that is due. Its state stays as it was, for whoever takes it: `running`
/// tells that an attempt may have happened, of whose holder nobody heard again.
pub fn take(operation: &mut Operation, claimant: &str, now_ms: i64, hold: Hold) {
    let until_ms = match hold {
        Hold::Extended(ms) => later(now_ms, ms),
        Hold::Attempt(grace_ms) => later(now_ms, operation.timeout_ms.saturating_add(grace_ms)),
    };
    operation.attempt = operation.attempt.saturating_add(1);
    if operation.state == OperationState::Running {
        operation.lost = operation.lost.saturating_add(1);
    }
    operation.claimed_by = Some(claimant.to_owned());
    // While it runs, nobody may claim it before the claim ends.
    operation.due_at_ms = until_ms;
    operation.until_ms = Some(until_ms);
}

/// Ends an open operation.
pub fn close(known: &mut Operation, state: OperationState) {
    if known.state.is_open() {
        known.state = state;
        release(known);
    }
}

fn release(operation: &mut Operation) {
    operation.claimed_by = None;
    operation.until_ms = None;
}

/// When the wait of an open operation is over by itself: an approval gets its default; an agent that has not
/// answered, and a task that nobody took, end with `TIMEOUT`. While somebody has the task, it is when that wait
/// would be over if they were not heard of again.
pub fn deadline(operation: &Operation) -> Option<i64> {
    match operation.kind {
        _ if !operation.state.is_open() => None,
        OperationKind::Approval | OperationKind::Agent => operation.until_ms,
        OperationKind::Task => {
            let is_begun = operation.state == OperationState::Running;
            let since_ms = if is_begun { operation.due_at_ms } else { operation.created_at_ms };
            Some(later(since_ms, operation.wait_ms?))
        }
    }
}

/// A time so many milliseconds from now; the end of time if there is none.
pub fn later(now_ms: i64, after_ms: u64) -> i64 {
    now_ms.saturating_add(i64::try_from(after_ms).unwrap_or(i64::MAX))
}

/// What a message meets at its place: another one under its id, or a closed conversation.
pub fn refusal(known: Option<bool>, status: ConversationStatus) -> Option<Objection> {
    match known {
        Some(true) => None,
        Some(false) => Some(Objection::Conflict),
        None => is_closed(status).then_some(Objection::Closed),
    }
}

/// Why an action is refused that a repeated message would cause and the first one did not: all that it causes was
/// written with it.
pub fn not_caused(new: &NewAction) -> (Code, String) {
    let whom = new.agent_id.as_ref().map_or("this agent", |agent| agent.as_str());
    let detail = format!("The message was posted before and did not reach {whom} then. Send another message.");
    (Code::MessageConflict, detail)
}
