//! Conversations of the library in a SQLite file of their own: for programs without a fleet.

mod open;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use domain::context::{Conversation, ConversationMessage, ConversationTurn};
use domain::failure::Failure;
use domain::ports::library::{ConversationStore, Order, Page, StoreError};
use schemas::id::{ConversationId, TurnId};
use schemas::json::Json;
use schemas::problem::Code;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::failure::failure;
use super::readers::Readers;
use super::rows::{get, json};
use super::writer::Writer;

#[cfg(test)]
pub(super) use open::MIGRATIONS;

const PUT_CONVERSATION: &str = "INSERT INTO conversations (id, value) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING";
const UPDATE_CONVERSATION: &str = "UPDATE conversations SET value = ?2 WHERE id = ?1";
const CONVERSATION: &str = "SELECT value FROM conversations WHERE id = ?1";
/// In the order of the ids that are asked for.
const TAKEN: &str = "
    SELECT m.id FROM json_each(?1) AS j CROSS JOIN messages AS m ON m.id = j.value LIMIT 1";
const PUT_MESSAGE: &str = "INSERT INTO messages (id, conversation_id, at_ms, value) VALUES (?1, ?2, ?3, ?4)";
const MESSAGES: &str = "
    SELECT at_ms, value FROM messages WHERE conversation_id = ?1 ORDER BY at_ms, position LIMIT ?2";
const MESSAGES_BACK: &str = "
    SELECT at_ms, value FROM messages WHERE conversation_id = ?1 ORDER BY at_ms DESC, position DESC LIMIT ?2";
const PUT_TURN: &str = "
    INSERT INTO turns (id, conversation_id, at_ms, value) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO NOTHING";
const UPDATE_TURN: &str = "UPDATE turns SET at_ms = ?2, value = ?3 WHERE id = ?1";
const TURN: &str = "SELECT at_ms, value FROM turns WHERE id = ?1 AND conversation_id = ?2";
const TURNS: &str = "
    SELECT at_ms, value FROM turns WHERE conversation_id = ?1 ORDER BY at_ms, position LIMIT ?2";
const TURNS_BACK: &str = "
    SELECT at_ms, value FROM turns WHERE conversation_id = ?1 ORDER BY at_ms DESC, position DESC LIMIT ?2";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("put_conversation", PUT_CONVERSATION),
    ("update_conversation", UPDATE_CONVERSATION),
    ("conversation", CONVERSATION),
    ("taken", TAKEN),
    ("put_message", PUT_MESSAGE),
    ("messages", MESSAGES),
    ("messages_back", MESSAGES_BACK),
    ("put_turn", PUT_TURN),
    ("update_turn", UPDATE_TURN),
    ("turn", TURN),
    ("turns", TURNS),
    ("turns_back", TURNS_BACK),
];

/// A durable [`ConversationStore`]: one SQLite file, which several processes of one machine may share.
/// What a call has stored is on the disk when it returns. Clones share connections.
///
/// It has no limit of its own: a full disk is told as `storage_full`, and nothing is lost then.
#[derive(Clone)]
pub struct SqliteConversations(Arc<Inner>);

struct Inner {
    writer: Writer,
    readers: Readers,
}

impl SqliteConversations {
    /// Closes all connections; the last one folds the write-ahead log into the file. Calls that come
    /// later fail as unavailable. Without it nothing is lost: the log stays beside the file.
    pub async fn close(&self) {
        self.0.readers.close().await;
        self.0.writer.close().await;
    }

    /// One of two statements, by the order that is asked for.
    async fn rows(
        &self,
        [forth, back]: [&'static str; 2],
        id: &ConversationId,
        page: Page,
    ) -> Result<Vec<SqliteRow>, Failure> {
        let sql = match page.order {
            Order::OldestFirst => forth,
            Order::NewestFirst => back,
        };
        // A negative limit is none.
        let limit = page.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let query = sqlx::query(sql).bind(id.to_string()).bind(limit);
        query.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)
    }
}

#[cfg(test)]
impl SqliteConversations {
    pub(super) fn readers(&self) -> &Readers {
        &self.0.readers
    }
}

#[async_trait]
impl ConversationStore for SqliteConversations {
    async fn create_conversation(&self, conversation: &Conversation) -> Result<(), StoreError> {
        let query = sqlx::query(PUT_CONVERSATION).bind(conversation.id.to_string()).bind(text_of(conversation)?);
        match self.0.writer.execute(query).await? {
            0 => Err(StoreError::Exists { what: "conversation", id: conversation.id.to_string() }),
            _ => Ok(()),
        }
    }

    async fn get_conversation(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        let query = sqlx::query(CONVERSATION).bind(id.to_string());
        let row = query.fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        Ok(row.map(|row| json(&row, "value")).transpose()?)
    }

    async fn update_conversation(&self, conversation: &Conversation) -> Result<(), StoreError> {
        let query = sqlx::query(UPDATE_CONVERSATION).bind(conversation.id.to_string()).bind(text_of(conversation)?);
        match self.0.writer.execute(query).await? {
            0 => Err(StoreError::NoConversation(conversation.id.clone())),
            _ => Ok(()),
        }
    }

    async fn append_messages(
        &self,
        conversation_id: &ConversationId,
        messages: &[ConversationMessage],
    ) -> Result<(), StoreError> {
        let values = messages.iter().map(text_of).collect::<Result<Vec<String>, Failure>>()?;
        let mut tx = self.0.writer.begin().await?;
        let appended = append(tx.connection(), conversation_id, messages, values).await;
        tx.finish(appended).await?
    }

    async fn get_messages(
        &self,
        conversation_id: &ConversationId,
        page: Page,
    ) -> Result<Vec<ConversationMessage>, StoreError> {
        let rows = self.rows([MESSAGES, MESSAGES_BACK], conversation_id, page).await?;
        Ok(rows.iter().map(message).collect::<Result<_, Failure>>()?)
    }

    async fn create_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError> {
        let value = text_of(turn)?;
        let mut tx = self.0.writer.begin().await?;
        let created = create_turn(tx.connection(), turn, value).await;
        tx.finish(created).await?
    }

    async fn update_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError> {
        let value = text_of(turn)?;
        let mut tx = self.0.writer.begin().await?;
        let updated = update_turn(tx.connection(), turn, value).await;
        tx.finish(updated).await?
    }

    async fn get_turn(
        &self,
        conversation_id: &ConversationId,
        turn_id: &TurnId,
    ) -> Result<Option<ConversationTurn>, StoreError> {
        let query = sqlx::query(TURN).bind(turn_id.to_string()).bind(conversation_id.to_string());
        let row = query.fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        Ok(row.map(|row| turn_of(&row)).transpose()?)
    }

    async fn list_turns(
        &self,
        conversation_id: &ConversationId,
        page: Page,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        let rows = self.rows([TURNS, TURNS_BACK], conversation_id, page).await?;
        Ok(rows.iter().map(turn_of).collect::<Result<_, Failure>>()?)
    }
}

/// What a transaction comes to: a refusal is decided before anything is written.
type Outcome = Result<Result<(), StoreError>, Failure>;

async fn append(
    connection: &mut SqliteConnection,
    conversation_id: &ConversationId,
    messages: &[ConversationMessage],
    values: Vec<String>,
) -> Outcome {
    if !has_conversation(connection, conversation_id).await? {
        return Ok(Err(StoreError::NoConversation(conversation_id.clone())));
    }
    let taken = |id: String| Ok(Err(StoreError::Exists { what: "message", id }));
    let mut ids = BTreeSet::new();
    if let Some(twice) = messages.iter().find(|message| !ids.insert(message.id.as_str())) {
        return taken(twice.id.to_string());
    }
    let asked: Vec<&str> = messages.iter().map(|message| message.id.as_str()).collect();
    let query = sqlx::query(TAKEN).bind(Json::of(&asked).as_str().to_owned());
    if let Some(row) = query.fetch_optional(&mut *connection).await.map_err(failure)? {
        return taken(get(&row, "id")?);
    }
    for (message, value) in messages.iter().zip(values) {
        let query = sqlx::query(PUT_MESSAGE)
            .bind(message.id.to_string())
            .bind(conversation_id.to_string())
            .bind(message.created_at_ms)
            .bind(value);
        query.execute(&mut *connection).await.map_err(failure)?;
    }
    Ok(Ok(()))
}

async fn create_turn(connection: &mut SqliteConnection, turn: &ConversationTurn, value: String) -> Outcome {
    if !has_conversation(connection, &turn.conversation_id).await? {
        return Ok(Err(StoreError::NoConversation(turn.conversation_id.clone())));
    }
    let query = sqlx::query(PUT_TURN)
        .bind(turn.id.to_string())
        .bind(turn.conversation_id.to_string())
        .bind(turn.started_at_ms)
        .bind(value);
    let done = query.execute(connection).await.map_err(failure)?;
    Ok(match done.rows_affected() {
        0 => Err(StoreError::Exists { what: "turn", id: turn.id.to_string() }),
        _ => Ok(()),
    })
}

async fn update_turn(connection: &mut SqliteConnection, turn: &ConversationTurn, value: String) -> Outcome {
    let query = sqlx::query(TURN).bind(turn.id.to_string()).bind(turn.conversation_id.to_string());
    let Some(row) = query.fetch_optional(&mut *connection).await.map_err(failure)? else {
        return Ok(Err(StoreError::NoTurn(turn.id.clone())));
    };
    let stored = turn_of(&row)?;
    if stored.status.has_ended() && stored != *turn {
        return Ok(Err(StoreError::TurnEnded(turn.id.clone())));
    }
    let query = sqlx::query(UPDATE_TURN).bind(turn.id.to_string()).bind(turn.started_at_ms).bind(value);
    query.execute(connection).await.map_err(failure)?;
    Ok(Ok(()))
}

async fn has_conversation(connection: &mut SqliteConnection, id: &ConversationId) -> Result<bool, Failure> {
    let query = sqlx::query(CONVERSATION).bind(id.to_string());
    Ok(query.fetch_optional(connection).await.map_err(failure)?.is_some())
}

/// A record as JSON. What could not be read again, because it is nested too deep, is refused here: it
/// would hold up every look at its conversation.
fn text_of<T: Serialize + DeserializeOwned>(record: &T) -> Result<String, Failure> {
    let refused = |problem: serde_json::Error| Failure {
        code: Code::InvalidRequest,
        ..Failure::internal(format!("this cannot be stored as JSON: {problem}"))
    };
    let text = serde_json::to_string(record).map_err(refused)?;
    serde_json::from_str::<T>(&text).map_err(refused)?;
    Ok(text)
}

/// Times in JSON have four digits for the year; the column has the time itself.
fn message(row: &SqliteRow) -> Result<ConversationMessage, Failure> {
    Ok(ConversationMessage { created_at_ms: get(row, "at_ms")?, ..json(row, "value")? })
}

fn turn_of(row: &SqliteRow) -> Result<ConversationTurn, Failure> {
    Ok(ConversationTurn { started_at_ms: get(row, "at_ms")?, ..json(row, "value")? })
}
