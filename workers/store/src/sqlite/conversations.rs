//! Conversations: their rows, logs and turns.

mod look;
mod sql;
mod write;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{
    ConversationChange, ConversationQuery, Conversations, Inserted, LogQuery, Look, LookQuery, Post, Posted, TurnPlace,
    TurnQuery,
};
use domain::spending::Spent;
use futures::TryStreamExt;
use schemas::conversation::{Conversation, LogKind, LogRecord, LogRow, Participant, Turn, TurnStatus};
use schemas::id::{ActionId, ConversationId, Namespace, ParticipantId, SessionKey, TurnId};
use schemas::json::Json;
use schemas::limits::{OPEN_TURNS_MAX, PARTICIPANTS_MAX, SPENT_OF_SHARD_MAX};

use super::SqliteStore;
use super::accept;
use super::failure::failure;
use super::rows::get;
use super::writer::Statement;
use crate::columns::look::look as read_look;
use crate::columns::talk::{conversation, log_row, participant, placed_turn, spent, turn};
#[cfg(test)]
pub(super) use look::SQL as LOOK_SQL;
#[cfg(test)]
pub(super) use sql::SQL;

#[async_trait]
impl Conversations for SqliteStore {
    async fn create(
        &self,
        namespace: &Namespace,
        new: &Conversation,
        participants: &[Participant],
        messages: &[LogRecord],
    ) -> Result<Inserted<Conversation>, Failure> {
        let mut tx = self.0.writer.begin().await?;
        let given = (new, participants, messages);
        let result = write::create(tx.connection(), self.0.clock.now_ms(), namespace, given).await;
        tx.finish(result).await
    }

    async fn conversation(&self, namespace: &Namespace, id: &ConversationId) -> Result<Option<Conversation>, Failure> {
        let query = sqlx::query(sql::ONE).bind(namespace.as_str()).bind(id.as_str());
        let row = query.fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        row.as_ref().map(conversation).transpose()
    }

    async fn list(&self, query: &ConversationQuery) -> Result<Vec<Conversation>, Failure> {
        let (at, id) = query.after.as_ref().map_or((i64::MAX, ""), |(at, id)| (*at, id.as_str()));
        let rows = sqlx::query(list_statement(query))
            .bind(query.namespace.as_str())
            .bind(at)
            .bind(id)
            .bind(query.status.map(|status| status.as_str()))
            .bind(query.created_by.as_deref())
            .bind(query.subject_id.as_deref())
            .bind(query.tag.as_deref())
            .bind(query.agent_id.as_ref().map(|id| id.as_str()))
            .bind(query.user_id.as_ref().map(|id| id.as_str()))
            .bind(query.include_internal)
            .bind(query.limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(conversation).collect()
    }

    async fn change(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        change: &ConversationChange,
    ) -> Result<Option<Conversation>, Failure> {
        let mut tx = self.0.writer.begin().await?;
        let result = write::change(tx.connection(), self.0.clock.now_ms(), (namespace, id), change).await;
        tx.finish(result).await
    }

    async fn participants(&self, namespace: &Namespace, id: &ConversationId) -> Result<Vec<Participant>, Failure> {
        let query = sqlx::query(sql::PARTICIPANTS).bind(namespace.as_str()).bind(id.as_str());
        let rows =
            query.bind(PARTICIPANTS_MAX as i64).fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        rows.iter().map(participant).collect()
    }

    async fn join(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant: &Participant,
    ) -> Result<Option<Inserted<Participant>>, Failure> {
        let mut tx = self.0.writer.begin().await?;
        let result = write::join(tx.connection(), self.0.clock.now_ms(), (namespace, id), participant).await;
        tx.finish(result).await
    }

    async fn leave(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant_id: &ParticipantId,
    ) -> Result<Option<Participant>, Failure> {
        let mut tx = self.0.writer.begin().await?;
        let result = write::leave(tx.connection(), self.0.clock.now_ms(), (namespace, id), participant_id).await;
        tx.finish(result).await
    }

    async fn post(&self, post: Post) -> Result<Posted, Failure> {
        accept::post::post(&self.0.writer, self.0.clock.now_ms(), self.0.shards, &post).await
    }

    async fn log(&self, query: &LogQuery) -> Result<Vec<LogRow>, Failure> {
        let kinds: Vec<&str> = query.kinds.iter().map(|kind| kind.as_str()).collect();
        let mut reader = self.0.readers.lend().await?;
        let mut stream = sqlx::query(log_statement(query))
            .bind(query.namespace.as_str())
            .bind(query.conversation_id.as_str())
            .bind(whole(query.after))
            .bind(query.before.map_or(i64::MAX, whole))
            .bind(query.since_ms)
            .bind((!kinds.is_empty()).then(|| Json::of(&kinds).as_str().to_owned()))
            .bind(query.turn_id.as_ref().map(|id| id.as_str()))
            .bind(query.limit as i64)
            .fetch(&mut *reader);
        let (mut rows, mut taken) = (Vec::new(), 0_usize);
        while let Some(row) = stream.try_next().await.map_err(failure)? {
            taken = taken.saturating_add(get::<&str>(&row, "body")?.len());
            if taken > query.bytes && !rows.is_empty() {
                break;
            }
            rows.push(log_row(&row)?);
        }
        Ok(rows)
    }

    async fn look(&self, query: &LookQuery) -> Result<Option<Look>, Failure> {
        let rows = look::statement(query).fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        read_look(&rows)
    }

    async fn record(
        &self,
        namespace: &Namespace,
        conversation: &ConversationId,
        id: &str,
    ) -> Result<Option<LogRow>, Failure> {
        let query = at(sql::RECORD, namespace, conversation).bind(id.to_owned());
        query
            .fetch_optional(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?
            .as_ref()
            .map(log_row)
            .transpose()
    }

    async fn turn(&self, namespace: &Namespace, id: &TurnId) -> Result<Option<Turn>, Failure> {
        let query = sqlx::query(sql::TURN).bind(namespace.as_str()).bind(id.as_str());
        let row = query.fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        row.as_ref().map(turn).transpose()
    }

    async fn open_turns(&self, namespace: &Namespace, of: &[ConversationId]) -> Result<Vec<Turn>, Failure> {
        let ids = serde_json::json!(of).to_string();
        let query = sqlx::query(sql::OPEN_TURNS).bind(namespace.as_str()).bind(ids).bind(OPEN_TURNS_MAX as i64);
        query.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?.iter().map(turn).collect()
    }

    async fn is_at_work(&self, key: &SessionKey, besides: &ActionId) -> Result<bool, Failure> {
        let query = sqlx::query(sql::IS_AT_WORK)
            .bind(key.namespace.as_str())
            .bind(key.session_id.as_str())
            .bind(besides.as_str());
        let row = query.fetch_one(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        get(&row, "is_at_work")
    }

    async fn active_turns(&self, after: Option<&TurnPlace>, limit: usize) -> Result<Vec<(TurnPlace, Turn)>, Failure> {
        let query = sqlx::query(sql::ACTIVE_TURNS)
            .bind(after.map_or("", |place| place.namespace.as_str()))
            .bind(after.map_or("", |place| place.conversation_id.as_str()))
            .bind(after.map_or(i64::MIN, |place| place.created_at_ms))
            .bind(after.map_or("", |place| place.turn_id.as_str()))
            .bind(limit as i64);
        query.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?.iter().map(placed_turn).collect()
    }

    async fn spent(&self, namespace: &Namespace) -> Result<Spent, Failure> {
        let query = sqlx::query(sql::SPENT).bind(namespace.as_str()).bind(whole(SPENT_OF_SHARD_MAX));
        spent(&query.fetch_one(&mut *self.0.readers.lend().await?).await.map_err(failure)?)
    }

    async fn turns(&self, query: &TurnQuery) -> Result<Vec<Turn>, Failure> {
        let first = if query.descending { (i64::MAX, "") } else { (i64::MIN, "") };
        let (at, id) = query.after.as_ref().map_or(first, |(at, id)| (*at, id.as_str()));
        let rows = sqlx::query(turns_statement(query))
            .bind(query.namespace.as_str())
            .bind(at)
            .bind(id)
            .bind(query.conversation_id.as_ref().map(|id| id.as_str()))
            .bind(query.session_id.as_ref().map(|id| id.as_str()))
            .bind(query.status.map(|status| status.as_str()))
            .bind(query.limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(turn).collect()
    }
}

/// The statement whose index narrows the query most.
fn list_statement(query: &ConversationQuery) -> &'static str {
    if query.subject_id.is_some() {
        sql::LIST_OF_SUBJECT
    } else if query.tag.is_some() {
        sql::LIST_OF_TAG
    } else if query.user_id.is_some() {
        sql::LIST_OF_USER
    } else if query.agent_id.is_some() {
        sql::LIST_OF_AGENT
    } else if query.include_internal {
        sql::LIST
    } else {
        sql::LIST_LISTED
    }
}

fn log_statement(query: &LogQuery) -> &'static str {
    match (query.turn_id.is_some(), query.descending) {
        (false, true) if query.kinds == [LogKind::Summary] => sql::LOG_OF_SUMMARIES_BACK,
        (false, false) => sql::LOG,
        (false, true) => sql::LOG_BACK,
        (true, false) => sql::LOG_OF_TURN,
        (true, true) => sql::LOG_OF_TURN_BACK,
    }
}

fn turns_statement(query: &TurnQuery) -> &'static str {
    let statements = if query.session_id.is_some() {
        sql::TURNS_OF_SESSION
    } else if query.conversation_id.is_none() {
        sql::TURNS
    } else if query.status == Some(TurnStatus::Active) {
        sql::TURNS_OPEN
    } else {
        sql::TURNS_OF_CONVERSATION
    };
    statements[usize::from(query.descending)]
}

/// Callers say "no bound" with the largest value.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Binds the address of a conversation.
fn at(sql: &'static str, namespace: &Namespace, id: &ConversationId) -> Statement {
    sqlx::query(sql).bind(namespace.to_string()).bind(id.to_string())
}
