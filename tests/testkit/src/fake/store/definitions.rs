//! The `Definitions` port.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::definition::{NewDefinition, plan};
use domain::failure::Failure;
use domain::ports::{
    Defined, DefinitionHead, DefinitionKey, DefinitionPage, DefinitionQuery, DefinitionRow, DefinitionVersion,
    Definitions,
};
use schemas::api::DefinitionChange;
use schemas::id::Namespace;

use super::MemStore;

/// A definition with the versions that are kept, oldest first; there is at least one.
#[derive(Debug, Clone)]
pub(super) struct DefinitionRec {
    pub created_at_ms: i64,
    pub versions: Vec<VersionRec>,
}

#[derive(Debug, Clone)]
pub(super) struct VersionRec {
    pub version: u64,
    pub created_at_ms: i64,
    pub new: NewDefinition,
}

impl DefinitionRec {
    fn newest(&self) -> &VersionRec {
        self.versions.last().expect("there is at least one")
    }

    fn row(&self, version: &VersionRec) -> DefinitionRow {
        DefinitionRow {
            kind: version.new.kind,
            id: version.new.id.clone(),
            version: version.version,
            content_hash: version.new.content_hash,
            created_at_ms: self.created_at_ms,
            updated_at_ms: version.created_at_ms,
            content: version.new.content.clone(),
        }
    }
}

#[async_trait]
impl Definitions for MemStore {
    async fn define(&self, namespace: &Namespace, items: &[NewDefinition]) -> Result<Vec<Defined>, Failure> {
        let keys: BTreeSet<_> = items.iter().map(|item| (item.kind, &item.id)).collect();
        if keys.len() < items.len() {
            return Err(Failure::internal("a definition is twice in one write"));
        }
        let now = self.now_ms();
        let mut state = self.transaction();
        let mut defined = Vec::new();
        for new in items {
            let key = (namespace.clone(), new.kind, new.id.clone());
            let rec = state
                .definitions
                .entry(key)
                .or_insert_with(|| DefinitionRec { created_at_ms: now, versions: Vec::new() });
            let known = rec.versions.last().map(|newest| (newest.version, &newest.new.content_hash));
            let (change, version) = plan::change(known, &new.content_hash);
            if change != DefinitionChange::Unchanged {
                if !new.kind.is_versioned() {
                    rec.versions.clear();
                }
                rec.versions.push(VersionRec { version, created_at_ms: now, new: new.clone() });
            }
            defined.push(Defined { change, version });
        }
        Ok(defined)
    }

    async fn definition(&self, namespace: &Namespace, key: &DefinitionKey) -> Result<Option<DefinitionRow>, Failure> {
        let state = self.transaction();
        let rec = state.definitions.get(&(namespace.clone(), key.0, key.1.clone()));
        Ok(rec.map(|rec| rec.row(rec.newest())))
    }

    async fn definition_at(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        version: u64,
    ) -> Result<Option<DefinitionRow>, Failure> {
        let state = self.transaction();
        let rec = state.definitions.get(&(namespace.clone(), key.0, key.1.clone()));
        let found = rec.and_then(|rec| Some((rec, rec.versions.iter().find(|one| one.version == version)?)));
        Ok(found.map(|(rec, version)| rec.row(version)))
    }

    async fn known(&self, namespace: &Namespace, keys: &[DefinitionKey]) -> Result<Vec<DefinitionHead>, Failure> {
        let state = self.transaction();
        let head = |(kind, id): &DefinitionKey| {
            let newest = state.definitions.get(&(namespace.clone(), *kind, id.clone()))?.newest();
            Some(DefinitionHead {
                kind: *kind,
                id: id.clone(),
                name: newest.new.name.clone(),
                version: newest.version,
                content_hash: newest.new.content_hash,
                library_id: newest.new.library_id.clone(),
            })
        };
        Ok(keys.iter().filter_map(head).collect())
    }

    async fn versions(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DefinitionVersion>, Failure> {
        let state = self.transaction();
        let rec = state.definitions.get(&(namespace.clone(), key.0, key.1.clone()));
        let versions = rec.into_iter().flat_map(|rec| rec.versions.iter().rev());
        let wanted = versions.filter(|one| before.is_none_or(|before| one.version < before)).take(limit);
        let version = |one: &VersionRec| DefinitionVersion {
            version: one.version,
            content_hash: one.new.content_hash,
            created_at_ms: one.created_at_ms,
        };
        Ok(wanted.map(version).collect())
    }

    async fn definitions(&self, query: &DefinitionQuery) -> Result<DefinitionPage, Failure> {
        let state = self.transaction();
        let mut page = DefinitionPage { rows: Vec::new(), more: false };
        let mut bytes = 0;
        for ((namespace, kind, id), rec) in &state.definitions {
            let newest = rec.newest();
            let is_wanted = *namespace == query.namespace
                && *kind == query.kind
                && query.after.as_ref().is_none_or(|after| id > after)
                && query.name.as_ref().is_none_or(|name| *name == newest.new.name)
                && query.library_id.as_ref().is_none_or(|library| newest.new.library_id.as_ref() == Some(library))
                && query.project_id.as_ref().is_none_or(|project| newest.new.project_ids.contains(project));
            if !is_wanted {
                continue;
            }
            bytes += newest.new.content.as_str().len();
            if page.rows.len() >= query.limit || (!page.rows.is_empty() && bytes > query.bytes) {
                page.more = true;
                break;
            }
            page.rows.push(rec.row(newest));
        }
        Ok(page)
    }
}
