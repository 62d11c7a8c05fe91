//! Conversations: their rows, logs and turns.

use async_trait::async_trait;
use schemas::action::NewAction;
use schemas::conversation::{
    Conversation, ConversationStatus, LogKind, LogRecord, LogRow, Participant, Turn, TurnStatus,
};
use schemas::id::{ActionId, AgentId, ConversationId, Namespace, ParticipantId, SessionId, SessionKey, TurnId, UserId};

use super::ledger::Verdict;
use crate::failure::Failure;
use crate::spending::Spent;
pub use crate::talk::ConversationChange;
use crate::talk::Objection;

/// A page of conversations, newest first (by `created_at_ms`, then id, both descending).
#[derive(Debug, Clone)]
pub struct ConversationQuery {
    pub namespace: Namespace,
    /// Stored status: `waiting` is not one.
    pub status: Option<ConversationStatus>,
    pub created_by: Option<String>,
    pub subject_id: Option<String>,
    /// Has this tag.
    pub tag: Option<String>,
    /// This agent takes part, or did.
    pub agent_id: Option<AgentId>,
    pub user_id: Option<UserId>,
    /// Internal ones too.
    pub include_internal: bool,
    /// `(created_at_ms, id)` of the last row of the page before.
    pub after: Option<(i64, ConversationId)>,
    pub limit: usize,
}

/// A page of a log in offset order.
#[derive(Debug, Clone)]
pub struct LogQuery {
    pub namespace: Namespace,
    pub conversation_id: ConversationId,
    /// Only these kinds; empty: all.
    pub kinds: Vec<LogKind>,
    /// Only records of this turn.
    pub turn_id: Option<TurnId>,
    /// `after < offset`, and `offset < before`.
    pub after: u64,
    pub before: Option<u64>,
    /// Written at or after this time.
    pub since_ms: Option<i64>,
    /// The newest first, instead of the oldest.
    pub descending: bool,
    pub limit: usize,
    /// The page ends before it has more bytes of bodies, but has at least one row.
    pub bytes: usize,
}

/// A page of turns, by `(created_at_ms, turn_id)`.
#[derive(Debug, Clone)]
pub struct TurnQuery {
    pub namespace: Namespace,
    pub conversation_id: Option<ConversationId>,
    pub session_id: Option<SessionId>,
    pub status: Option<TurnStatus>,
    /// The last row of the page before.
    pub after: Option<(i64, TurnId)>,
    pub descending: bool,
    pub limit: usize,
}

/// Where an active turn stands in the walk over all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnPlace {
    pub namespace: Namespace,
    pub conversation_id: ConversationId,
    pub created_at_ms: i64,
    pub turn_id: TurnId,
}

/// What a stream of a conversation asks for, again and again.
#[derive(Debug, Clone)]
pub struct LookQuery {
    /// The next page of the log: oldest first, of any turn.
    pub log: LogQuery,
    /// At most so many active turns, and of those that have ended.
    pub active_max: usize,
    pub ended_max: usize,
    /// Turns that are told of when they have ended, beside those that records of the page name.
    pub followed: Vec<TurnId>,
}

/// How a conversation stands. What is named first was read first: a turn that is not active has its last
/// record in the log.
#[derive(Debug, Clone)]
pub struct Look {
    /// Oldest first.
    pub active: Vec<Turn>,
    pub conversation: Conversation,
    pub page: Vec<LogRow>,
    /// By age; of more than were asked for, the newest.
    pub ended: Vec<Turn>,
}

/// What became of a write that may find its row there already.
#[derive(Debug, Clone, PartialEq)]
pub enum Inserted<T> {
    New(T),
    /// The row that was there.
    Existing(T),
}

/// A message and the actions that it causes.
#[derive(Debug, Clone)]
pub struct Post {
    pub namespace: Namespace,
    pub conversation_id: ConversationId,
    pub record: LogRecord,
    pub actions: Vec<NewAction>,
}

#[derive(Debug, Clone)]
pub enum Posted {
    /// The place of the message, and the verdicts of the actions in their order. A message whose id
    /// is there already with an equal body is not written again, and its actions come back as
    /// repeated; what it did not cause then is refused, unrecorded.
    Done {
        offset: u64,
        verdicts: Vec<Verdict>,
    },
    NotFound,
    /// Completed or failed: nothing is said there any more.
    Closed,
    /// The message id is there with another body. Nothing was written.
    Conflict,
}

impl From<Objection> for Posted {
    fn from(objection: Objection) -> Self {
        match objection {
            Objection::Conflict => Self::Conflict,
            Objection::Closed => Self::Closed,
        }
    }
}

#[async_trait]
pub trait Conversations: Send + Sync {
    /// Registers a conversation with its first participants and messages, all or nothing. Times and
    /// `last_offset` in `new` are the store's to set. An id that is there is left as it is.
    async fn create(
        &self,
        namespace: &Namespace,
        new: &Conversation,
        participants: &[Participant],
        messages: &[LogRecord],
    ) -> Result<Inserted<Conversation>, Failure>;

    async fn conversation(&self, namespace: &Namespace, id: &ConversationId) -> Result<Option<Conversation>, Failure>;

    async fn list(&self, query: &ConversationQuery) -> Result<Vec<Conversation>, Failure>;

    /// The row after the change; `None` if there is none.
    async fn change(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        change: &ConversationChange,
    ) -> Result<Option<Conversation>, Failure>;

    /// Those who take part now come before those who left, both in the order they joined.
    async fn participants(&self, namespace: &Namespace, id: &ConversationId) -> Result<Vec<Participant>, Failure>;

    /// Somebody who takes part already (same user, or same agent and session) is left as they are. Of
    /// the others the log tells (`talk::seats`), here as where sessions are accepted. `None`: there is no
    /// such conversation.
    async fn join(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant: &Participant,
    ) -> Result<Option<Inserted<Participant>>, Failure>;

    /// The row with its `left_at_ms`; leaving twice keeps the first time, and is told in the log once.
    async fn leave(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant: &ParticipantId,
    ) -> Result<Option<Participant>, Failure>;

    /// Appends a message and accepts actions in one transaction.
    async fn post(&self, post: Post) -> Result<Posted, Failure>;

    async fn log(&self, query: &LogQuery) -> Result<Vec<LogRow>, Failure>;

    /// The same as SQL alone has it: light records (`conversation::kept`) come without their bodies. For readers
    /// that can do without those, and that must not wait for the archive.
    async fn log_of_sql(&self, query: &LogQuery) -> Result<Vec<LogRow>, Failure> {
        self.log(query).await
    }

    /// Everything at once; `None` if there is no such conversation.
    async fn look(&self, query: &LookQuery) -> Result<Option<Look>, Failure>;

    /// The record with this id, however old it is.
    async fn record(
        &self,
        namespace: &Namespace,
        conversation: &ConversationId,
        id: &str,
    ) -> Result<Option<LogRow>, Failure>;

    async fn turn(&self, namespace: &Namespace, id: &TurnId) -> Result<Option<Turn>, Failure>;

    async fn turns(&self, query: &TurnQuery) -> Result<Vec<Turn>, Failure>;

    /// Whether a turn of the session is active, or an input waits for it that is not `besides`; both as of one moment,
    /// so that an input that becomes a turn meanwhile is seen as one or the other.
    async fn is_at_work(&self, key: &SessionKey, besides: &ActionId) -> Result<bool, Failure>;

    /// The active turns of these conversations, in no order; of very many, some.
    async fn open_turns(&self, namespace: &Namespace, of: &[ConversationId]) -> Result<Vec<Turn>, Failure>;

    /// The active turns of all namespaces by their places, after `after`, at most `limit`.
    async fn active_turns(&self, after: Option<&TurnPlace>, limit: usize) -> Result<Vec<(TurnPlace, Turn)>, Failure>;

    /// What the calls of models have used that are recorded in logs of a namespace, each counted once.
    async fn spent(&self, namespace: &Namespace) -> Result<Spent, Failure>;
}
