//! The registry of definitions.

use async_trait::async_trait;
use schemas::api::DefinitionChange;
use schemas::definition::DefinitionKind;
use schemas::id::{DefinitionId, Namespace};
use schemas::json::Json;

use crate::definition::NewDefinition;
use crate::failure::Failure;

/// Kind and id: what a definition is known by within its namespace.
pub type DefinitionKey = (DefinitionKind, DefinitionId);

/// A definition without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionHead {
    pub kind: DefinitionKind,
    pub id: DefinitionId,
    pub name: String,
    /// The newest.
    pub version: u64,
    pub content_hash: [u8; 32],
    pub library_id: Option<DefinitionId>,
}

/// A definition with its content.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionRow {
    pub kind: DefinitionKind,
    pub id: DefinitionId,
    pub version: u64,
    pub content_hash: [u8; 32],
    /// When the definition came to be.
    pub created_at_ms: i64,
    /// When it got this content.
    pub updated_at_ms: i64,
    pub content: Json,
}

/// A version without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionVersion {
    pub version: u64,
    pub content_hash: [u8; 32],
    pub created_at_ms: i64,
}

/// A page of definitions of one kind in the order of their ids. All given conditions must hold.
#[derive(Debug, Clone)]
pub struct DefinitionQuery {
    pub namespace: Namespace,
    pub kind: DefinitionKind,
    pub name: Option<String>,
    pub library_id: Option<DefinitionId>,
    /// Owned by this project, or an agent in it.
    pub project_id: Option<DefinitionId>,
    /// The id of the last row of the page before.
    pub after: Option<DefinitionId>,
    pub limit: usize,
    /// The page ends before it has more bytes of content, but has at least one row.
    pub bytes: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionPage {
    pub rows: Vec<DefinitionRow>,
    /// Whether rows follow.
    pub more: bool,
}

/// What a write made of one definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defined {
    pub change: DefinitionChange,
    /// The version that has the content now.
    pub version: u64,
}

#[async_trait]
pub trait Definitions: Send + Sync {
    /// Writes definitions, all of them or none, durable when it returns. Each key may be there once.
    ///
    /// Content equal to the newest changes nothing. Other content becomes the next version: the one
    /// before is kept for kinds that are versioned, and replaced for the others. Writers of one key
    /// come one after the other, so that every version is there once, and none is skipped.
    async fn define(&self, namespace: &Namespace, items: &[NewDefinition]) -> Result<Vec<Defined>, Failure>;

    /// The newest content.
    async fn definition(&self, namespace: &Namespace, key: &DefinitionKey) -> Result<Option<DefinitionRow>, Failure>;

    async fn definition_at(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        version: u64,
    ) -> Result<Option<DefinitionRow>, Failure>;

    /// Those of the given keys that there are, in any order.
    async fn known(&self, namespace: &Namespace, keys: &[DefinitionKey]) -> Result<Vec<DefinitionHead>, Failure>;

    /// The versions that are kept, newest first, all `< before`.
    async fn versions(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DefinitionVersion>, Failure>;

    async fn definitions(&self, query: &DefinitionQuery) -> Result<DefinitionPage, Failure>;
}
