//! The tail of memories, and what of it the archive has.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::kept::KeptMemory;
use domain::ports::{MemoryTail, ModelOf, Revision, TailRow};
use schemas::id::MemoryId;
use schemas::memory::{Memory, MemoryOwner};

use super::super::PostgresStore;
use super::super::pool::Statement;
use super::super::rows::{age, bound, clean, get, now};
use crate::remembering::{
    Corpus, is_of_model, kept_memory, memory, memory_columns, model_of, revision, tail_columns, tail_row,
};

const TAIL: &str = concat!(
    "SELECT ",
    tail_columns!(),
    " FROM memories WHERE namespace = $1 AND agent_id = $2 AND id > $3 AND NOT is_light ORDER BY id LIMIT $4"
);
const WAITING: &str = concat!(
    "SELECT ",
    memory_columns!(),
    ", m.namespace, m.agent_id, m.revision, m.embedding, m.deleted_at_ms, b.content AS overflow
    FROM memories AS m LEFT JOIN blobs AS b ON b.namespace = m.namespace AND b.blob_id = m.content_ref
    WHERE m.kept_at_ms IS NULL AND (m.namespace, m.agent_id, m.id) > ($1, $2, $3)
    ORDER BY m.namespace, m.agent_id, m.id LIMIT $4"
);
const MARK_KEPT: &str = concat!(
    "UPDATE memories AS m SET kept_at_ms = ",
    now!(),
    " FROM unnest($1::text[], $2::text[], $3::text[], $4::int8[]) AS given (namespace, agent_id, id, revision)
    WHERE m.namespace = given.namespace AND m.agent_id = given.agent_id AND m.id = given.id
        AND m.revision = given.revision"
);
/// A row that is being written stays for the next turn. `$3`: one row more than an agent may have whose
/// vectors stay.
const LIGHTEN: &str = concat!(
    "WITH heavy AS (
        SELECT namespace, agent_id, id, content_ref FROM memories
        WHERE NOT is_light AND kept_at_ms IS NOT NULL AND kept_at_ms < ",
    bound!("$1"),
    " ORDER BY kept_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED),
    dropped AS (
        DELETE FROM blobs AS b USING heavy WHERE b.namespace = heavy.namespace AND b.blob_id = heavy.content_ref),
    lightened AS (
        UPDATE memories AS m SET is_light = TRUE, embedding = CASE
            WHEN (SELECT count(*) FROM (SELECT 1 FROM memories AS o
                WHERE o.namespace = m.namespace AND o.agent_id = m.agent_id LIMIT $3) AS own) < $3 THEN m.embedding END
        FROM heavy
        WHERE m.namespace = heavy.namespace AND m.agent_id = heavy.agent_id AND m.id = heavy.id)
    SELECT count(*) AS rows FROM heavy"
);
/// `$3`: one row more than an agent may have.
const IS_NEAR: &str = "
    SELECT NOT EXISTS (SELECT 1 FROM memories
            WHERE namespace = $1 AND agent_id = $2 AND embedding IS NULL AND embedding_model IS NOT NULL)
        AND (SELECT count(*) FROM (SELECT 1 FROM memories WHERE namespace = $1 AND agent_id = $2 LIMIT $3) AS own) < $3
        AS is_near";
const OF_MODEL: &str = "
    SELECT coalesce(embedding_model, '') AS model, namespace, agent_id FROM memories
    WHERE coalesce(embedding_model, '') = $1 AND (namespace, agent_id) > ($2, $3) AND deleted_at_ms IS NULL
    ORDER BY namespace, agent_id LIMIT 1";
const OF_LATER_MODEL: &str = "
    SELECT coalesce(embedding_model, '') AS model, namespace, agent_id FROM memories
    WHERE coalesce(embedding_model, '') > $1 AND deleted_at_ms IS NULL
    ORDER BY coalesce(embedding_model, ''), namespace, agent_id LIMIT 1";
const SETTLED: &str = "
    SELECT namespace, agent_id, id, revision FROM memories
    WHERE (namespace, agent_id, id) > ($1, $2, $3) AND is_light ORDER BY namespace, agent_id, id LIMIT $4";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("memories::tail", TAIL),
    ("memories::waiting", WAITING),
    ("memories::mark_kept", MARK_KEPT),
    ("memories::lighten", LIGHTEN),
    ("memories::is_near", IS_NEAR),
    ("memories::of_model", OF_MODEL),
    ("memories::of_later_model", OF_LATER_MODEL),
    ("memories::settled", SETTLED),
];

#[async_trait]
impl MemoryTail for PostgresStore {
    async fn tail(&self, owner: &MemoryOwner, after: Option<&MemoryId>, limit: usize) -> Result<Vec<TailRow>, Failure> {
        let query = sqlx::query(TAIL)
            .bind(owner.namespace.to_string())
            .bind(owner.agent_id.to_string())
            .bind(after.map_or(String::new(), |id| id.to_string()))
            .bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(tail_row).collect()
    }

    async fn some(&self, owner: &MemoryOwner, ids: &[&MemoryId]) -> Result<Vec<Memory>, Failure> {
        let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        let rows = Corpus::some(self, owner, &ids).await?;
        rows.iter().map(|row| memory(owner, row)).collect()
    }

    async fn waiting_rows(
        &self,
        after: Option<&Revision>,
        limit: usize,
    ) -> Result<Vec<Result<KeptMemory, (Revision, Failure)>>, Failure> {
        let query = place(sqlx::query(WAITING), after).bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(kept_memory).collect()
    }

    async fn mark_kept(&self, kept: &[Revision]) -> Result<(), Failure> {
        let query = || {
            let texts = |of: fn(&Revision) -> String| kept.iter().map(of).collect::<Vec<_>>();
            sqlx::query(MARK_KEPT)
                .bind(texts(|kept| kept.owner.namespace.to_string()))
                .bind(texts(|kept| kept.owner.agent_id.to_string()))
                .bind(texts(|kept| kept.id.to_string()))
                .bind(kept.iter().map(|kept| kept.revision as i64).collect::<Vec<_>>())
        };
        self.0.pool.execute(query).await.map(drop)
    }

    async fn lighten(&self, older_than_ms: u64, near: usize, limit: usize) -> Result<u64, Failure> {
        let query = || sqlx::query(LIGHTEN).bind(age(older_than_ms)).bind(limit as i64).bind(near as i64 + 1);
        let rows = self.0.pool.write(query).await?;
        let lightened: i64 = rows.first().map_or(Ok(0), |row| get(row, "rows"))?;
        Ok(u64::try_from(lightened).unwrap_or_default())
    }

    async fn is_near(&self, owner: &MemoryOwner, near: usize) -> Result<bool, Failure> {
        let query = sqlx::query(IS_NEAR).bind(owner.namespace.to_string()).bind(owner.agent_id.to_string());
        let rows = self.0.by_key.fetch_all(query.bind(near as i64 + 1)).await?;
        rows.first().map_or(Ok(false), |row| get(row, "is_near"))
    }

    async fn lacking(&self, model: &str, after: Option<&ModelOf>) -> Result<Option<ModelOf>, Failure> {
        let model = clean(model);
        let texts = |of: fn(&ModelOf) -> String| after.map_or(String::new(), of);
        let at = texts(|after| after.model.clone().unwrap_or_default());
        let same = sqlx::query(OF_MODEL)
            .bind(at.clone())
            .bind(texts(|after| after.owner.namespace.to_string()))
            .bind(texts(|after| after.owner.agent_id.to_string()));
        let later = |model: String| sqlx::query(OF_LATER_MODEL).bind(model);
        let mut found = self.0.pool.fetch_optional(same).await?;
        if found.is_none() {
            found = self.0.pool.fetch_optional(later(at)).await?;
        }
        if is_of_model(found.as_ref(), &model)? {
            found = self.0.pool.fetch_optional(later(model.into_owned())).await?;
        }
        found.as_ref().map(model_of).transpose()
    }

    async fn settled(&self, after: Option<&Revision>, limit: usize) -> Result<Vec<Revision>, Failure> {
        let query = place(sqlx::query(SETTLED), after).bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(revision).collect()
    }
}

fn place(query: Statement, after: Option<&Revision>) -> Statement {
    let texts = |of: fn(&Revision) -> String| after.map_or(String::new(), of);
    query
        .bind(texts(|after| after.owner.namespace.to_string()))
        .bind(texts(|after| after.owner.agent_id.to_string()))
        .bind(texts(|after| after.id.to_string()))
}
