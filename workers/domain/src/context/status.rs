//! The status of a turn, as it is stored and as a caller sees it (SPEC K-02).

use serde::{Deserialize, Serialize};

/// As it is stored. What has ended never changes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredTurnStatus {
    Active,
    Completed,
    Failed,
}

/// Where an active turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnPhase {
    Queued,
    Assembling,
    Thinking,
    WaitingTool,
    WaitingAgent,
    WaitingAsync,
    Responding,
}

/// What is stored of a turn's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTurn {
    pub status: StoredTurnStatus,
    /// Of an active turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<TurnPhase>,
    /// It was cut off on purpose.
    #[serde(default)]
    pub cancelled: bool,
}

/// As a caller sees it (SPEC C-TRN-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Pending,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

/// What a caller sees of a stored turn. Waiting is a phase of running.
pub fn turn_status(stored: StoredTurn) -> TurnStatus {
    match (stored.status, stored.phase, stored.cancelled) {
        (StoredTurnStatus::Active, Some(TurnPhase::Queued), _) => TurnStatus::Pending,
        (StoredTurnStatus::Active, _, _) => TurnStatus::Running,
        (StoredTurnStatus::Completed, _, _) => TurnStatus::Succeeded,
        (StoredTurnStatus::Failed, _, false) => TurnStatus::Failed,
        (StoredTurnStatus::Failed, _, true) => TurnStatus::Cancelled,
    }
}

impl TurnStatus {
    pub const ALL: [Self; 5] = [Self::Pending, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// It never changes again.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// What to store for a turn that is seen so.
    pub fn stored(self) -> StoredTurn {
        let (status, phase) = match self {
            Self::Pending => (StoredTurnStatus::Active, Some(TurnPhase::Queued)),
            Self::Running => (StoredTurnStatus::Active, Some(TurnPhase::Thinking)),
            Self::Succeeded => (StoredTurnStatus::Completed, None),
            Self::Failed | Self::Cancelled => (StoredTurnStatus::Failed, None),
        };
        StoredTurn { status, phase, cancelled: self == Self::Cancelled }
    }
}
