//! The registry of definitions.

use async_trait::async_trait;
use domain::definition::NewDefinition;
use domain::failure::Failure;
use domain::ports::{
    Defined, DefinitionHead, DefinitionKey, DefinitionPage, DefinitionQuery, DefinitionRow, DefinitionVersion,
    Definitions,
};
use schemas::id::Namespace;
use schemas::json::Json;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::failure::failure;
use super::rows::count;
use crate::defining::{Entry, below, decide, definition, head, page, version};

macro_rules! row {
    () => {
        "SELECT v.kind, v.id, v.version, v.content_hash, v.content, d.created_at_ms, v.created_at_ms AS updated_at_ms "
    };
}

/// One statement for one key: a list of keys would be walked in the same way.
const HEAD: &str = "
    SELECT d.kind, d.id, d.name, d.version, d.library_id, v.content_hash FROM definitions AS d
    CROSS JOIN definition_versions AS v
        ON v.namespace = d.namespace AND v.kind = d.kind AND v.id = d.id AND v.version = d.version
    WHERE d.namespace = ?1 AND d.kind = ?2 AND d.id = ?3";
const KNOWN: &str = "
    SELECT d.kind, d.id, d.name, d.version, d.library_id, v.content_hash FROM json_each(?2) AS j
    CROSS JOIN definitions AS d
        ON d.namespace = ?1 AND d.kind = j.value->>0 AND d.id = j.value->>1
    CROSS JOIN definition_versions AS v
        ON v.namespace = d.namespace AND v.kind = d.kind AND v.id = d.id AND v.version = d.version";
const PUT_HEAD: &str = "
    INSERT INTO definitions (namespace, kind, id, version, name, library_id, project_ids, bytes, created_at_ms)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    ON CONFLICT (namespace, kind, id) DO UPDATE SET version = excluded.version, name = excluded.name,
        library_id = excluded.library_id, project_ids = excluded.project_ids, bytes = excluded.bytes";
const FORGET_VERSIONS: &str = "DELETE FROM definition_versions WHERE namespace = ?1 AND kind = ?2 AND id = ?3";
const PUT_VERSION: &str = "
    INSERT INTO definition_versions (namespace, kind, id, version, content_hash, content, created_at_ms)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const NEWEST: &str = concat!(
    row!(),
    "FROM definitions AS d CROSS JOIN definition_versions AS v
        ON v.namespace = d.namespace AND v.kind = d.kind AND v.id = d.id AND v.version = d.version
    WHERE d.namespace = ?1 AND d.kind = ?2 AND d.id = ?3"
);
const AT: &str = concat!(
    row!(),
    "FROM definitions AS d CROSS JOIN definition_versions AS v
        ON v.namespace = d.namespace AND v.kind = d.kind AND v.id = d.id AND v.version = ?4
    WHERE d.namespace = ?1 AND d.kind = ?2 AND d.id = ?3"
);
const VERSIONS: &str = "
    SELECT version, content_hash, created_at_ms FROM definition_versions
    WHERE namespace = ?1 AND kind = ?2 AND id = ?3 AND version < ?4 ORDER BY version DESC LIMIT ?5";
/// The small rows first, with how much content lies before each; then the contents that fit.
const LIST: &str = concat!(
    "WITH w AS (
        SELECT d.*, sum(d.bytes) OVER (ORDER BY d.id) - d.bytes AS before, count(*) OVER () AS found FROM (
            SELECT * FROM definitions
            WHERE namespace = ?1 AND kind = ?2 AND id > ?3
                AND (?4 IS NULL OR name = ?4)
                AND (?5 IS NULL OR library_id = ?5)
                AND (?6 IS NULL OR EXISTS (SELECT 1 FROM json_each(project_ids) AS j WHERE j.value = ?6))
            ORDER BY id LIMIT ?7) AS d)
    ",
    row!(),
    ", d.found FROM w AS d CROSS JOIN definition_versions AS v
        ON v.namespace = d.namespace AND v.kind = d.kind AND v.id = d.id AND v.version = d.version
    WHERE d.before = 0 OR d.before + d.bytes <= ?8 ORDER BY d.id"
);

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("definitions::head", HEAD),
    ("definitions::known", KNOWN),
    ("definitions::put_head", PUT_HEAD),
    ("definitions::forget_versions", FORGET_VERSIONS),
    ("definitions::put_version", PUT_VERSION),
    ("definitions::newest", NEWEST),
    ("definitions::at", AT),
    ("definitions::versions", VERSIONS),
    ("definitions::list", LIST),
];

#[async_trait]
impl Definitions for SqliteStore {
    async fn define(&self, namespace: &Namespace, items: &[NewDefinition]) -> Result<Vec<Defined>, Failure> {
        // The write lock is held from here on: nobody else writes between look and write.
        let mut tx = self.0.writer.begin().await?;
        let result = define(tx.connection(), namespace, items, self.0.clock.now_ms()).await;
        tx.finish(result).await
    }

    async fn definition(&self, namespace: &Namespace, key: &DefinitionKey) -> Result<Option<DefinitionRow>, Failure> {
        let query = sqlx::query(NEWEST).bind(namespace.as_str()).bind(key.0.as_str()).bind(key.1.as_str());
        let row = query.fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        row.as_ref().map(definition).transpose()
    }

    async fn definition_at(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        version: u64,
    ) -> Result<Option<DefinitionRow>, Failure> {
        let Ok(version) = i64::try_from(version) else { return Ok(None) };
        let query = sqlx::query(AT).bind(namespace.as_str()).bind(key.0.as_str()).bind(key.1.as_str()).bind(version);
        let row = query.fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        row.as_ref().map(definition).transpose()
    }

    async fn known(&self, namespace: &Namespace, keys: &[DefinitionKey]) -> Result<Vec<DefinitionHead>, Failure> {
        let query = sqlx::query(KNOWN).bind(namespace.as_str()).bind(Json::of(keys).as_str().to_owned());
        let rows = query.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        rows.iter().map(head).collect()
    }

    async fn versions(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DefinitionVersion>, Failure> {
        let rows = sqlx::query(VERSIONS)
            .bind(namespace.as_str())
            .bind(key.0.as_str())
            .bind(key.1.as_str())
            .bind(below(before))
            .bind(limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(version).collect()
    }

    async fn definitions(&self, query: &DefinitionQuery) -> Result<DefinitionPage, Failure> {
        let rows = sqlx::query(LIST)
            .bind(query.namespace.as_str())
            .bind(query.kind.as_str())
            .bind(query.after.as_ref().map_or("", |id| id.as_str()))
            .bind(query.name.as_deref())
            .bind(query.library_id.as_ref().map(|id| id.as_str()))
            .bind(query.project_id.as_ref().map(|id| id.as_str()))
            .bind(query.limit as i64 + 1)
            .bind(i64::try_from(query.bytes).unwrap_or(i64::MAX))
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        let found = rows.first().map_or(Ok(0), |row| count(row, "found"))?;
        let rows = rows.iter().map(definition).collect::<Result<_, Failure>>()?;
        Ok(page(rows, found, query.limit))
    }
}

async fn define(
    connection: &mut SqliteConnection,
    namespace: &Namespace,
    items: &[NewDefinition],
    now_ms: i64,
) -> Result<Vec<Defined>, Failure> {
    let mut heads = Vec::new();
    for item in items {
        let query = sqlx::query(HEAD).bind(namespace.as_str()).bind(item.kind.as_str()).bind(item.id.as_str());
        if let Some(row) = query.fetch_optional(&mut *connection).await.map_err(failure)? {
            heads.push(head(&row)?);
        }
    }
    let (defined, entries) = decide(items, heads)?;
    for entry in &entries {
        write(connection, namespace, entry, now_ms).await.map_err(failure)?;
    }
    Ok(defined)
}

async fn write(
    connection: &mut SqliteConnection,
    namespace: &Namespace,
    entry: &Entry<'_>,
    now_ms: i64,
) -> Result<(), sqlx::Error> {
    let new = entry.new;
    let (namespace, kind, id) = (namespace.as_str(), new.kind.as_str(), new.id.as_str());
    let (version, content) = (entry.version as i64, new.content.as_str());
    sqlx::query(PUT_HEAD)
        .bind(namespace)
        .bind(kind)
        .bind(id)
        .bind(version)
        .bind(new.name.as_str())
        .bind(new.library_id.as_ref().map(|id| id.as_str()))
        .bind(entry.project_ids.as_str())
        .bind(content.len() as i64)
        .bind(now_ms)
        .execute(&mut *connection)
        .await?;
    if !new.kind.is_versioned() {
        sqlx::query(FORGET_VERSIONS).bind(namespace).bind(kind).bind(id).execute(&mut *connection).await?;
    }
    sqlx::query(PUT_VERSION)
        .bind(namespace)
        .bind(kind)
        .bind(id)
        .bind(version)
        .bind(&new.content_hash[..])
        .bind(content)
        .bind(now_ms)
        .execute(connection)
        .await?;
    Ok(())
}
