//! The tail of memories, and what of it the archive has.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::kept::KeptMemory;
use domain::ports::{MemoryTail, ModelOf, Revision, TailRow};
use schemas::id::MemoryId;
use schemas::json::Json;
use schemas::memory::{Memory, MemoryOwner};
use sqlx::SqliteConnection;

use super::super::SqliteStore;
use super::super::failure::failure;
use super::super::rows::get;
use super::seen;
use crate::remembering::{
    Corpus, is_of_model, kept_memory, memory, memory_columns, model_of, revision, tail_columns, tail_row,
};

const TAIL: &str = concat!(
    "SELECT ",
    tail_columns!(),
    " FROM memories INDEXED BY memories_tail
    WHERE namespace = ?1 AND agent_id = ?2 AND id > ?3 AND is_light = 0 ORDER BY id LIMIT ?4"
);
const WAITING: &str = concat!(
    "SELECT ",
    memory_columns!(),
    ", m.namespace, m.agent_id, m.revision, m.embedding, m.deleted_at_ms, b.content AS overflow
    FROM memories AS m INDEXED BY memories_waiting
    LEFT JOIN blobs AS b ON b.namespace = m.namespace AND b.blob_id = m.content_ref
    WHERE m.kept_at_ms IS NULL AND (m.namespace, m.agent_id, m.id) > (?1, ?2, ?3)
    ORDER BY m.namespace, m.agent_id, m.id LIMIT ?4"
);
/// `?1`: `[namespace, agent, id, revision]` of each.
const MARK_KEPT: &str = "
    UPDATE memories SET kept_at_ms = ?2 WHERE rowid IN (
        SELECT m.rowid FROM json_each(?1) AS j CROSS JOIN memories AS m INDEXED BY memories_id
            ON m.namespace = j.value ->> 0 AND m.agent_id = j.value ->> 1 AND m.id = j.value ->> 2
            AND m.revision = j.value ->> 3)";
const HEAVY: &str = "
    SELECT rowid FROM memories INDEXED BY memories_kept
    WHERE is_light = 0 AND kept_at_ms IS NOT NULL AND kept_at_ms < ?1 ORDER BY kept_at_ms LIMIT ?2";
const DROP_BLOBS: &str = "
    DELETE FROM blobs WHERE (namespace, blob_id) IN (
        SELECT m.namespace, m.content_ref FROM json_each(?1) AS j CROSS JOIN memories AS m ON m.rowid = j.value)";
/// `?2`: one row more than an agent may have whose vectors stay.
const LIGHTEN: &str = "
    UPDATE memories SET is_light = 1, embedding = iif(
        (SELECT count(*) FROM (SELECT 1 FROM memories AS o INDEXED BY memories_id
            WHERE o.namespace = memories.namespace AND o.agent_id = memories.agent_id LIMIT ?2)) < ?2, embedding, NULL)
    WHERE rowid IN (SELECT j.value FROM json_each(?1) AS j)";
/// `?3`: one row more than an agent may have.
const IS_NEAR: &str = "
    SELECT NOT EXISTS (SELECT 1 FROM memories INDEXED BY memories_far
            WHERE namespace = ?1 AND agent_id = ?2 AND embedding IS NULL AND embedding_model IS NOT NULL)
        AND (SELECT count(*) FROM (SELECT 1 FROM memories INDEXED BY memories_id
            WHERE namespace = ?1 AND agent_id = ?2 LIMIT ?3)) < ?3 AS is_near";
const OF_MODEL: &str = "
    SELECT coalesce(embedding_model, '') AS model, namespace, agent_id FROM memories INDEXED BY memories_model
    WHERE coalesce(embedding_model, '') = ?1 AND (namespace, agent_id) > (?2, ?3) AND deleted_at_ms IS NULL
    ORDER BY namespace, agent_id LIMIT 1";
const OF_LATER_MODEL: &str = "
    SELECT coalesce(embedding_model, '') AS model, namespace, agent_id FROM memories INDEXED BY memories_model
    WHERE coalesce(embedding_model, '') > ?1 AND deleted_at_ms IS NULL
    ORDER BY coalesce(embedding_model, ''), namespace, agent_id LIMIT 1";
const SETTLED: &str = "
    SELECT namespace, agent_id, id, revision FROM memories INDEXED BY memories_id
    WHERE (namespace, agent_id, id) > (?1, ?2, ?3) AND is_light = 1 ORDER BY namespace, agent_id, id LIMIT ?4";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("memories::tail", TAIL),
    ("memories::waiting", WAITING),
    ("memories::mark_kept", MARK_KEPT),
    ("memories::heavy", HEAVY),
    ("memories::drop_blobs", DROP_BLOBS),
    ("memories::lighten", LIGHTEN),
    ("memories::is_near", IS_NEAR),
    ("memories::of_model", OF_MODEL),
    ("memories::of_later_model", OF_LATER_MODEL),
    ("memories::settled", SETTLED),
];

#[async_trait]
impl MemoryTail for SqliteStore {
    async fn tail(&self, owner: &MemoryOwner, after: Option<&MemoryId>, limit: usize) -> Result<Vec<TailRow>, Failure> {
        let rows = sqlx::query(TAIL)
            .bind(owner.namespace.as_str())
            .bind(owner.agent_id.as_str())
            .bind(after.map_or("", |id| id.as_str()))
            .bind(limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(tail_row).collect()
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
        let rows = place(sqlx::query(WAITING), after).bind(limit as i64);
        let rows = rows.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        rows.iter().map(kept_memory).collect()
    }

    async fn mark_kept(&self, kept: &[Revision]) -> Result<(), Failure> {
        let row = |kept: &Revision| {
            let MemoryOwner { namespace, agent_id } = &kept.owner;
            (namespace.to_string(), agent_id.to_string(), kept.id.to_string(), kept.revision)
        };
        let kept = Json::of(&kept.iter().map(row).collect::<Vec<_>>());
        let query = sqlx::query(MARK_KEPT).bind(kept.as_str().to_owned()).bind(self.0.clock.now_ms());
        self.0.writer.execute(query).await.map(drop)
    }

    async fn lighten(&self, older_than_ms: u64, near: usize, limit: usize) -> Result<u64, Failure> {
        let store = self.clone();
        seen::whole(async move {
            let mut tx = store.0.writer.begin().await?;
            let result = lighten(tx.connection(), store.bound_ms(older_than_ms), near, limit).await;
            let done = tx.finish(result).await;
            // Vectors may have gone, of agents that have many.
            if !matches!(done, Ok(0)) {
                store.0.seen.forget_all();
            }
            done
        })
        .await
    }

    async fn is_near(&self, owner: &MemoryOwner, near: usize) -> Result<bool, Failure> {
        let query = sqlx::query(IS_NEAR).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str());
        let row = query.bind(near as i64 + 1).fetch_one(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        get(&row, "is_near")
    }

    async fn lacking(&self, model: &str, after: Option<&ModelOf>) -> Result<Option<ModelOf>, Failure> {
        let (at, namespace, agent) = after.map_or(("", "", ""), |after| {
            let model = after.model.as_deref().unwrap_or_default();
            (model, after.owner.namespace.as_str(), after.owner.agent_id.as_str())
        });
        let mut reader = self.0.readers.lend().await?;
        let same = sqlx::query(OF_MODEL).bind(at).bind(namespace).bind(agent);
        let mut found = same.fetch_optional(&mut *reader).await.map_err(failure)?;
        if found.is_none() {
            found = sqlx::query(OF_LATER_MODEL).bind(at).fetch_optional(&mut *reader).await.map_err(failure)?;
        }
        if is_of_model(found.as_ref(), model)? {
            found = sqlx::query(OF_LATER_MODEL).bind(model).fetch_optional(&mut *reader).await.map_err(failure)?;
        }
        found.as_ref().map(model_of).transpose()
    }

    async fn settled(&self, after: Option<&Revision>, limit: usize) -> Result<Vec<Revision>, Failure> {
        let rows = place(sqlx::query(SETTLED), after).bind(limit as i64);
        let rows = rows.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        rows.iter().map(revision).collect()
    }
}

type Statement<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

fn place<'q>(query: Statement<'q>, after: Option<&'q Revision>) -> Statement<'q> {
    let (namespace, agent, id) = after.map_or(("", "", ""), |after| {
        (after.owner.namespace.as_str(), after.owner.agent_id.as_str(), after.id.as_str())
    });
    query.bind(namespace).bind(agent).bind(id)
}

async fn lighten(connection: &mut SqliteConnection, before_ms: i64, near: usize, limit: usize) -> Result<u64, Failure> {
    let heavy = sqlx::query(HEAVY).bind(before_ms).bind(limit as i64).fetch_all(&mut *connection).await;
    let rows: Vec<i64> = heavy.map_err(failure)?.iter().map(|row| get(row, "rowid")).collect::<Result<_, _>>()?;
    if rows.is_empty() {
        return Ok(0);
    }
    let listed = Json::of(&rows);
    sqlx::query(DROP_BLOBS).bind(listed.as_str()).execute(&mut *connection).await.map_err(failure)?;
    let lighten = sqlx::query(LIGHTEN).bind(listed.as_str()).bind(near as i64 + 1);
    lighten.execute(&mut *connection).await.map_err(failure)?;
    Ok(rows.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::recall::move_memories;
    use schemas::limits::MEMORIES_MOVED_MAX;
    use sqlx::Connection;
    use sqlx::sqlite::SqliteConnectOptions;
    use tempfile::TempDir;
    use testkit::fake::{MemArchive, SimClock};

    use super::*;
    use crate::OpenOptions;

    #[tokio::test]
    async fn rows_that_cannot_be_read_keep_no_others_from_moving() {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().join("store.db");
        let options = OpenOptions { shards: Some(4), create: true, clock: Arc::new(SimClock::new()) };
        let store = SqliteStore::open(&path, options).await.expect("the store opens");
        let options = SqliteConnectOptions::new().filename(&path);
        let mut connection = SqliteConnection::connect_with(&options).await.expect("a connection");
        // A batch of them, and a good one behind.
        let fill = "
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
            INSERT INTO memories (namespace, agent_id, id, version, tier, type, significance, metadata, content,
                content_hash, body_hash, created_at_ms, updated_at_ms)
            SELECT 'default', 'agent', printf('m%05d', n), 1, 'archival', 'fact', 0.5, iif(n = ?1, '{}', '{'), 'x',
                zeroblob(32), zeroblob(32), n, n
            FROM n";
        let count = MEMORIES_MOVED_MAX as i64 + 1;
        sqlx::query(fill).bind(count).execute(&mut connection).await.expect("filled");
        connection.close().await.expect("closed");
        let archive = MemArchive::default();
        let moved = move_memories(&store, &archive).await.expect("a walk");
        assert_eq!((moved.rows, moved.full, moved.left_out), (0, true, MEMORIES_MOVED_MAX));
        let finding = &moved.findings[0];
        assert!(finding.starts_with("memory m00001 of default/agent: ") && finding.contains("metadata"), "{finding}");
        let moved = moved.go_on(&store, &archive).await.expect("moved");
        assert_eq!((moved.rows, moved.full, moved.left_out), (1, false, 0));
        let moved = moved.go_on(&store, &archive).await.expect("a walk");
        assert_eq!((moved.rows, moved.left_out), (0, MEMORIES_MOVED_MAX), "from the beginning");
        let moved = moved.go_on(&store, &archive).await.expect("a walk");
        assert_eq!((moved.rows, moved.full, moved.left_out), (0, false, 0), "the good one does not wait any more");
    }
}
