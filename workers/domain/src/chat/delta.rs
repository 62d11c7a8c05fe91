//! Pieces of a reply as they arrive.

use serde::{Deserialize, Serialize};

use super::message::Part;
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
    /// A reply that came whole, piece by piece, so that a listener hears of it either way.
    pub fn of_whole(parts: &[Part], usage: Option<&Usage>) -> Vec<Self> {
        let of_part = |(part, content): (usize, &Part)| match content {
            Part::Text { text, .. } if !text.is_empty() => Some(Self::Text { part, text: text.clone() }),
            Part::Reasoning(thoughts) if !thoughts.text.is_empty() => {
                Some(Self::Reasoning { part, text: thoughts.text.clone() })
            }
            Part::ToolCall(call) => Some(Self::ToolCall {
                part,
                id: Some(call.id.clone()),
                name: Some(call.name.clone()),
                arguments: call.invalid.clone().unwrap_or_else(|| call.input.to_string()),
            }),
            _ => None,
        };
        let pieces = parts.iter().enumerate().filter_map(of_part);
        pieces.chain(usage.map(|usage| Self::Usage { usage: usage.clone() })).collect()
    }

    /// The part it belongs to.
    pub fn part(&self) -> Option<usize> {
        match self {
            Self::Text { part, .. } | Self::Reasoning { part, .. } | Self::ToolCall { part, .. } => Some(*part),
            Self::Usage { .. } => None,
        }
    }
}
