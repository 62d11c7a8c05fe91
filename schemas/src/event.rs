//! Committed events of a session. Steps are events too: they share one numbering, so the stream
//! is `steps ∪ events` in offset order and no step is stored twice.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::Json;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The create action was applied.
    Created,
    /// The status changed: `{status, reason?, by?, reason_given?, action_id?, error?}`.
    Status,
    /// An action was applied or refused: `{action_id, type, outcome, error?}`.
    Action,
    /// A step asked a model: the record of the call (SPEC C-PRV-08). It is paid for, whatever became of the step.
    ProviderCall,
}

impl EventKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Status => "status",
            Self::Action => "action",
            Self::ProviderCall => "provider_call",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Created, Self::Status, Self::Action, Self::ProviderCall].into_iter().find(|k| k.as_str() == text)
    }
}

/// An event that is not a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    pub offset: u64,
    pub at_ms: i64,
    pub kind: EventKind,
    pub data: Json,
}
