//! A row of the ledger as it is stored, whatever the database.

use domain::failure::Failure;
use domain::time::rfc3339;
use schemas::action::{Action, ActionOutcome, ActionType, ActionView, Urgency};
use schemas::id::{ActionId, AgentId, ConversationId, Namespace, SessionId, Shard};
use schemas::json::Json;
use schemas::problem::Code;

/// A row of the ledger. Session, shard and number are absent on what was refused.
pub(crate) struct ActionRow {
    pub(crate) namespace: Namespace,
    pub(crate) action_id: ActionId,
    pub(crate) kind: ActionType,
    pub(crate) session_id: Option<SessionId>,
    pub(crate) agent_id: Option<AgentId>,
    pub(crate) conversation_id: Option<ConversationId>,
    pub(crate) shard: Option<Shard>,
    pub(crate) session_seq: Option<u64>,
    pub(crate) urgency: Urgency,
    pub(crate) actor: String,
    pub(crate) body_hash: [u8; 32],
    pub(crate) payload: Json,
    pub(crate) metadata: Json,
    pub(crate) accepted_at_ms: i64,
    pub(crate) published_at_ms: Option<i64>,
    pub(crate) processed_at_ms: Option<i64>,
    pub(crate) outcome: Option<ActionOutcome>,
    pub(crate) code: Option<Code>,
    pub(crate) error: Option<String>,
}

impl ActionRow {
    /// The accepted action; fails on a row that was refused.
    pub(crate) fn into_action(self) -> Result<Action, Failure> {
        let absent = |column: &str| Failure::internal(format!("an accepted action has no {column}"));
        Ok(Action {
            namespace: self.namespace,
            action_id: self.action_id,
            kind: self.kind,
            session_id: self.session_id.ok_or_else(|| absent("session_id"))?,
            agent_id: self.agent_id.ok_or_else(|| absent("agent_id"))?,
            conversation_id: self.conversation_id,
            shard: self.shard.ok_or_else(|| absent("shard"))?,
            session_seq: self.session_seq.ok_or_else(|| absent("session_seq"))?,
            urgency: self.urgency,
            actor: self.actor,
            payload: self.payload,
            metadata: self.metadata,
            accepted_at_ms: self.accepted_at_ms,
            opens: None,
        })
    }

    pub(crate) fn into_view(self) -> ActionView {
        ActionView {
            action_id: self.action_id,
            kind: self.kind,
            session_id: self.session_id,
            agent_id: self.agent_id,
            shard: self.shard,
            lane: self.kind.lane(),
            session_seq: self.session_seq,
            urgency: self.urgency,
            actor: self.actor,
            payload: self.payload,
            metadata: self.metadata,
            created_at: rfc3339(self.accepted_at_ms),
            published_at: self.published_at_ms.map(rfc3339),
            processed: self.processed_at_ms.is_some(),
            processed_at: self.processed_at_ms.map(rfc3339),
            outcome: self.outcome,
            code: self.code,
            error: self.error,
        }
    }
}
