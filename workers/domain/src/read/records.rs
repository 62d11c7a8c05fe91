//! Logs of two places as one: SQL has every record, and the archive has the bodies of those that are light.
//!
//! SQL says which records there are, in which order, and how long each is; so a page is the same wherever its
//! bodies come from. A body leaves SQL once every reader sees it in the archive.

use std::sync::Arc;

use async_trait::async_trait;
use schemas::conversation::{Conversation, LogRecord, LogRow, Participant, Turn};
use schemas::id::{ActionId, ConversationId, Namespace, ParticipantId, SessionKey, TurnId};

use crate::conversation::kept::{LogPlace, cut, fill, light};
use crate::failure::Failure;
use crate::ports::{
    ConversationChange, ConversationQuery, Conversations, Inserted, LogQuery, Look, LookQuery, Post, Posted,
    TranscriptArchive, TurnPlace, TurnQuery,
};
use crate::spending::Spent;

/// Clones are the same conversations.
#[derive(Clone)]
pub struct ArchivedConversations {
    sql: Arc<dyn Conversations>,
    archive: Arc<dyn TranscriptArchive>,
}

impl ArchivedConversations {
    pub fn new(sql: Arc<dyn Conversations>, archive: Arc<dyn TranscriptArchive>) -> Self {
        Self { sql, archive }
    }

    /// Gives the rows of a page their bodies, and lets it end before it has more bytes of them.
    async fn complete(
        &self,
        namespace: &Namespace,
        conversation: &ConversationId,
        rows: &mut Vec<LogRow>,
        bytes: usize,
    ) -> Result<(), Failure> {
        cut(rows, bytes);
        let wanted = light(rows);
        if wanted.is_empty() {
            return Ok(());
        }
        let log = LogPlace { namespace: namespace.clone(), conversation_id: conversation.clone(), offset: 0 };
        fill(rows, self.archive.bodies(&log, &wanted).await?);
        match light(rows).first() {
            None => Ok(()),
            Some(offset) => Err(Failure::unavailable(format!(
                "the archive does not have record {offset} of the conversation {conversation}; try again, and if that \
                 does not help, let `stepfleet doctor --verify-history` look"
            ))),
        }
    }
}

#[async_trait]
impl Conversations for ArchivedConversations {
    async fn create(
        &self,
        namespace: &Namespace,
        new: &Conversation,
        participants: &[Participant],
        messages: &[LogRecord],
    ) -> Result<Inserted<Conversation>, Failure> {
        self.sql.create(namespace, new, participants, messages).await
    }

    async fn conversation(&self, namespace: &Namespace, id: &ConversationId) -> Result<Option<Conversation>, Failure> {
        self.sql.conversation(namespace, id).await
    }

    async fn list(&self, query: &ConversationQuery) -> Result<Vec<Conversation>, Failure> {
        self.sql.list(query).await
    }

    async fn change(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        change: &ConversationChange,
    ) -> Result<Option<Conversation>, Failure> {
        self.sql.change(namespace, id, change).await
    }

    async fn participants(&self, namespace: &Namespace, id: &ConversationId) -> Result<Vec<Participant>, Failure> {
        self.sql.participants(namespace, id).await
    }

    async fn join(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant: &Participant,
    ) -> Result<Option<Inserted<Participant>>, Failure> {
        self.sql.join(namespace, id, participant).await
    }

    async fn leave(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant: &ParticipantId,
    ) -> Result<Option<Participant>, Failure> {
        self.sql.leave(namespace, id, participant).await
    }

    async fn post(&self, post: Post) -> Result<Posted, Failure> {
        self.sql.post(post).await
    }

    async fn log(&self, query: &LogQuery) -> Result<Vec<LogRow>, Failure> {
        let mut rows = self.sql.log(query).await?;
        self.complete(&query.namespace, &query.conversation_id, &mut rows, query.bytes).await?;
        Ok(rows)
    }

    async fn log_of_sql(&self, query: &LogQuery) -> Result<Vec<LogRow>, Failure> {
        self.sql.log(query).await
    }

    async fn look(&self, query: &LookQuery) -> Result<Option<Look>, Failure> {
        let Some(mut look) = self.sql.look(query).await? else { return Ok(None) };
        let LogQuery { namespace, conversation_id, bytes, .. } = &query.log;
        let read = look.page.len();
        self.complete(namespace, conversation_id, &mut look.page, *bytes).await?;
        if look.page.len() < read {
            // Turns of records that come with a later page are told of then.
            let of_page = |turn: &Turn| look.page.iter().any(|row| row.record.turn_id.as_ref() == Some(&turn.turn_id));
            look.ended.retain(|turn| query.followed.contains(&turn.turn_id) || of_page(turn));
        }
        Ok(Some(look))
    }

    async fn record(
        &self,
        namespace: &Namespace,
        conversation: &ConversationId,
        id: &str,
    ) -> Result<Option<LogRow>, Failure> {
        let mut rows: Vec<LogRow> = self.sql.record(namespace, conversation, id).await?.into_iter().collect();
        self.complete(namespace, conversation, &mut rows, usize::MAX).await?;
        Ok(rows.pop())
    }

    async fn turn(&self, namespace: &Namespace, id: &TurnId) -> Result<Option<Turn>, Failure> {
        self.sql.turn(namespace, id).await
    }

    async fn turns(&self, query: &TurnQuery) -> Result<Vec<Turn>, Failure> {
        self.sql.turns(query).await
    }

    async fn is_at_work(&self, key: &SessionKey, besides: &ActionId) -> Result<bool, Failure> {
        self.sql.is_at_work(key, besides).await
    }

    async fn open_turns(&self, namespace: &Namespace, of: &[ConversationId]) -> Result<Vec<Turn>, Failure> {
        self.sql.open_turns(namespace, of).await
    }

    async fn active_turns(&self, after: Option<&TurnPlace>, limit: usize) -> Result<Vec<(TurnPlace, Turn)>, Failure> {
        self.sql.active_turns(after, limit).await
    }

    async fn spent(&self, namespace: &Namespace) -> Result<Spent, Failure> {
        self.sql.spent(namespace).await
    }
}
