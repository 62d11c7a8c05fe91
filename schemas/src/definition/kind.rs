//! The kinds of definitions, and how each is kept.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a definition defines. In the order of use: a kind refers to those before it, but for tools
/// whose target is an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionKind {
    Library,
    ModelProfile,
    Project,
    PromptSpec,
    ActionDef,
    Task,
    Tool,
    Persona,
    Agent,
}

impl DefinitionKind {
    pub const ALL: [Self; 9] = [
        Self::Library,
        Self::ModelProfile,
        Self::Project,
        Self::PromptSpec,
        Self::ActionDef,
        Self::Task,
        Self::Tool,
        Self::Persona,
        Self::Agent,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::ModelProfile => "model_profile",
            Self::Project => "project",
            Self::PromptSpec => "prompt_spec",
            Self::ActionDef => "action_def",
            Self::Task => "task",
            Self::Tool => "tool",
            Self::Persona => "persona",
            Self::Agent => "agent",
        }
    }

    /// The noun in a path (frozen, DESIGN 8).
    pub fn plural(self) -> &'static str {
        match self {
            Self::Library => "libraries",
            Self::ModelProfile => "model-profiles",
            Self::Project => "projects",
            Self::PromptSpec => "prompt-specs",
            Self::ActionDef => "action-defs",
            Self::Task => "tasks",
            Self::Tool => "tools",
            Self::Persona => "personas",
            Self::Agent => "agents",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The kind that a person means: `persona`, `personas`, `action-def`, `action_defs` and so on.
    pub fn meant(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase().replace('-', "_");
        Self::ALL.into_iter().find(|kind| kind.as_str() == text || kind.plural().replace('-', "_") == text)
    }

    /// Whether versions are kept and never change. Other kinds are updated in place: only their
    /// newest content is kept, and the version counts the changes.
    pub fn is_versioned(self) -> bool {
        matches!(self, Self::PromptSpec | Self::ActionDef | Self::Task | Self::Persona)
    }
}
