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
use schemas::conversation::{Conversation, LogKind, LogRecord, LogRow, Participant, Turn, TurnStatus};
use schemas::id::{ActionId, ConversationId, Namespace, ParticipantId, SessionKey, TurnId};
use schemas::limits::{OPEN_TURNS_MAX, PARTICIPANTS_MAX, SPENT_OF_SHARD_MAX};

use super::PostgresStore;
use super::pool::Statement;
use super::rows::{clean, get};
use crate::columns::look::look as read_look;
use crate::columns::talk::{conversation, log_row, participant, placed_turn, spent, turn};
#[cfg(test)]
pub(super) use sql::SQL;

#[async_trait]
impl Conversations for PostgresStore {
    async fn create(
        &self,
        namespace: &Namespace,
        new: &Conversation,
        participants: &[Participant],
        messages: &[LogRecord],
    ) -> Result<Inserted<Conversation>, Failure> {
        self.0.talking.run(&write::Create { namespace, new, participants, messages }).await
    }

    async fn conversation(&self, namespace: &Namespace, id: &ConversationId) -> Result<Option<Conversation>, Failure> {
        let query = at(sql::ONE, namespace, id);
        self.0.by_key.fetch_optional(query).await?.as_ref().map(conversation).transpose()
    }

    async fn list(&self, query: &ConversationQuery) -> Result<Vec<Conversation>, Failure> {
        let (at, id) = query.after.as_ref().map_or((i64::MAX, ""), |(at, id)| (*at, id.as_str()));
        let statement = sqlx::query(list_statement(query))
            .bind(query.namespace.as_str())
            .bind(at)
            .bind(id)
            .bind(query.status.map(|status| status.as_str()))
            .bind(query.created_by.as_deref().map(clean))
            .bind(query.subject_id.as_deref().map(clean))
            .bind(query.tag.as_deref().map(clean))
            .bind(query.agent_id.as_ref().map(|id| id.as_str()))
            .bind(query.user_id.as_ref().map(|id| id.as_str()))
            .bind(query.include_internal)
            .bind(query.limit as i64);
        self.0.pool.fetch_all(statement).await?.iter().map(conversation).collect()
    }

    async fn change(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        change: &ConversationChange,
    ) -> Result<Option<Conversation>, Failure> {
        self.0.talking.run(&write::Change { namespace, id, change }).await
    }

    async fn participants(&self, namespace: &Namespace, id: &ConversationId) -> Result<Vec<Participant>, Failure> {
        let query = at(sql::PARTICIPANTS, namespace, id).bind(PARTICIPANTS_MAX as i64);
        self.0.by_key.fetch_all(query).await?.iter().map(participant).collect()
    }

    async fn join(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        new: &Participant,
    ) -> Result<Option<Inserted<Participant>>, Failure> {
        self.0.talking.run(&write::Join { namespace, id, new }).await
    }

    async fn leave(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant_id: &ParticipantId,
    ) -> Result<Option<Participant>, Failure> {
        self.0.talking.run(&write::Leave { namespace, id, who: participant_id }).await
    }

    async fn post(&self, post: Post) -> Result<Posted, Failure> {
        self.0.talking.run(&write::Posting { shards: self.0.shards, post: &post }).await
    }

    async fn log(&self, query: &LogQuery) -> Result<Vec<LogRow>, Failure> {
        let kinds: Vec<&str> = query.kinds.iter().map(|kind| kind.as_str()).collect();
        let statement = at(log_statement(query), &query.namespace, &query.conversation_id)
            .bind(whole(query.after))
            .bind(query.before.map_or(i64::MAX, whole))
            .bind(query.since_ms)
            .bind((!kinds.is_empty()).then_some(kinds))
            .bind(query.turn_id.as_ref().map(|id| id.as_str()))
            .bind(query.limit as i64)
            .bind(whole(query.bytes as u64));
        self.0.by_key.fetch_all(statement).await?.iter().map(log_row).collect()
    }

    async fn look(&self, query: &LookQuery) -> Result<Option<Look>, Failure> {
        read_look(&self.0.by_key.fetch_all(look::statement(query)).await?)
    }

    async fn record(
        &self,
        namespace: &Namespace,
        conversation: &ConversationId,
        id: &str,
    ) -> Result<Option<LogRow>, Failure> {
        let query = at(sql::RECORD, namespace, conversation).bind(clean(id).into_owned());
        self.0.by_key.fetch_optional(query).await?.as_ref().map(log_row).transpose()
    }

    async fn turn(&self, namespace: &Namespace, id: &TurnId) -> Result<Option<Turn>, Failure> {
        let query = sqlx::query(sql::TURN).bind(namespace.as_str()).bind(id.as_str());
        self.0.by_key.fetch_optional(query).await?.as_ref().map(turn).transpose()
    }

    async fn open_turns(&self, namespace: &Namespace, of: &[ConversationId]) -> Result<Vec<Turn>, Failure> {
        let ids: Vec<&str> = of.iter().map(|id| id.as_str()).collect();
        let query = sqlx::query(sql::OPEN_TURNS).bind(namespace.as_str()).bind(ids).bind(OPEN_TURNS_MAX as i64);
        self.0.by_key.fetch_all(query).await?.iter().map(turn).collect()
    }

    async fn is_at_work(&self, key: &SessionKey, besides: &ActionId) -> Result<bool, Failure> {
        let query = sqlx::query(sql::IS_AT_WORK)
            .bind(key.namespace.as_str())
            .bind(key.session_id.as_str())
            .bind(besides.as_str());
        get(&self.0.by_key.fetch_one(query).await?, "is_at_work")
    }

    async fn active_turns(&self, after: Option<&TurnPlace>, limit: usize) -> Result<Vec<(TurnPlace, Turn)>, Failure> {
        let query = sqlx::query(sql::ACTIVE_TURNS)
            .bind(after.map_or("", |place| place.namespace.as_str()))
            .bind(after.map_or("", |place| place.conversation_id.as_str()))
            .bind(after.map_or(i64::MIN, |place| place.created_at_ms))
            .bind(after.map_or("", |place| place.turn_id.as_str()))
            .bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(placed_turn).collect()
    }

    async fn spent(&self, namespace: &Namespace) -> Result<Spent, Failure> {
        let query = sqlx::query(sql::SPENT).bind(namespace.as_str()).bind(whole(SPENT_OF_SHARD_MAX));
        let row = self.0.by_key.fetch_optional(query).await?;
        row.as_ref().map_or(Ok(Spent::default()), spent)
    }

    async fn turns(&self, query: &TurnQuery) -> Result<Vec<Turn>, Failure> {
        let first = if query.descending { (i64::MAX, "") } else { (i64::MIN, "") };
        let (at, id) = query.after.as_ref().map_or(first, |(at, id)| (*at, id.as_str()));
        let statement = sqlx::query(turns_statement(query))
            .bind(query.namespace.as_str())
            .bind(at)
            .bind(id)
            .bind(query.conversation_id.as_ref().map(|id| id.as_str()))
            .bind(query.session_id.as_ref().map(|id| id.as_str()))
            .bind(query.status.map(|status| status.as_str()))
            .bind(query.limit as i64);
        let rows = match query.conversation_id {
            Some(_) => self.0.by_key.fetch_all(statement).await?,
            None => self.0.pool.fetch_all(statement).await?,
        };
        rows.iter().map(turn).collect()
    }
}

/// The statement whose index narrows the query most.
fn list_statement(query: &ConversationQuery) -> &'static str {
    if query.subject_id.is_some() {
        sql::LIST
    } else if query.tag.is_some() {
        sql::LIST_OF_TAG
    } else if query.user_id.is_some() {
        sql::LIST_OF_USER
    } else if query.agent_id.is_some() {
        sql::LIST_OF_AGENT
    } else {
        sql::LIST
    }
}

/// Named by its index: one plan serves all that is asked of it.
fn log_statement(query: &LogQuery) -> &'static str {
    let statements = if query.turn_id.is_some() {
        sql::LOG_OF_TURN
    } else if query.kinds == [LogKind::Summary] {
        sql::LOG_OF_SUMMARIES
    } else {
        sql::LOG
    };
    statements[usize::from(query.descending)]
}

/// Likewise; without a conversation it is planned for what is asked.
fn turns_statement(query: &TurnQuery) -> &'static str {
    let statements = match (&query.conversation_id, query.status) {
        (None, _) => sql::TURNS,
        (Some(_), Some(TurnStatus::Active)) => sql::TURNS_OPEN,
        (Some(_), _) => sql::TURNS_OF_CONVERSATION,
    };
    statements[usize::from(query.descending)]
}

/// Callers say "no bound" with the largest value.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Binds the address of a conversation.
fn at(sql: &'static str, namespace: &Namespace, id: &ConversationId) -> Statement {
    sqlx::query(sql).bind(namespace.as_str()).bind(id.as_str())
}
