//! The registry of definitions.

mod sql;

use async_trait::async_trait;
use domain::definition::NewDefinition;
use domain::failure::Failure;
use domain::ports::{
    Defined, DefinitionHead, DefinitionKey, DefinitionPage, DefinitionQuery, DefinitionRow, DefinitionVersion,
    Definitions,
};
use schemas::id::Namespace;
use sqlx::PgConnection;

use super::PostgresStore;
use super::rows::{clean, count};
use super::writer::{Trouble, Unit, begin, commit};
use crate::defining::{Entry, below, decide, definition, head, page, version};
#[cfg(test)]
pub(super) use sql::SQL;

#[async_trait]
impl Definitions for PostgresStore {
    async fn define(&self, namespace: &Namespace, items: &[NewDefinition]) -> Result<Vec<Defined>, Failure> {
        self.0.defining.run(&Batch { namespace, items }).await
    }

    async fn definition(&self, namespace: &Namespace, key: &DefinitionKey) -> Result<Option<DefinitionRow>, Failure> {
        let query = sqlx::query(sql::NEWEST).bind(namespace.as_str()).bind(key.0.as_str()).bind(key.1.as_str());
        self.0.by_key.fetch_optional(query).await?.as_ref().map(definition).transpose()
    }

    async fn definition_at(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        version: u64,
    ) -> Result<Option<DefinitionRow>, Failure> {
        let Ok(version) = i64::try_from(version) else { return Ok(None) };
        let query =
            sqlx::query(sql::AT).bind(namespace.as_str()).bind(key.0.as_str()).bind(key.1.as_str()).bind(version);
        self.0.by_key.fetch_optional(query).await?.as_ref().map(definition).transpose()
    }

    async fn known(&self, namespace: &Namespace, keys: &[DefinitionKey]) -> Result<Vec<DefinitionHead>, Failure> {
        let (kinds, ids): (Vec<&str>, Vec<&str>) = keys.iter().map(|(kind, id)| (kind.as_str(), id.as_str())).unzip();
        let query = sqlx::query(sql::KNOWN).bind(namespace.as_str()).bind(kinds).bind(ids);
        self.0.pool.fetch_all(query).await?.iter().map(head).collect()
    }

    async fn versions(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DefinitionVersion>, Failure> {
        let query = sqlx::query(sql::VERSIONS)
            .bind(namespace.as_str())
            .bind(key.0.as_str())
            .bind(key.1.as_str())
            .bind(below(before))
            .bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(version).collect()
    }

    async fn definitions(&self, query: &DefinitionQuery) -> Result<DefinitionPage, Failure> {
        let statement = sqlx::query(sql::LIST)
            .bind(query.namespace.as_str())
            .bind(query.kind.as_str())
            .bind(query.after.as_ref().map_or("", |id| id.as_str()))
            .bind(query.name.as_deref().map(clean))
            .bind(query.library_id.as_ref().map(|id| id.as_str()))
            .bind(query.project_id.as_ref().map(|id| id.as_str()))
            .bind(query.limit as i64 + 1)
            .bind(i64::try_from(query.bytes).unwrap_or(i64::MAX));
        let rows = self.0.pool.fetch_all(statement).await?;
        let found = rows.first().map_or(Ok(0), |row| count(row, "found"))?;
        let rows = rows.iter().map(definition).collect::<Result<_, Failure>>()?;
        Ok(page(rows, found, query.limit))
    }
}

/// One write: a few statements, however many definitions it has.
struct Batch<'b> {
    namespace: &'b Namespace,
    items: &'b [NewDefinition],
}

#[async_trait]
impl Unit<Vec<Defined>> for Batch<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Vec<Defined>, Trouble> {
        let namespace = self.namespace.as_str();
        begin(connection).await?;
        // Writers of one namespace come one after the other. What the next statement sees is then
        // whole: its snapshot is taken after the lock.
        sqlx::query(sql::LOCK).bind(namespace).execute(&mut *connection).await?;
        let (kinds, ids) = keys(self.items.iter());
        let query = sqlx::query(sql::KNOWN).bind(namespace).bind(kinds).bind(ids);
        let heads = query.fetch_all(&mut *connection).await?.iter().map(head).collect::<Result<_, Failure>>()?;
        let (defined, entries) = decide(self.items, heads)?;
        if !entries.is_empty() {
            write(connection, namespace, &entries).await?;
        }
        commit(connection).await?;
        Ok(defined)
    }
}

fn keys<'d>(items: impl Iterator<Item = &'d NewDefinition>) -> (Vec<&'d str>, Vec<&'d str>) {
    items.map(|item| (item.kind.as_str(), item.id.as_str())).unzip()
}

async fn write(connection: &mut PgConnection, namespace: &str, entries: &[Entry<'_>]) -> Result<(), Trouble> {
    let (kinds, ids) = keys(entries.iter().map(|entry| entry.new));
    let versions: Vec<i64> = entries.iter().map(|entry| entry.version as i64).collect();
    let contents: Vec<&str> = entries.iter().map(|entry| entry.new.content.as_str()).collect();
    let sizes: Vec<i64> = contents.iter().map(|content| content.len() as i64).collect();
    sqlx::query(sql::PUT_HEADS)
        .bind(namespace)
        .bind(&kinds)
        .bind(&ids)
        .bind(&versions)
        .bind(entries.iter().map(|entry| clean(&entry.new.name).into_owned()).collect::<Vec<_>>())
        .bind(entries.iter().map(|entry| entry.new.library_id.as_ref().map(|id| id.as_str())).collect::<Vec<_>>())
        .bind(entries.iter().map(|entry| entry.project_ids.as_str()).collect::<Vec<_>>())
        .bind(sizes)
        .execute(&mut *connection)
        .await?;
    let (replaced_kinds, replaced_ids) =
        keys(entries.iter().map(|entry| entry.new).filter(|new| !new.kind.is_versioned()));
    sqlx::query(sql::FORGET_VERSIONS)
        .bind(namespace)
        .bind(replaced_kinds)
        .bind(replaced_ids)
        .execute(&mut *connection)
        .await?;
    sqlx::query(sql::PUT_VERSIONS)
        .bind(namespace)
        .bind(kinds)
        .bind(ids)
        .bind(versions)
        .bind(entries.iter().map(|entry| &entry.new.content_hash[..]).collect::<Vec<_>>())
        .bind(contents)
        .execute(connection)
        .await?;
    Ok(())
}
