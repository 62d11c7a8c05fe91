//! An agent in one conversation: tools in rounds, memory blocks, summaries of what is old (SPEC
//! A-AGT-06 to A-AGT-09).

mod deps;
mod rounds;
mod view;

use std::sync::Arc;

use domain::context::{
    Content, Conversation, ConversationMessage, ConversationTurn, NewMessage, estimate_messages, estimate_tokens,
    should_compress, unanswered_calls,
};
use domain::ports::library::StoreError;
use schemas::id::{ConversationId, TurnId};

pub use deps::{AgentDeps, AgentMemory, AgentSettings, Tools};
pub use rounds::{COMPACT_CONTEXT, NO_RESPONSE};

use self::view::AgentView;
use crate::compactor::{Compaction, Compactor};
use crate::engine::{ConversationEngine, CreateConversation, RunTurn};
use crate::error::EngineError;
use crate::history::{HistoryBuilder, HistoryContext};

/// One agent in one conversation. Calls take turns: a message is answered before the next is taken.
pub struct Agent {
    name: String,
    engine: ConversationEngine,
    view: Arc<AgentView>,
    compactor: Option<Arc<dyn Compactor>>,
    settings: AgentSettings,
    conversation_id: ConversationId,
}

/// Opens the conversation of this id, or goes on with it if it is there; a new one without an id.
///
/// # Errors
/// The settings are wrong, or the store failed.
pub async fn create_agent(deps: AgentDeps, conversation_id: Option<ConversationId>) -> Result<Agent, EngineError> {
    deps.settings.check()?;
    let view = Arc::new(AgentView::new(&deps));
    let engine = ConversationEngine::new(view::engine_config(&deps, &view))?;
    let wanted = CreateConversation { id: conversation_id.clone(), ..CreateConversation::default() };
    let conversation_id = match (conversation_id, engine.create_conversation(wanted).await) {
        (_, Ok(created)) => created.id,
        // There already, or made by somebody else just now: it is the same conversation.
        (Some(id), Err(EngineError::Store(StoreError::Exists { .. }))) => id,
        (_, Err(error)) => return Err(error),
    };
    let AgentDeps { name, compactor, settings, .. } = deps;
    Ok(Agent { name, engine, view, compactor, settings, conversation_id })
}

impl Agent {
    pub fn conversation_id(&self) -> &ConversationId {
        &self.conversation_id
    }

    /// What it runs on: for turns, records and cancelling.
    pub fn engine(&self) -> &ConversationEngine {
        &self.engine
    }

    /// Everything that is stored, oldest first: what the user said, the answers, calls of tools with
    /// their results, summaries.
    ///
    /// # Errors
    /// The store failed.
    pub async fn conversation_history(&self) -> Result<Vec<ConversationMessage>, EngineError> {
        self.engine.messages(&self.conversation_id).await
    }

    /// Answers a message. Tools that the model calls are carried out, at most `max_tool_rounds` times;
    /// then it must answer without. The message, every answer and every result are stored as they
    /// come, and so is a final answer: [`NO_RESPONSE`] if the model has none.
    ///
    /// # Errors
    /// A turn failed, or the store. What came before is stored; the next message goes on from it.
    pub async fn process_message(&mut self, message: impl Into<Content>) -> Result<String, EngineError> {
        self.process(message.into()).await
    }

    async fn process(&mut self, message: Content) -> Result<String, EngineError> {
        self.close_open_calls().await?;
        self.engine.append_messages(&self.conversation_id, vec![NewMessage::user(message)]).await?;
        for round in 0.. {
            self.compact_if_needed().await?;
            let must_answer = round >= self.settings.max_tool_rounds;
            // Its own name, also in a conversation that another agent began.
            let mut options = RunTurn { agent: Some(self.name.clone()), ..RunTurn::new(&self.conversation_id) };
            if must_answer {
                options = options.hint(view::NO_TOOLS, true);
            }
            let turn = self.engine.run_turn(options).await?;
            if !self.goes_on(&turn, must_answer).await? {
                return self.response(&turn).await;
            }
        }
        unreachable!("the last round always ends it")
    }

    /// The text of the last turn, or a notice that is stored in its place.
    async fn response(&self, turn: &ConversationTurn) -> Result<String, EngineError> {
        let text = turn.text();
        if !text.is_empty() {
            return Ok(text);
        }
        let notice = NewMessage::assistant(NO_RESPONSE);
        self.engine.append_messages(&self.conversation_id, vec![notice]).await?;
        Ok(NO_RESPONSE.to_owned())
    }

    /// Replaces old messages by a summary in what the model is shown; they stay stored. `None` without
    /// a compactor, and when there is nothing to gain.
    ///
    /// # Errors
    /// The store failed. A compactor that fails leaves everything as it is.
    pub async fn compact(&self) -> Result<Option<Compaction>, EngineError> {
        let Some(compactor) = &self.compactor else {
            return Ok(None);
        };
        let messages = self.conversation_history().await?;
        let Some(compaction) = compactor.compress(&messages, &self.conversation_id).await else {
            return Ok(None);
        };
        self.engine.append_messages(&self.conversation_id, vec![compaction.summary.clone()]).await?;
        Ok(Some(compaction))
    }

    async fn compact_if_needed(&self) -> Result<(), EngineError> {
        if self.compactor.is_some() && should_compress(self.estimated_tokens().await?, &self.settings.budget) {
            self.compact().await?;
        }
        Ok(())
    }

    /// Of the next request, tools included. A memory that fails counts as empty here; the turn says so.
    async fn estimated_tokens(&self) -> Result<u64, EngineError> {
        let messages = self.conversation_history().await?;
        let no_conversation = || EngineError::NoConversation(self.conversation_id.clone());
        let conversation: Conversation =
            self.engine.get_conversation(&self.conversation_id).await?.ok_or_else(no_conversation)?;
        let turn_id = TurnId::parse("next").expect("a plain word is an id");
        let context = HistoryContext {
            conversation: &conversation,
            messages: &messages,
            next_turn_id: &turn_id,
            agent: &self.name,
        };
        let request = self.view.build_history(context).await.unwrap_or_default();
        let tools: u64 =
            self.view.tools().iter().map(|tool| estimate_tokens(&serde_json::json!(tool).to_string())).sum();
        Ok(estimate_messages(&request) + tools)
    }

    /// A process that died between an answer and its results left calls open. Whether they happened is
    /// not known, and they are not repeated.
    async fn close_open_calls(&self) -> Result<(), EngineError> {
        let open = unanswered_calls(&self.conversation_history().await?);
        if open.is_empty() {
            return Ok(());
        }
        let results = open.iter().map(rounds::interrupted).collect();
        self.store_results(results).await
    }
}
