//! An identity with knowledge of its own: a persona within projects.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::persona::InlinePersona;
use crate::id::DefinitionId;

/// Never a process: sessions run for it, and its memories are kept under its id (SPEC W-AGT-02).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    pub id: DefinitionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it can see; at least one.
    pub project_ids: Vec<DefinitionId>,
    /// Exactly one of `persona_ref` and `persona_inline` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona_ref: Option<PersonaRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona_inline: Option<InlinePersona>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonaRef {
    pub persona_id: DefinitionId,
    /// If given, the persona must be of this library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_id: Option<DefinitionId>,
    /// Absent: whatever is the newest when a session starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}
