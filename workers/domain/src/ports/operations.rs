//! Operations: dispatched work on its way through executors, other agents and people.

use async_trait::async_trait;
use schemas::action::NewAction;
use schemas::conversation::{Operation, OperationKind, OperationState};
use schemas::id::{ConversationId, Namespace, OperationId, TurnId};

use super::ledger::Verdict;
use crate::failure::Failure;
pub use crate::talk::{Claim, Hold};

/// An operation with its namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationRow {
    pub namespace: Namespace,
    pub operation: Operation,
}

/// A page of operations by `(created_at_ms, operation_id)`.
#[derive(Debug, Clone)]
pub struct OperationQuery {
    pub namespace: Namespace,
    pub conversation_id: Option<ConversationId>,
    pub turn_id: Option<TurnId>,
    pub kind: Option<OperationKind>,
    pub state: Option<OperationState>,
    pub after: Option<(i64, OperationId)>,
    pub limit: usize,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub enum Ended {
    /// With this `tool_result`; its action id is derived from the operation's, so that the second
    /// of two results is a repeat or a conflict, never a second result.
    Settled { state: OperationState, action: Box<NewAction> },
    /// To be tried again after so many milliseconds. `lost`: it did not fail, it was not brought to its end.
    Again { after_ms: u64, error: String, lost: bool },
    /// It never began: whoever was to be given it cannot be reached, or has given it back. To be claimed again
    /// after so many milliseconds; the start is undone, and counts neither as an attempt nor as lost.
    Back { after_ms: u64, error: String },
    /// Whoever began it gives it up: as if the claim had ended by itself, it can be claimed again, `running` as it
    /// was, after so many milliseconds. The next claim counts it as lost.
    Left { after_ms: u64, error: String },
}

#[derive(Debug, Clone)]
pub enum Ending {
    Settled(Verdict),
    Scheduled,
    /// It is not open, or (for all but `Settled`) not claimed by the caller any more: nothing was written.
    NotOpen,
}

#[async_trait]
pub trait Operations: Send + Sync {
    /// Claims operations of kind `task` of a pool that are due: pending ones, and running ones
    /// whose claim has ended. Each gets `attempt + 1`, the claimant, and as `until_ms` the end of the
    /// [`Hold`] from the store's now on. Oldest `due_at_ms` first. Two claimants never get one
    /// operation at the same time. What was running comes back with its state as it was, `running`,
    /// so that the claimant knows that an attempt may have happened; and with `lost + 1`.
    async fn claim(&self, pool: &str, claimant: &str, hold: Hold, limit: usize) -> Result<Vec<OperationRow>, Failure>;

    /// Ends all claims of a pool at once, so that their work can be claimed again now, `running` as it
    /// was. Only for a process that knows that no holder of them lives: one that has the whole store to
    /// itself. Returns how many there were.
    async fn release(&self, pool: &str) -> Result<u64, Failure>;

    /// Ends an attempt: the operation's state and the acceptance of its result are one transaction. One that
    /// was `lost` is added to the operation's; one that comes `Back` is taken off its attempts. What comes `Back` or
    /// was `Left` is something that somebody has. A result counts whoever tells it; all else only by the claim
    /// that is given, if one is.
    async fn end(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claim: Option<Claim<'_>>,
        ended: Ended,
    ) -> Result<Ending, Failure>;

    /// Extends a claim to `hold_ms` from now; `false`: it is not the caller's any more.
    async fn extend(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claimant: &str,
        hold_ms: u64,
    ) -> Result<bool, Failure>;

    async fn operation(&self, namespace: &Namespace, id: &OperationId) -> Result<Option<OperationRow>, Failure>;

    async fn operations(&self, query: &OperationQuery) -> Result<Vec<OperationRow>, Failure>;

    /// Approvals whose time has come, over all namespaces, oldest first.
    async fn expired_approvals(&self, limit: usize) -> Result<Vec<OperationRow>, Failure>;

    /// Tasks that nobody took for as long as they may wait ([`crate::talk::deadline`]), over all
    /// namespaces, oldest first.
    async fn untaken(&self, limit: usize) -> Result<Vec<OperationRow>, Failure>;

    /// Work of agents that have not answered in their time ([`crate::talk::deadline`]), over all namespaces,
    /// oldest first.
    async fn overdue(&self, limit: usize) -> Result<Vec<OperationRow>, Failure>;

    /// For how many milliseconds somebody could have claimed the task of a pool that waits longest;
    /// `None`: there is none to claim.
    async fn waiting_ms(&self, pool: &str) -> Result<Option<u64>, Failure>;
}
