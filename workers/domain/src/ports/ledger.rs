//! The ledger of actions: inbox and outbox in one table (DESIGN 3).

use async_trait::async_trait;
use schemas::action::{Action, ActionView, Lane, NewAction};
use schemas::id::{ActionId, Namespace, SessionId, SessionKey, Shard};
use schemas::problem::Code;

use crate::failure::Failure;

/// What became of one action offered to [`Ledger::accept`].
#[derive(Debug, Clone)]
pub enum Verdict {
    /// A row was committed now.
    Accepted(Accepted),
    /// The same id with the same body was accepted before; nothing was written.
    Repeated(Accepted),
    /// Refused. If `recorded`, the ledger has a processed row with outcome `rejected`.
    Refused(Refusal),
}

#[derive(Debug, Clone)]
pub struct Accepted {
    pub action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: Code,
    pub detail: String,
    pub recorded: bool,
}

/// Unprocessed actions of one session and lane, and how far the lane is numbered.
#[derive(Debug, Clone)]
pub struct Pending {
    /// Ascending `session_seq`, all `> after`, at most `limit`.
    pub actions: Vec<Action>,
    /// The lane's counter as of the same read: every `session_seq <= last_seq` is either in
    /// `actions`, or processed, or beyond `limit`.
    pub last_seq: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerStats {
    /// Unprocessed actions, also those of sessions that are paused.
    pub pending: u64,
    /// Acceptance time of the oldest unprocessed action that somebody should have processed by now: of
    /// a session that is `paused` or in `error`, only a pause, resume or destroy is late.
    pub oldest_ms: Option<i64>,
}

#[async_trait]
pub trait Ledger: Send + Sync {
    /// Accepts actions, each on its own verdict, in the order given; durable when it returns.
    ///
    /// In one transaction per batch, for each action:
    /// 1. The id exists in its namespace: same `body_hash` → `Repeated` with the stored action
    ///    (or the recorded `Refused`); other hash → `Refused(action_conflict)`, not recorded.
    /// 2. `create`: the session id is new → registers the session (status `starting`, counters 0),
    ///    makes it the agent's newest. It exists with the same agent and is not final → the row
    ///    is accepted and processed at once with outcome `ok` (SPEC Q-SES-10), and the verdict is
    ///    `Accepted` with `session_seq` 0. Otherwise → `Refused(session_exists)`, recorded. A new
    ///    session with a conversation takes part in it as a responder; the conversation is opened if
    ///    it is missing. A completed or failed one → `Refused(conversation_closed)`, recorded.
    ///    If its `seat` says that the agent may take part there already, and the agent has a seat whose
    ///    session can be asked (`converse::can_be_asked`; of several, who joined first), no other is
    ///    registered: as if the session of that seat were the one that exists.
    /// 3. Others: the target is `session_id`, else the newest session of `agent_id`. If there is no
    ///    session `session_id`, it is that of the agent's `seat`, found as above. Missing →
    ///    `session_not_found` / `agent_not_found`; other agent → `wrong_agent`; final →
    ///    `session_ended`. `error` refuses all but `resume` and `destroy` with `session_ended`.
    ///    `input` to a moniker that takes none is refused before this call. All recorded.
    ///    A `tool_result` that names an operation is for the session which that operation belongs to,
    ///    and ends it. Another session's, ended, or, without a session, unknown →
    ///    `no_open_operation`, recorded. If its session is final, the operation ends as cancelled.
    /// 4. Assigns `session_seq` from the counter of the lane, inserts the row.
    async fn accept(&self, actions: Vec<NewAction>) -> Result<Vec<Verdict>, Failure>;

    async fn action(&self, namespace: &Namespace, id: &ActionId) -> Result<Option<ActionView>, Failure>;

    /// Unprocessed actions of a session's lane with `session_seq > after`.
    async fn pending(&self, key: &SessionKey, lane: Lane, after: u64, limit: usize) -> Result<Pending, Failure>;

    /// Number of unprocessed actions of a session, both lanes.
    async fn pending_count(&self, key: &SessionKey) -> Result<u64, Failure>;

    /// Sessions of a shard that have unprocessed actions accepted at least `older_than_ms` ago by
    /// the store's own clock (0: all), in key order after `after`. This is the take-over scan and
    /// the poll for lost deliveries. A session that is `paused` or in `error` counts only with a
    /// pause, resume or destroy: nothing else can move it.
    async fn sessions_with_pending(
        &self,
        shard: Shard,
        older_than_ms: u64,
        after: Option<(Namespace, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, Failure>;

    /// Marks actions as handed to the queue.
    async fn mark_published(&self, actions: &[(Namespace, ActionId)]) -> Result<(), Failure>;

    /// Unprocessed and unpublished actions accepted at least `older_than_ms` ago by the store's own
    /// clock (0: all), oldest first.
    async fn unpublished(&self, older_than_ms: u64, limit: usize) -> Result<Vec<Action>, Failure>;

    /// Deletes rows processed at least `older_than_ms` ago by the store's own clock (0: all), at
    /// most `limit`; returns how many. Ids of deleted rows are no longer recognised as repeats.
    async fn forget_processed(&self, older_than_ms: u64, limit: usize) -> Result<u64, Failure>;

    async fn stats(&self) -> Result<LedgerStats, Failure>;

    /// Number of unprocessed actions of each of the given shards, in their order. Counts all of
    /// them, also those of paused sessions.
    async fn backlog(&self, shards: &[Shard]) -> Result<Vec<(Shard, u64)>, Failure>;
}
