//! Bodies of the HTTP API (frozen, DESIGN 8), as in `/openapi.json`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::conversation::OperationState;
use crate::definition::{DefinitionKind, NamespaceBudget};
use crate::event::EventKind;
use crate::frame::StepToken;
use crate::id::{ActionId, AgentId, ConversationId, DefinitionId, Namespace, OperationId, SessionId, Shard, TurnId};
use crate::json::Json;
use crate::record::StepStatus;
use crate::session::{Cause, SessionSpec, SessionStatus, StopReason};

/// Answer to an accepted action, 202.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedBody {
    pub action_id: ActionId,
    pub session_id: SessionId,
    /// False when this very action, or this failure of an attempt, was told before. Of a failure that is tried again
    /// there is no action to read.
    pub accepted: bool,
}

/// A task that somebody else's worker has claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskBody {
    /// Goes back with the end: `POST /api/tool-results` `{operation_id, result | error, attempt}`.
    pub operation_id: OperationId,
    /// The same for all attempts at this task, another for any other.
    pub idempotency_key: String,
    /// What the model called.
    pub tool: String,
    pub tool_call_id: String,
    pub session_id: SessionId,
    pub conversation_id: ConversationId,
    pub turn_id: TurnId,
    /// Counted from 1; more than 1: an attempt before this one may have been made.
    pub attempt: u32,
    pub max_attempts: u32,
    /// When the claim ends, RFC 3339: after it the task may be somebody else's.
    pub until: String,
    /// Checked and mapped.
    pub input: Value,
    /// Settings of the action, as its author gave them.
    pub settings: Value,
    /// The history up to the call, if the action asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Value>,
}

/// A claimed task that goes back. Which claim is meant is said by the end of it, so that a release that comes late,
/// or twice, takes the task from nobody who has claimed it since.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReleaseBody {
    pub operation_id: OperationId,
    /// That of the task, as it was claimed, RFC 3339.
    pub until: String,
    /// As at the claim; the name of the token if none was given there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Whether the task may have had an effect: then it is as if the worker had died. `false`: it is as if the
    /// task had not been claimed.
    #[serde(default)]
    pub begun: bool,
    /// Until somebody may claim it again, at most an hour.
    #[serde(default)]
    pub after_ms: u64,
}

/// What became of a task that was given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReleaseAnswer {
    pub operation_id: OperationId,
    /// `false`: it was not the caller's any more, or not by this claim; nothing was changed.
    pub released: bool,
    /// What it is now: `pending` or, if it was begun, `running` may be claimed; one that was begun and may not be
    /// repeated has `failed`, in doubt.
    pub state: OperationState,
}

/// A step, with its JSON fields decoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepView {
    pub id: String,
    pub created_at: String,
    pub agent_id: AgentId,
    pub session_id: Option<SessionId>,
    pub conversation_id: Option<ConversationId>,
    /// The turn that it was about, if it is one of a conversation and was about one turn.
    pub turn_id: Option<TurnId>,
    pub iteration: u64,
    pub step_token: StepToken,
    pub next_step_token: StepToken,
    pub status: StepStatus,
    pub text: Option<String>,
    pub data: Option<Json>,
    pub state: Option<Json>,
    pub guidance: Option<Json>,
    pub notes: Option<String>,
    pub latency_ms: u64,
    pub error: Option<String>,
}

/// A page of a list. `next_cursor` is absent on the last page.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StepPage {
    pub items: Vec<StepView>,
    pub next_cursor: Option<String>,
}

/// A session as a list shows it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionView {
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub moniker: String,
    pub status: SessionStatus,
    /// Iteration of the last committed step; null before the first.
    pub iteration: Option<u64>,
    pub step_token: Option<StepToken>,
    pub next_step_token: StepToken,
    pub cause: Cause,
    pub wake_at: Option<String>,
    pub last_error: Option<String>,
    pub stop_reason: Option<StopReason>,
    pub conversation_id: Option<ConversationId>,
    pub parent: Option<SessionId>,
    pub shard: Shard,
    pub created_at: String,
    pub started_at: Option<String>,
    pub updated_at: String,
    /// Offset of the newest committed event.
    pub last_offset: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionPage {
    pub items: Vec<SessionView>,
    pub next_cursor: Option<String>,
}

/// One session, whole.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionDetail {
    pub session: SessionView,
    pub spec: SessionSpec,
    pub state: Json,
    /// `text`, else `data`, of the last step.
    pub result: Option<Json>,
    /// Accepted actions that are not processed yet.
    pub pending_actions: u64,
}

/// The chain of causes of a session's present standing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WhyBody {
    pub session_id: SessionId,
    pub status: SessionStatus,
    pub cause: Cause,
    /// One sentence.
    pub summary: String,
    /// From the session outward, to the last session that it waits for: what waits for what.
    pub chain: Vec<WhyLink>,
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhyLink {
    pub what: String,
    pub detail: String,
    pub since: Option<String>,
    pub until: Option<String>,
    /// Of whose standing it is a part, if not of the session's that was asked about: of one that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// An agent that is defined, or has sessions, or both.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AgentView {
    pub agent_id: AgentId,
    /// Its newest session; null before the first.
    pub latest: Option<SessionView>,
    pub sessions: u64,
    /// Its definition; absent if nobody wrote one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AgentPage {
    pub items: Vec<AgentView>,
    pub next_cursor: Option<String>,
}

/// A definition as it is now, or as a version had it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DefinitionView {
    pub kind: DefinitionKind,
    pub id: DefinitionId,
    /// From 1 on. Of kinds that are updated in place it counts the changes.
    pub version: u64,
    /// SHA-256 of the canonical JSON of the content with all defaults, hexadecimal: two contents with the same are one.
    pub content_hash: String,
    pub created_at: String,
    pub updated_at: String,
    /// Its content with its defaults. What nobody gave is left out where that means something else than the default
    /// does: `effect_class` of tools and actions, `retry.timeout_ms` of tools that call an agent.
    pub definition: Json,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DefinitionPage {
    pub items: Vec<DefinitionView>,
    pub next_cursor: Option<String>,
}

/// A version without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionView {
    pub version: u64,
    pub content_hash: String,
    pub created_at: String,
}

/// Versions, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct VersionPage {
    pub items: Vec<VersionView>,
    pub next_cursor: Option<String>,
}

/// What a write makes of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionChange {
    Created,
    Updated,
    Unchanged,
}

impl DefinitionChange {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Answer to the write of one definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DefinitionWritten {
    pub kind: DefinitionKind,
    pub id: DefinitionId,
    /// The version that has this content.
    pub version: u64,
    pub content_hash: String,
    pub change: DefinitionChange,
    /// Of a dry run: which fields would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
}

/// One field that differs. `from` is absent where it is added, `to` where it is removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Path of the field, as in `constraints.max_moves_per_turn`.
    pub field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Json>,
}

/// One definition of a list to write.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DefinitionItem {
    pub kind: DefinitionKind,
    /// As the body of a write of this kind; the id is needed here.
    pub definition: Json,
}

/// Answer to a list of definitions: all of them are written, or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DefinitionsAnswer {
    pub dry_run: bool,
    /// In the order of the request.
    pub items: Vec<DefinitionWritten>,
}

/// Which sessions a bulk action means. All given conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionFilter {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moniker: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<SessionStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session_ids: Vec<SessionId>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkBody {
    pub action: crate::action::ActionType,
    pub filter: SessionFilter,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BulkAnswer {
    pub matched: u64,
    pub accepted: u64,
    pub refused: Vec<BulkRefusal>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BulkRefusal {
    pub session_id: SessionId,
    pub code: crate::problem::Code,
    pub detail: String,
}

/// One committed event, as SSE `data:` and as a WebSocket text frame. Exactly one of `step` and
/// `data` is present, but for `end`, which has neither.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StreamEvent {
    /// Cursor: reconnect with it to get what follows.
    pub offset: u64,
    #[serde(rename = "type")]
    pub kind: StreamEventType,
    pub session_id: SessionId,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamEventType {
    Step,
    Created,
    Status,
    Action,
    ProviderCall,
    /// Nothing follows: the session has ended.
    End,
}

impl From<EventKind> for StreamEventType {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Created => Self::Created,
            EventKind::Status => Self::Status,
            EventKind::Action => Self::Action,
            EventKind::ProviderCall => Self::ProviderCall,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComponentHealth {
    pub name: String,
    pub ok: bool,
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthBody {
    /// `ok` or `degraded`.
    pub status: String,
    pub version: String,
    pub mode: String,
    /// Name of the model provider that `run_step` uses.
    pub provider: String,
    pub components: Vec<ComponentHealth>,
    pub live_sessions: u64,
    pub pending_actions: u64,
    pub queue_lag_ms: u64,
    pub journal_lag_rows: u64,
    pub shards_owned: u64,
    pub shards: u64,
}

/// What the calls of models have used that conversations of a namespace have made, and what they may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpendingBody {
    pub namespace: Namespace,
    /// Read and written.
    pub tokens: u64,
    /// By the prices of the model profiles.
    pub cost: f64,
    /// Calls of models.
    pub moves: u64,
    /// As it is configured; null: nothing bounds the sums.
    pub budget: Option<NamespaceBudget>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShardView {
    pub shard: Shard,
    pub owner: Option<String>,
    pub epoch: i64,
    pub lease_ms_left: i64,
    pub backlog: u64,
    /// Journal rows that are not archived yet.
    pub journal_rows: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    pub worker_id: String,
    pub host: String,
    pub version: String,
    pub roles: Vec<String>,
    pub draining: bool,
    pub heartbeat_age_ms: i64,
    pub shards: Vec<Shard>,
}

/// A message that could not be taken, as it lies in `stepfleet.dead`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterView {
    pub id: String,
    /// Why it could not be taken.
    pub reason: String,
    /// The queue it was taken from.
    pub origin: String,
    /// RFC 3339; empty if nobody noted it.
    pub died_at: String,
    /// Size of the body.
    pub bytes: u64,
    /// The body as text, as far as it is; only its beginning in a list.
    pub body: String,
    /// What came with it.
    pub headers: std::collections::BTreeMap<String, String>,
}

/// Answer to what is done with a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadDoneBody {
    pub id: String,
    /// `redriven` or `dropped`.
    pub done: String,
}

/// What is done with all dead letters that lie there now.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadSweepBody {
    /// Must be true.
    pub all: bool,
    /// Only with those whose reason has this text in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far it is with all dead letters. The last line has `finished`, or `error`: then the others are left, and asking
/// again goes on with them. Letters that were sent back may then come a second time, with the same message id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadSweepView {
    /// `redriven` or `dropped`.
    pub done: String,
    /// How many were.
    pub letters: u64,
    /// Left where they are: they have other reasons.
    pub kept: u64,
    /// Left where they are: the queue that they would go back to is gone.
    pub stuck: u64,
    /// Whether it came to all of them.
    pub finished: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Answer to a drain request, 202.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainBody {
    pub worker_id: String,
    pub draining: bool,
}
