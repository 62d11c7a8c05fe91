//! Conversations in memory: for tests and for trying things out. What it keeps ends with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::context::{Conversation, ConversationMessage, ConversationTurn};
use domain::ports::library::{ConversationStore, Order, Page, StoreError};
use schemas::id::{ConversationId, MessageId, TurnId};

/// Messages of all conversations together, unless told otherwise.
const MESSAGES_MAX: usize = 100_000;

#[derive(Debug)]
pub struct MemoryStore {
    messages_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    conversations: BTreeMap<ConversationId, Kept>,
    messages: BTreeSet<MessageId>,
    turns: BTreeMap<TurnId, ConversationId>,
}

#[derive(Debug)]
struct Kept {
    conversation: Conversation,
    messages: Vec<ConversationMessage>,
    turns: Vec<ConversationTurn>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// For 100,000 messages.
    pub fn new() -> Self {
        Self::with_messages_max(MESSAGES_MAX)
    }

    /// For so many messages of all conversations, and as many turns.
    pub fn with_messages_max(messages_max: usize) -> Self {
        Self { messages_max, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn full(&self, what: &str) -> StoreError {
        StoreError::Full(format!("it keeps {} {what} at most; use a store on a disk", self.messages_max))
    }
}

impl State {
    fn kept(&mut self, id: &ConversationId) -> Result<&mut Kept, StoreError> {
        self.conversations.get_mut(id).ok_or_else(|| StoreError::NoConversation(id.clone()))
    }

    fn turn(&mut self, id: &TurnId) -> Option<&mut ConversationTurn> {
        let kept = self.conversations.get_mut(self.turns.get(id)?)?;
        kept.turns.iter_mut().find(|turn| turn.id == *id)
    }
}

#[async_trait]
impl ConversationStore for MemoryStore {
    async fn create_conversation(&self, conversation: &Conversation) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.conversations.contains_key(&conversation.id) {
            return Err(StoreError::Exists { what: "conversation", id: conversation.id.to_string() });
        }
        let kept = Kept { conversation: conversation.clone(), messages: Vec::new(), turns: Vec::new() };
        state.conversations.insert(conversation.id.clone(), kept);
        Ok(())
    }

    async fn get_conversation(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        Ok(self.lock().conversations.get(id).map(|kept| kept.conversation.clone()))
    }

    async fn update_conversation(&self, conversation: &Conversation) -> Result<(), StoreError> {
        self.lock().kept(&conversation.id)?.conversation = conversation.clone();
        Ok(())
    }

    async fn append_messages(
        &self,
        conversation_id: &ConversationId,
        messages: &[ConversationMessage],
    ) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.kept(conversation_id)?;
        let mut new = BTreeSet::new();
        for message in messages {
            if state.messages.contains(&message.id) || !new.insert(message.id.clone()) {
                return Err(StoreError::Exists { what: "message", id: message.id.to_string() });
            }
        }
        if state.messages.len() + new.len() > self.messages_max {
            return Err(self.full("messages"));
        }
        state.messages.append(&mut new);
        let kept = state.kept(conversation_id)?;
        kept.messages.extend_from_slice(messages);
        // Stable: those of one time stay in the order in which they came.
        kept.messages.sort_by_key(|message| message.created_at_ms);
        Ok(())
    }

    async fn get_messages(
        &self,
        conversation_id: &ConversationId,
        page: Page,
    ) -> Result<Vec<ConversationMessage>, StoreError> {
        let state = self.lock();
        Ok(state.conversations.get(conversation_id).map_or_else(Vec::new, |kept| cut(&kept.messages, page)))
    }

    async fn create_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.kept(&turn.conversation_id)?;
        if state.turns.contains_key(&turn.id) {
            return Err(StoreError::Exists { what: "turn", id: turn.id.to_string() });
        }
        if state.turns.len() >= self.messages_max {
            return Err(self.full("turns"));
        }
        state.turns.insert(turn.id.clone(), turn.conversation_id.clone());
        let kept = state.kept(&turn.conversation_id)?;
        kept.turns.push(turn.clone());
        kept.turns.sort_by_key(|turn| turn.started_at_ms);
        Ok(())
    }

    async fn update_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError> {
        let mut state = self.lock();
        let no_turn = || StoreError::NoTurn(turn.id.clone());
        let stored = state.turn(&turn.id).ok_or_else(no_turn)?;
        if stored.conversation_id != turn.conversation_id {
            return Err(no_turn());
        }
        if stored.status.has_ended() && stored != turn {
            return Err(StoreError::TurnEnded(turn.id.clone()));
        }
        *stored = turn.clone();
        Ok(())
    }

    async fn get_turn(
        &self,
        conversation_id: &ConversationId,
        turn_id: &TurnId,
    ) -> Result<Option<ConversationTurn>, StoreError> {
        let mut state = self.lock();
        let turn = state.turn(turn_id).filter(|turn| turn.conversation_id == *conversation_id);
        Ok(turn.cloned())
    }

    async fn list_turns(
        &self,
        conversation_id: &ConversationId,
        page: Page,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        let state = self.lock();
        Ok(state.conversations.get(conversation_id).map_or_else(Vec::new, |kept| cut(&kept.turns, page)))
    }
}

fn cut<T: Clone>(rows: &[T], page: Page) -> Vec<T> {
    let limit = page.limit.unwrap_or(usize::MAX);
    match page.order {
        Order::OldestFirst => rows.iter().take(limit).cloned().collect(),
        Order::NewestFirst => rows.iter().rev().take(limit).cloned().collect(),
    }
}
