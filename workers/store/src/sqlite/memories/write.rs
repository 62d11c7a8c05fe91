//! Writing and deleting a memory, within a transaction that nobody else writes beside.

use domain::failure::Failure;
use domain::memory::vector::to_bytes;
use domain::memory::{MemoryKey, NewMemory};
use domain::ports::Remembered;
use schemas::id::MemoryId;
use schemas::json::Json;
use schemas::memory::MemoryOwner;
use sqlx::SqliteConnection;

use super::super::failure::failure;
use super::sql;
use crate::remembering::{Current, Decision, Put, blob_id, current, decide, inline};

pub(super) async fn write(
    connection: &mut SqliteConnection,
    owner: &MemoryOwner,
    new: &NewMemory,
    now_ms: i64,
) -> Result<Remembered, Failure> {
    let of_label = match &new.label {
        Some(label) => find(connection, sql::OF_LABEL, owner, label).await?,
        None => None,
    };
    let of_id = find(connection, sql::OF_ID, owner, new.id.as_str()).await?;
    match decide(new, of_label, of_id) {
        Decision::Nothing(done) => Ok(done),
        Decision::Embed(done) => {
            embed(connection, owner, new, &done).await.map_err(failure)?;
            Ok(done)
        }
        Decision::Put(put) => {
            store(connection, owner, new, &put, now_ms).await.map_err(failure)?;
            Ok(put.done)
        }
    }
}

pub(super) async fn delete(
    connection: &mut SqliteConnection,
    owner: &MemoryOwner,
    key: &MemoryKey,
    now_ms: i64,
) -> Result<bool, Failure> {
    let row = match key {
        MemoryKey::Id(id) => find(connection, sql::OF_ID, owner, id.as_str()).await?,
        MemoryKey::Label(label) => find(connection, sql::OF_LABEL, owner, label).await?,
    };
    let Some(id) = row.and_then(Current::into_live_id) else { return Ok(false) };
    forget(connection, owner, &id, now_ms).await.map_err(failure)?;
    Ok(true)
}

async fn find(
    connection: &mut SqliteConnection,
    sql: &'static str,
    owner: &MemoryOwner,
    key: &str,
) -> Result<Option<Current>, Failure> {
    let query = sqlx::query(sql).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str()).bind(key);
    query.fetch_optional(connection).await.map_err(failure)?.as_ref().map(current).transpose()
}

async fn embed(
    connection: &mut SqliteConnection,
    owner: &MemoryOwner,
    new: &NewMemory,
    done: &Remembered,
) -> Result<(), sqlx::Error> {
    let Some(embedding) = &new.embedding else { return Ok(()) };
    sqlx::query(sql::EMBED)
        .bind(owner.namespace.as_str())
        .bind(owner.agent_id.as_str())
        .bind(done.id.as_str())
        .bind(done.version as i64)
        .bind(embedding.model.as_str())
        .bind(to_bytes(&embedding.vector))
        .execute(connection)
        .await?;
    Ok(())
}

async fn store(
    connection: &mut SqliteConnection,
    owner: &MemoryOwner,
    new: &NewMemory,
    put: &Put,
    now_ms: i64,
) -> Result<(), sqlx::Error> {
    let id = &put.done.id;
    let (content, is_whole) = inline(&new.content);
    let blob_id = blob_id(owner, id);
    sqlx::query(sql::PUT)
        .bind(owner.namespace.as_str())
        .bind(owner.agent_id.as_str())
        .bind(id.as_str())
        .bind(put.done.version as i64)
        .bind(new.label.as_deref())
        .bind(new.tier.as_str())
        .bind(new.kind.as_str())
        .bind(new.significance)
        .bind(Json::of(&new.metadata).as_str())
        .bind(content)
        .bind((!is_whole).then_some(blob_id.as_str()))
        .bind(&new.content_hash()[..])
        .bind(&new.body_hash()[..])
        .bind(new.embedding.as_ref().map(|embedding| to_bytes(&embedding.vector)))
        .bind(put.keeps_embedding)
        .bind(new.embedding.as_ref().map(|embedding| embedding.model.as_str()))
        .bind(now_ms)
        .execute(&mut *connection)
        .await?;
    let blob = if is_whole { sqlx::query(sql::FORGET_BLOB) } else { sqlx::query(sql::PUT_BLOB) };
    let blob = blob.bind(owner.namespace.as_str()).bind(blob_id.as_str());
    let blob = if is_whole { blob } else { blob.bind(new.content.as_str()).bind(now_ms) };
    blob.execute(connection).await?;
    Ok(())
}

async fn forget(
    connection: &mut SqliteConnection,
    owner: &MemoryOwner,
    id: &MemoryId,
    now_ms: i64,
) -> Result<(), sqlx::Error> {
    let forget = sqlx::query(sql::FORGET).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str());
    forget.bind(id.as_str()).bind(now_ms).execute(&mut *connection).await?;
    let blob = sqlx::query(sql::FORGET_BLOB).bind(owner.namespace.as_str()).bind(blob_id(owner, id));
    blob.execute(connection).await?;
    Ok(())
}
