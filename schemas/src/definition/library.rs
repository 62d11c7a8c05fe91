//! Containers and scopes: libraries hold shared definitions, projects are what agents work in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::id::DefinitionId;

/// A container of shared definitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Library {
    pub id: DefinitionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The scope of agents, runs and artifacts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Project {
    pub id: DefinitionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// For `llm` actions of its agents that name no profile of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model_profile_id: Option<DefinitionId>,
    /// What branches of its conversations begin from; `main` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
}
