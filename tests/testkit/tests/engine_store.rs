//! The suite for stores of conversations: passed by the one in memory, failed by broken ones.

use std::sync::Arc;

use async_trait::async_trait;
use domain::context::{Conversation, ConversationMessage, ConversationTurn};
use engine::{ConversationStore, MemoryStore, Order, Page, StoreError};
use schemas::id::{ConversationId, TurnId};
use testkit::contract::engine_store as conversations;

async fn in_memory() -> Arc<dyn ConversationStore> {
    Arc::new(MemoryStore::new())
}

#[tokio::test]
async fn s_133_the_store_in_memory_keeps_the_contract() {
    conversations::suite(&in_memory).await;
    let store = in_memory().await;
    conversations::durable(&async || Arc::clone(&store)).await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Newest first is not heard.
    IgnoresOrder,
    /// The limit counts from the oldest, whatever the order.
    LimitsTheWrongEnd,
    IgnoresLimit,
    /// Those of one time come in the order of their ids.
    OrdersTiesById,
    /// What is before the one that is refused stays.
    AppendsPartly,
    LosesMetadata,
    ReopensTurns,
    ShowsTurnsEverywhere,
    ForgetsUpdates,
    CreatesOnUpdate,
}

struct Broken {
    inner: MemoryStore,
    fault: Fault,
}

impl Broken {
    fn page(&self, page: Page) -> Page {
        match self.fault {
            Fault::IgnoresLimit => Page { limit: None, ..page },
            Fault::IgnoresOrder => Page { order: Order::OldestFirst, ..page },
            _ => page,
        }
    }
}

#[async_trait]
impl ConversationStore for Broken {
    async fn create_conversation(&self, conversation: &Conversation) -> Result<(), StoreError> {
        self.inner.create_conversation(conversation).await
    }

    async fn get_conversation(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        self.inner.get_conversation(id).await
    }

    async fn update_conversation(&self, conversation: &Conversation) -> Result<(), StoreError> {
        match self.fault {
            Fault::ForgetsUpdates => Ok(()),
            Fault::CreatesOnUpdate => match self.inner.update_conversation(conversation).await {
                Err(StoreError::NoConversation(_)) => self.inner.create_conversation(conversation).await,
                other => other,
            },
            _ => self.inner.update_conversation(conversation).await,
        }
    }

    async fn append_messages(
        &self,
        conversation_id: &ConversationId,
        messages: &[ConversationMessage],
    ) -> Result<(), StoreError> {
        match self.fault {
            Fault::AppendsPartly => {
                for message in messages {
                    self.inner.append_messages(conversation_id, std::slice::from_ref(message)).await?;
                }
                Ok(())
            }
            Fault::LosesMetadata => {
                let mut poorer = messages.to_vec();
                poorer.iter_mut().for_each(|message| message.metadata.clear());
                self.inner.append_messages(conversation_id, &poorer).await
            }
            _ => self.inner.append_messages(conversation_id, messages).await,
        }
    }

    async fn get_messages(
        &self,
        conversation_id: &ConversationId,
        page: Page,
    ) -> Result<Vec<ConversationMessage>, StoreError> {
        let mut found = match self.fault {
            Fault::LimitsTheWrongEnd | Fault::OrdersTiesById => {
                self.inner.get_messages(conversation_id, Page::all()).await?
            }
            _ => return self.inner.get_messages(conversation_id, self.page(page)).await,
        };
        if self.fault == Fault::OrdersTiesById {
            found.sort_by_key(|one| (one.created_at_ms, one.id.clone()));
            if page.order == Order::NewestFirst {
                found.reverse();
            }
            found.truncate(page.limit.unwrap_or(usize::MAX));
            return Ok(found);
        }
        found.truncate(page.limit.unwrap_or(usize::MAX));
        if page.order == Order::NewestFirst {
            found.reverse();
        }
        Ok(found)
    }

    async fn create_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError> {
        self.inner.create_turn(turn).await
    }

    async fn update_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError> {
        match self.inner.update_turn(turn).await {
            Err(StoreError::TurnEnded(_)) if self.fault == Fault::ReopensTurns => Ok(()),
            other => other,
        }
    }

    async fn get_turn(
        &self,
        conversation_id: &ConversationId,
        turn_id: &TurnId,
    ) -> Result<Option<ConversationTurn>, StoreError> {
        let found = self.inner.get_turn(conversation_id, turn_id).await?;
        if found.is_none() && self.fault == Fault::ShowsTurnsEverywhere {
            let elsewhere = ConversationId::parse("c").expect("an id");
            return self.inner.get_turn(&elsewhere, turn_id).await;
        }
        Ok(found)
    }

    async fn list_turns(
        &self,
        conversation_id: &ConversationId,
        page: Page,
    ) -> Result<Vec<ConversationTurn>, StoreError> {
        self.inner.list_turns(conversation_id, self.page(page)).await
    }
}

/// On a thread of its own, whose panic ends nothing else.
fn panics(run: impl AsyncFnOnce() + Send + 'static) -> bool {
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(run());
    });
    thread.join().is_err()
}

#[test]
fn s_133_the_suite_notices_every_broken_store() {
    for fault in [
        Fault::IgnoresOrder,
        Fault::LimitsTheWrongEnd,
        Fault::IgnoresLimit,
        Fault::OrdersTiesById,
        Fault::AppendsPartly,
        Fault::LosesMetadata,
        Fault::ReopensTurns,
        Fault::ShowsTurnsEverywhere,
        Fault::ForgetsUpdates,
        Fault::CreatesOnUpdate,
    ] {
        let make = async move || {
            let store: Arc<dyn ConversationStore> = Arc::new(Broken { inner: MemoryStore::new(), fault });
            store
        };
        assert!(panics(async move || conversations::suite(&make).await), "{fault:?} is not noticed");
    }
    assert!(panics(async || conversations::durable(&in_memory).await), "a store that forgets is not durable");
}
