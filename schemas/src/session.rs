//! Sessions: what one running instance of an agent is, and how it stands.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::frame::StepToken;
use crate::id::{AgentId, ConversationId, Epoch, SessionId, SessionKey, Shard, TurnId};
use crate::json::Json;

/// Status machine of SPEC 2.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    Starting,
    Running,
    Paused,
    Stopping,
    Stopped,
    Completed,
    Error,
}

impl SessionStatus {
    pub const ALL: [SessionStatus; 7] =
        [Self::Starting, Self::Running, Self::Paused, Self::Stopping, Self::Stopped, Self::Completed, Self::Error];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Completed => "completed",
            Self::Error => "error",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }

    /// Ended for good. `error` is not: an operator may resume it (SPEC K-45).
    pub fn is_final(self) -> bool {
        matches!(self, Self::Stopped | Self::Completed)
    }

    /// Nothing happens here by itself any more.
    pub fn is_at_rest(self) -> bool {
        self.is_final() || self == Self::Error
    }
}

/// What a session was created with; never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionSpec {
    pub moniker: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The moniker's own settings, an object.
    pub config: Json,
    pub stop_on_done: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_ms: Option<u64>,
    /// Pause between the end of one step and the start of the next.
    #[serde(default)]
    pub loop_interval_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// The session that started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
}

/// A session to be registered by the acceptance of its create action.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub session_id: SessionId,
    pub agent_id: AgentId,
    pub spec: SessionSpec,
    /// The state that the first step is given.
    pub state: Json,
    /// The turn whose agent brings it into its conversation.
    pub added_by_turn_id: Option<TurnId>,
}

/// Why a session is not stepping right now (invariant L1). Exactly one holds at any time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// A step can run now (or is running).
    Runnable,
    /// A timer is armed; see `wake_at_ms`.
    Timer,
    /// The moniker asked for input and none is pending.
    Input,
    /// An operation is open; see `wake_at_ms` for its deadline.
    Operation,
    /// Paused, by whom and why.
    Paused { by: String, reason: Option<String> },
    /// At rest.
    Ended,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    Done,
    Destroyed,
    MaxSteps,
    MaxRuntime,
    Failed,
}

/// The current row of a session in SQL: everything but its state (that is in the journal, then in
/// LanceDB).
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    pub key: SessionKey,
    pub agent_id: AgentId,
    pub shard: Shard,
    pub spec: SessionSpec,
    pub head: Head,
    pub created_at_ms: i64,
    /// Last sequence numbers given out at acceptance.
    pub control_seq: u64,
    pub work_seq: u64,
}

/// The part of a session that a commit replaces, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub status: SessionStatus,
    /// Number of committed steps = the iteration of the next step.
    pub steps: u64,
    /// Token of the last committed step.
    pub step_token: Option<StepToken>,
    /// Token the next step runs with.
    pub next_step_token: StepToken,
    /// Offset the next event gets; offsets start at 1.
    pub next_offset: u64,
    pub cause: Cause,
    /// When the session must run by itself again; now or in the past = runnable.
    pub wake_at_ms: Option<i64>,
    /// When the create action was applied.
    pub started_at_ms: Option<i64>,
    pub updated_at_ms: i64,
    pub last_error: Option<String>,
    pub stop_reason: Option<StopReason>,
    /// Epoch of the commit that wrote this.
    pub epoch: Epoch,
    /// What its steps have asked of models; absent where they have asked nothing. Turns of conversations count apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Box<ModelUse>>,
}

/// What the steps of a session have asked of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUse {
    pub calls: u64,
    /// In and out.
    pub tokens: u64,
    /// In billionths of the operator's currency; of calls whose price is known.
    pub cost_nanos: u64,
    /// How often a resume has allowed the budget of a session once more.
    #[serde(default)]
    pub raised_session: u32,
    /// The same of the namespace's budget, for this session.
    #[serde(default)]
    pub raised_namespace: u32,
    /// Since when its time counts, if a resume has allowed it more (epoch milliseconds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// The budget that it was paused for, if that pause lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// What a resume allows besides: the whole budget, so many times more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The namespace's, or that of each of its sessions.
    pub of_namespace: bool,
    pub times: u32,
    /// Of a budget of seconds: what the step had taken by then, which begins anew.
    #[serde(default)]
    pub took_ms: i64,
}

impl Head {
    /// The head of a session whose create action is accepted and not applied.
    pub fn starting(now_ms: i64) -> Self {
        Self {
            status: SessionStatus::Starting,
            steps: 0,
            step_token: None,
            next_step_token: StepToken::start(),
            next_offset: 1,
            cause: Cause::Runnable,
            wake_at_ms: None,
            started_at_ms: None,
            updated_at_ms: now_ms,
            last_error: None,
            stop_reason: None,
            epoch: Epoch(0),
            models: None,
        }
    }

    /// Iteration of the last committed step.
    pub fn iteration(&self) -> Option<u64> {
        self.steps.checked_sub(1)
    }
}
