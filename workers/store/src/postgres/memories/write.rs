//! Writing and deleting a memory: units of work, so that writers of one agent come one after the other.

use std::borrow::Cow;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::vector::to_bytes;
use domain::memory::{Embedding, MemoryKey, NewMemory};
use domain::ports::Remembered;
use schemas::json::Json;
use schemas::memory::MemoryOwner;
use sqlx::PgConnection;

use super::super::rows::clean;
use super::super::writer::{Trouble, Unit, begin, commit};
use super::sql;
use crate::remembering::{Current, Decision, Put, blob_id, current, decide, inline};

/// The memory as PostgreSQL can keep it, so that a repeat of it is told by what is kept.
pub(super) fn storable(new: &NewMemory) -> Cow<'_, NewMemory> {
    let texts = [&new.kind, &new.content].into_iter().chain(&new.label);
    if texts.into_iter().all(|text| !text.contains('\0')) {
        return Cow::Borrowed(new);
    }
    Cow::Owned(NewMemory {
        label: new.label.as_deref().map(|label| clean(label).into_owned()),
        kind: clean(&new.kind).into_owned(),
        content: clean(&new.content).into_owned(),
        ..new.clone()
    })
}

pub(super) struct Write<'w> {
    pub(super) owner: &'w MemoryOwner,
    pub(super) new: &'w NewMemory,
}

#[async_trait]
impl Unit<Remembered> for Write<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Remembered, Trouble> {
        let Self { owner, new } = self;
        begin(connection).await?;
        lock(connection, owner).await?;
        let of_label = match &new.label {
            Some(label) => find(connection, sql::OF_LABEL, owner, label).await?,
            None => None,
        };
        let of_id = find(connection, sql::OF_ID, owner, new.id.as_str()).await?;
        let done = match decide(new, of_label, of_id) {
            Decision::Nothing(done) => done,
            Decision::Embed(done) => {
                if let Some(embedding) = &new.embedding {
                    embed(connection, owner, &done, embedding).await?;
                }
                done
            }
            Decision::Put(put) => {
                store(connection, owner, new, &put).await?;
                put.done
            }
        };
        commit(connection).await?;
        Ok(done)
    }
}

pub(super) struct Delete<'w> {
    pub(super) owner: &'w MemoryOwner,
    pub(super) key: &'w MemoryKey,
}

#[async_trait]
impl Unit<bool> for Delete<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<bool, Trouble> {
        let owner = self.owner;
        begin(connection).await?;
        lock(connection, owner).await?;
        let row = match self.key {
            MemoryKey::Id(id) => find(connection, sql::OF_ID, owner, id.as_str()).await?,
            MemoryKey::Label(label) => find(connection, sql::OF_LABEL, owner, &clean(label)).await?,
        };
        let id = row.and_then(Current::into_live_id);
        if let Some(id) = &id {
            let forget = sqlx::query(sql::FORGET).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str());
            forget.bind(id.as_str()).execute(&mut *connection).await?;
            let blob = sqlx::query(sql::FORGET_BLOB).bind(owner.namespace.as_str()).bind(blob_id(owner, id));
            blob.execute(&mut *connection).await?;
        }
        commit(connection).await?;
        Ok(id.is_some())
    }
}

/// What the next statement sees is whole: its snapshot is taken after the lock.
async fn lock(connection: &mut PgConnection, owner: &MemoryOwner) -> Result<(), Trouble> {
    let lock = sqlx::query(sql::LOCK).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str());
    lock.execute(connection).await?;
    Ok(())
}

async fn find(
    connection: &mut PgConnection,
    sql: &'static str,
    owner: &MemoryOwner,
    key: &str,
) -> Result<Option<Current>, Trouble> {
    let query = sqlx::query(sql).bind(owner.namespace.as_str()).bind(owner.agent_id.as_str()).bind(key);
    let row = query.fetch_optional(connection).await?;
    let found: Result<Option<Current>, Failure> = row.as_ref().map(current).transpose();
    Ok(found?)
}

async fn embed(
    connection: &mut PgConnection,
    owner: &MemoryOwner,
    done: &Remembered,
    embedding: &Embedding,
) -> Result<(), Trouble> {
    sqlx::query(sql::EMBED)
        .bind(owner.namespace.as_str())
        .bind(owner.agent_id.as_str())
        .bind(done.id.as_str())
        .bind(done.version as i64)
        .bind(clean(&embedding.model))
        .bind(to_bytes(&embedding.vector))
        .execute(connection)
        .await?;
    Ok(())
}

async fn store(connection: &mut PgConnection, owner: &MemoryOwner, new: &NewMemory, put: &Put) -> Result<(), Trouble> {
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
        .bind(new.embedding.as_ref().map(|embedding| clean(&embedding.model)))
        .execute(&mut *connection)
        .await?;
    let blob = if is_whole { sqlx::query(sql::FORGET_BLOB) } else { sqlx::query(sql::PUT_BLOB) };
    let blob = blob.bind(owner.namespace.as_str()).bind(blob_id.as_str());
    let blob = if is_whole { blob } else { blob.bind(new.content.as_str()) };
    blob.execute(connection).await?;
    Ok(())
}
