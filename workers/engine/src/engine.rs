//! The engine: conversations, messages, turns.

mod run;

use std::sync::Arc;

use domain::chat::RequestClass;
use domain::context::{
    Conversation, ConversationMessage, ConversationTurn, MessageKind, MessageRole, NewMessage, TurnError, TurnStatus,
};
use domain::ports::DeltaSink;
use domain::ports::library::{Page, StoreError};
use schemas::id::{ConversationId, TurnId};
use schemas::limits::{MESSAGE_BYTES_MAX, TURN_MESSAGES_MAX};
use serde_json::{Map, Value};

use crate::cancel::Running;
use crate::config::EngineConfig;
use crate::error::EngineError;
use crate::planner::{DefaultPlanner, TurnPlanner};

/// System messages at the beginning of a long conversation that are looked at although the newest
/// messages alone are too many.
const LEADING_MESSAGES_MAX: usize = 16;

/// Cheap to clone; clones are the same engine. Conversations, and turns of one conversation, may run
/// side by side.
#[derive(Clone)]
pub struct ConversationEngine {
    inner: Arc<Inner>,
}

struct Inner {
    config: EngineConfig,
    planner: Arc<dyn TurnPlanner>,
    running: Running,
}

/// What a new conversation is to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CreateConversation {
    /// The caller's own.
    pub id: Option<ConversationId>,
    /// Absent: the default agent.
    pub agent: Option<String>,
    pub subject_id: Option<String>,
    pub title: Option<String>,
    pub initial_messages: Vec<NewMessage>,
    pub metadata: Map<String, Value>,
}

/// What a turn is to do.
#[derive(Clone)]
pub struct RunTurn {
    pub conversation_id: ConversationId,
    /// The caller's own, to cancel it by.
    pub turn_id: Option<TurnId>,
    /// Absent: the agent of the conversation.
    pub agent: Option<String>,
    /// Absent: `user_message`, `tool_result` or `system_trigger`, by the last message.
    pub trigger_type: Option<String>,
    /// For the planner.
    pub hints: Map<String, Value>,
    /// Kept on the turn; adapters see it, providers do not.
    pub metadata: Map<String, Value>,
    pub request_class: Option<RequestClass>,
    /// Told the answer piece by piece; all at once if the provider cannot stream.
    pub sink: Option<Arc<dyn DeltaSink>>,
}

impl RunTurn {
    pub fn new(conversation_id: &ConversationId) -> Self {
        Self {
            conversation_id: conversation_id.clone(),
            turn_id: None,
            agent: None,
            trigger_type: None,
            hints: Map::new(),
            metadata: Map::new(),
            request_class: None,
            sink: None,
        }
    }

    pub fn hint(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.hints.insert(name.into(), value.into());
        self
    }

    pub fn trigger(self, trigger_type: impl Into<String>) -> Self {
        Self { trigger_type: Some(trigger_type.into()), ..self }
    }

    pub fn stream_to(self, sink: Arc<dyn DeltaSink>) -> Self {
        Self { sink: Some(sink), ..self }
    }
}

impl ConversationEngine {
    /// # Errors
    /// Everything that is wrong with the configuration, at once.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        config.check()?;
        let planner =
            config.planner.clone().unwrap_or_else(|| Arc::new(DefaultPlanner::new(config.default_models.clone())));
        Ok(Self { inner: Arc::new(Inner { config, planner, running: Running::default() }) })
    }

    /// Stores a conversation and its first messages.
    ///
    /// # Errors
    /// The id is taken, a message is too large, or the store failed. If it failed between the two, the
    /// conversation is there without messages.
    pub async fn create_conversation(&self, options: CreateConversation) -> Result<Conversation, EngineError> {
        let config = &self.inner.config;
        let now = config.clock.now_ms();
        let conversation = Conversation {
            id: options.id.unwrap_or_else(|| config.ids.next(now).into()),
            agent: options.agent.unwrap_or_else(|| config.default_agent.clone()),
            subject_id: options.subject_id,
            title: options.title,
            created_at_ms: now,
            updated_at_ms: now,
            metadata: options.metadata,
        };
        let messages = self.complete(&conversation.id, options.initial_messages, now)?;
        config.store.create_conversation(&conversation).await?;
        if !messages.is_empty() {
            config.store.append_messages(&conversation.id, &messages).await?;
        }
        config.hooks.on_conversation_created(&conversation).await;
        Ok(conversation)
    }

    /// # Errors
    /// The store failed.
    pub async fn get_conversation(&self, id: &ConversationId) -> Result<Option<Conversation>, EngineError> {
        Ok(self.inner.config.store.get_conversation(id).await?)
    }

    /// Replaces all but the id; what is returned has the new `updated_at`.
    ///
    /// # Errors
    /// There is no such conversation, or the store failed.
    pub async fn update_conversation(&self, conversation: Conversation) -> Result<Conversation, EngineError> {
        let config = &self.inner.config;
        let updated_at_ms = config.clock.now_ms().max(conversation.updated_at_ms);
        let conversation = Conversation { updated_at_ms, ..conversation };
        config.store.update_conversation(&conversation).await?;
        Ok(conversation)
    }

    /// Adds messages, all of them or none. Without a time of their own they come behind all others.
    ///
    /// # Errors
    /// There is no such conversation, an id is taken, a message is too large, or the store failed.
    pub async fn append_messages(
        &self,
        conversation_id: &ConversationId,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<ConversationMessage>, EngineError> {
        let store = &self.inner.config.store;
        let newest = store.get_messages(conversation_id, Page::newest(1)).await?;
        let messages = self.complete(conversation_id, messages, self.now_behind(&newest))?;
        store.append_messages(conversation_id, &messages).await?;
        Ok(messages)
    }

    /// The messages that turns look at, oldest first: the newest [`TURN_MESSAGES_MAX`], and before
    /// them the system messages that the conversation begins with.
    ///
    /// # Errors
    /// There is no such conversation, or the store failed.
    pub async fn messages(&self, conversation_id: &ConversationId) -> Result<Vec<ConversationMessage>, EngineError> {
        Ok(self.load(conversation_id).await?.1)
    }

    /// # Errors
    /// The store failed.
    pub async fn get_turn(
        &self,
        conversation_id: &ConversationId,
        turn_id: &TurnId,
    ) -> Result<Option<ConversationTurn>, EngineError> {
        Ok(self.inner.config.store.get_turn(conversation_id, turn_id).await?)
    }

    /// # Errors
    /// The store failed.
    pub async fn list_turns(
        &self,
        conversation_id: &ConversationId,
        page: Page,
    ) -> Result<Vec<ConversationTurn>, EngineError> {
        Ok(self.inner.config.store.list_turns(conversation_id, page).await?)
    }

    /// Cuts a turn off. One that runs in this process is told to stop: its call is dropped, and its
    /// `run_turn` stores it as cancelled and returns; an answer that is being stored just then still
    /// counts. One that runs nowhere any more, because its process died, is stored as cancelled here.
    ///
    /// `false` if it had ended before.
    ///
    /// # Errors
    /// There is no such turn, or the store failed.
    pub async fn cancel(&self, conversation_id: &ConversationId, turn_id: &TurnId) -> Result<bool, EngineError> {
        let Inner { config, running, .. } = self.inner.as_ref();
        if running.cancel(turn_id) {
            return Ok(true);
        }
        let no_turn = || EngineError::NoTurn { conversation: conversation_id.clone(), turn: turn_id.clone() };
        let mut turn = config.store.get_turn(conversation_id, turn_id).await?.ok_or_else(no_turn)?;
        if turn.status.has_ended() {
            return Ok(false);
        }
        let error = cancelled();
        turn.status = TurnStatus::Cancelled;
        turn.finished_at_ms = Some(config.clock.now_ms().max(turn.started_at_ms));
        turn.error = Some(error.clone());
        match config.store.update_turn(&turn).await {
            Ok(()) => {}
            Err(StoreError::TurnEnded(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if let Some(conversation) = config.store.get_conversation(conversation_id).await? {
            config.hooks.after_turn_error(&turn, &error, &conversation).await;
        }
        Ok(true)
    }

    async fn load(&self, id: &ConversationId) -> Result<(Conversation, Vec<ConversationMessage>), EngineError> {
        let store = &self.inner.config.store;
        let no_conversation = || EngineError::NoConversation(id.clone());
        let conversation = store.get_conversation(id).await?.ok_or_else(no_conversation)?;
        let mut messages = store.get_messages(id, Page::newest(TURN_MESSAGES_MAX)).await?;
        messages.reverse();
        if messages.len() == TURN_MESSAGES_MAX {
            let is_leading = |message: &ConversationMessage| {
                message.role == MessageRole::System && message.kind == MessageKind::Utterance
            };
            let oldest = store.get_messages(id, Page::oldest(LEADING_MESSAGES_MAX)).await?;
            let leading = oldest.into_iter().take_while(is_leading);
            let before: Vec<_> = leading.take_while(|one| messages.iter().all(|newer| newer.id != one.id)).collect();
            messages.splice(0..0, before);
        }
        Ok((conversation, messages))
    }

    /// A clock that was set back must not put an answer before its question.
    fn now_behind(&self, messages: &[ConversationMessage]) -> i64 {
        let newest = messages.iter().map(|message| message.created_at_ms).max();
        self.inner.config.clock.now_ms().max(newest.unwrap_or(i64::MIN))
    }

    fn complete(
        &self,
        conversation_id: &ConversationId,
        messages: Vec<NewMessage>,
        at_ms: i64,
    ) -> Result<Vec<ConversationMessage>, EngineError> {
        let ids = &self.inner.config.ids;
        let complete = |one: NewMessage| one.complete(conversation_id, ids.next(at_ms).into(), at_ms);
        let messages: Vec<ConversationMessage> = messages.into_iter().map(complete).collect();
        match messages.iter().map(ConversationMessage::size).find(|size| *size > MESSAGE_BYTES_MAX) {
            None => Ok(messages),
            Some(size) => Err(EngineError::Invalid(format!(
                "a message has {size} bytes, and {MESSAGE_BYTES_MAX} is the most; send less, or smaller images"
            ))),
        }
    }
}

fn cancelled() -> TurnError {
    TurnError::new("cancelled", "the turn was cancelled")
}
