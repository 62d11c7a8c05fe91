//! Conversations with models as a library (SPEC 1.17): conversations, turns, history, providers,
//! hooks and stores, without a fleet around them.
//!
//! [`ConversationEngine`] runs one turn at a time: it loads the history, plans, asks a provider,
//! stores the answer and the record of the call. What it needs it is given: a
//! [`ConversationStore`], one [`ProviderAdapter`] per provider, and if wanted a [`HistoryBuilder`],
//! a [`TurnPlanner`] and [`Hooks`]. [`create_agent`] builds on it: one conversation, tools in
//! rounds, memory blocks, summaries of what is old.
//!
//! The library has no transport, no vendor, no retries and no budgets of its own: adapters bring
//! them. [`ModelsAdapter`] makes one of anything that implements the fleet's `Models` port. There is
//! no runtime in it either; any executor will do.
//!
//! ```
//! use std::sync::Arc;
//! use engine::{ConversationEngine, CreateConversation, EngineConfig, MemoryStore, NewMessage, RunTurn};
//! # use async_trait::async_trait;
//! # use domain::chat::ChatRequest;
//! # use engine::{ProviderAdapter, ProviderCallOptions, ProviderChatResult, ProviderFailure};
//! # struct Parrot;
//! # #[async_trait]
//! # impl ProviderAdapter for Parrot {
//! #     fn id(&self) -> &str { "parrot" }
//! #     async fn send_chat(
//! #         &self, request: &ChatRequest, _: &ProviderCallOptions,
//! #     ) -> Result<ProviderChatResult, ProviderFailure> {
//! #         Ok(ProviderChatResult::text(request.messages.last().map(|one| one.plain_text()).unwrap_or_default()))
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), engine::EngineError> {
//! let config = EngineConfig::new("ana", Arc::new(MemoryStore::new()))
//!     .provider(Arc::new(Parrot))
//!     .default_model("parrot", "grey-1");
//! let engine = ConversationEngine::new(config)?;
//! let conversation = engine.create_conversation(CreateConversation::default()).await?;
//! engine.append_messages(&conversation.id, vec![NewMessage::user("Hello!")]).await?;
//! let turn = engine.run_turn(RunTurn::new(&conversation.id)).await?;
//! assert_eq!(turn.text(), "Hello!");
//! # Ok(())
//! # }
//! ```
//!
//! `MemoryStore` ends with its program. What is to stay goes to a file: `SqliteConversations` of the
//! crate `store`, which runs in a runtime of tokio.
//!
//! ```
//! use std::sync::Arc;
//! use engine::{ConversationEngine, CreateConversation, EngineConfig, NewMessage};
//! use store::SqliteConversations;
//! # use async_trait::async_trait;
//! # use domain::chat::ChatRequest;
//! # use engine::{ProviderAdapter, ProviderCallOptions, ProviderChatResult, ProviderFailure};
//! # struct Parrot;
//! # #[async_trait]
//! # impl ProviderAdapter for Parrot {
//! #     fn id(&self) -> &str { "parrot" }
//! #     async fn send_chat(
//! #         &self, _: &ChatRequest, _: &ProviderCallOptions,
//! #     ) -> Result<ProviderChatResult, ProviderFailure> {
//! #         Ok(ProviderChatResult::text("Hello!"))
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("talks.db");
//! let engine = |store: &SqliteConversations| {
//!     let config = EngineConfig::new("ana", Arc::new(store.clone()))
//!         .provider(Arc::new(Parrot))
//!         .default_model("parrot", "grey-1");
//!     ConversationEngine::new(config)
//! };
//! let store = SqliteConversations::open(&path).await?;
//! let first = engine(&store)?;
//! let conversation = first.create_conversation(CreateConversation::default()).await?;
//! first.append_messages(&conversation.id, vec![NewMessage::user("Remember me.")]).await?;
//! store.close().await;
//!
//! // The next day, in another process.
//! let store = SqliteConversations::open(&path).await?;
//! let messages = engine(&store)?.messages(&conversation.id).await?;
//! assert_eq!(messages[0].content.text(), "Remember me.");
//! # Ok(())
//! # }
//! ```

mod agent;
mod cancel;
mod compactor;
mod config;
mod engine;
mod error;
mod history;
mod hooks;
mod ids;
mod memory_store;
mod models;
mod planner;
mod provider;

pub use agent::{Agent, AgentDeps, AgentMemory, AgentSettings, COMPACT_CONTEXT, NO_RESPONSE, Tools, create_agent};
pub use compactor::{Compaction, Compactor, ModelCompactor};
pub use config::{DefaultModel, EngineConfig};
pub use engine::{ConversationEngine, CreateConversation, RunTurn};
pub use error::EngineError;
pub use history::{FullHistory, HistoryBuilder, HistoryContext};
pub use hooks::{Hooks, NoHooks};
pub use ids::{Ids, SystemClock, UlidIds};
pub use memory_store::MemoryStore;
pub use models::{ModelsAdapter, PROFILE_MODEL};
pub use planner::{DefaultPlanner, PlanInput, PlannedTurn, TurnPlanner};
pub use provider::{ProviderAdapter, ProviderCallOptions, ProviderChatResult, ProviderFailure};

// What callers need of the types below, so that one `use` is enough.
pub use domain::context::{
    Content, ContextBudget, Conversation, ConversationMessage, ConversationTurn, HistoryLimits, MemoryBlock,
    MemoryTier, MessageKind, MessageRole, NewMessage, TurnError, TurnStatus, build_history, build_messages,
    build_system_prompt, estimate_tokens, should_compress,
};
pub use domain::ports::library::{ConversationStore, Order, Page, StoreError};
pub use schemas::id::{ConversationId, MessageId, TurnId};
