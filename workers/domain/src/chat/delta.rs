//! Pieces of a reply as they arrive.

use serde::{Deserialize, Serialize};

use super::usage::Usage;

/// One piece. `part` is the position of the part that it belongs to among the reply's parts. Pieces
/// are ephemeral: the reply has the authoritative text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatDelta {
    Text {
        part: usize,
        text: String,
    },
    Reasoning {
        part: usize,
        text: String,
    },
    /// A piece of the arguments' JSON text; the first one of a call has its id and name, and may
    /// have no arguments yet.
    ToolCall {
        part: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        arguments: String,
    },
    /// What is known so far; a later one replaces it. Belongs to no part.
    Usage {
        usage: Usage,
    },
}

impl ChatDelta {
    /// The part it belongs to.
    pub fn part(&self) -> Option<usize> {
        match self {
            Self::Text { part, .. } | Self::Reasoning { part, .. } | Self::ToolCall { part, .. } => Some(*part),
            Self::Usage { .. } => None,
        }
    }
}
