//! Conversations through faults.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{
    ConversationChange, ConversationQuery, Conversations, Inserted, LogQuery, Look, LookQuery, Post, Posted, TurnPlace,
    TurnQuery,
};
use domain::spending::Spent;
use schemas::conversation::{Conversation, LogRecord, LogRow, Participant, Turn};
use schemas::id::{ActionId, ConversationId, Namespace, ParticipantId, SessionKey, TurnId};

use crate::unreliable::{Port, Unreliable};

#[async_trait]
impl<P: Conversations + ?Sized> Conversations for Unreliable<P> {
    async fn create(
        &self,
        namespace: &Namespace,
        new: &Conversation,
        participants: &[Participant],
        messages: &[LogRecord],
    ) -> Result<Inserted<Conversation>, Failure> {
        let created = self.inner.create(namespace, new, participants, messages);
        self.faults.call(Port::Conversations, "conversations.create", created).await
    }

    async fn conversation(&self, namespace: &Namespace, id: &ConversationId) -> Result<Option<Conversation>, Failure> {
        let found = self.inner.conversation(namespace, id);
        self.faults.call(Port::Conversations, "conversations.conversation", found).await
    }

    async fn list(&self, query: &ConversationQuery) -> Result<Vec<Conversation>, Failure> {
        self.faults.call(Port::Conversations, "conversations.list", self.inner.list(query)).await
    }

    async fn change(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        change: &ConversationChange,
    ) -> Result<Option<Conversation>, Failure> {
        let changed = self.inner.change(namespace, id, change);
        self.faults.call(Port::Conversations, "conversations.change", changed).await
    }

    async fn participants(&self, namespace: &Namespace, id: &ConversationId) -> Result<Vec<Participant>, Failure> {
        let found = self.inner.participants(namespace, id);
        self.faults.call(Port::Conversations, "conversations.participants", found).await
    }

    async fn join(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant: &Participant,
    ) -> Result<Option<Inserted<Participant>>, Failure> {
        let joined = self.inner.join(namespace, id, participant);
        self.faults.call(Port::Conversations, "conversations.join", joined).await
    }

    async fn leave(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant: &ParticipantId,
    ) -> Result<Option<Participant>, Failure> {
        let left = self.inner.leave(namespace, id, participant);
        self.faults.call(Port::Conversations, "conversations.leave", left).await
    }

    async fn post(&self, post: Post) -> Result<Posted, Failure> {
        self.faults.call(Port::Conversations, "conversations.post", self.inner.post(post)).await
    }

    async fn log(&self, query: &LogQuery) -> Result<Vec<LogRow>, Failure> {
        self.faults.call(Port::Conversations, "conversations.log", self.inner.log(query)).await
    }

    async fn look(&self, query: &LookQuery) -> Result<Option<Look>, Failure> {
        self.faults.call(Port::Conversations, "conversations.look", self.inner.look(query)).await
    }

    async fn record(
        &self,
        namespace: &Namespace,
        conversation: &ConversationId,
        id: &str,
    ) -> Result<Option<LogRow>, Failure> {
        let found = self.inner.record(namespace, conversation, id);
        self.faults.call(Port::Conversations, "conversations.record", found).await
    }

    async fn turn(&self, namespace: &Namespace, id: &TurnId) -> Result<Option<Turn>, Failure> {
        self.faults.call(Port::Conversations, "conversations.turn", self.inner.turn(namespace, id)).await
    }

    async fn turns(&self, query: &TurnQuery) -> Result<Vec<Turn>, Failure> {
        self.faults.call(Port::Conversations, "conversations.turns", self.inner.turns(query)).await
    }

    async fn is_at_work(&self, key: &SessionKey, besides: &ActionId) -> Result<bool, Failure> {
        let found = self.inner.is_at_work(key, besides);
        self.faults.call(Port::Conversations, "conversations.is_at_work", found).await
    }

    async fn open_turns(&self, namespace: &Namespace, of: &[ConversationId]) -> Result<Vec<Turn>, Failure> {
        self.faults.call(Port::Conversations, "conversations.open_turns", self.inner.open_turns(namespace, of)).await
    }

    async fn active_turns(&self, after: Option<&TurnPlace>, limit: usize) -> Result<Vec<(TurnPlace, Turn)>, Failure> {
        let active = self.inner.active_turns(after, limit);
        self.faults.call(Port::Conversations, "conversations.active_turns", active).await
    }

    async fn spent(&self, namespace: &Namespace) -> Result<Spent, Failure> {
        self.faults.call(Port::Conversations, "conversations.spent", self.inner.spent(namespace)).await
    }
}
