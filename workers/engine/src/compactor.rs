//! Turning old messages into summaries, with a model of its own (SPEC 4.8, A-CMP-05, A-CMP-06).

use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::{CallContext, ChatRequest, RequestClass};
use domain::context::{
    ConversationMessage, MessageKind, NewMessage, SummaryBatch, archive_label, archive_text, estimate_message,
    estimate_tokens, merge_due, plan_compaction, summary_request, summary_text, transcript_line,
};
use domain::ports::Clock;
use schemas::definition::CompactionSettings;
use schemas::id::ConversationId;
use serde_json::json;

use crate::agent::AgentMemory;
use crate::ids::{Ids, SystemClock, UlidIds};
use crate::provider::{ProviderAdapter, ProviderCallOptions};

/// What became of a part of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// To be added to the conversation: it names the newest message that it stands for.
    pub summary: NewMessage,
    pub batches_created: usize,
    pub messages_compressed: usize,
    /// Of the messages and of the summary, by the estimate.
    pub tokens_before: u64,
    pub tokens_after: u64,
}

#[async_trait]
pub trait Compactor: Send + Sync {
    /// Never fails: `None` leaves the history as it is. What the summary stands for is in the archive
    /// before this returns.
    async fn compress(&self, history: &[ConversationMessage], conversation_id: &ConversationId) -> Option<Compaction>;
}

/// Asks a model for the summaries and archives them in the agent's memory.
#[derive(Clone)]
pub struct ModelCompactor {
    pub agent: String,
    /// Who the agent is, for the one who summarises.
    pub persona: String,
    pub provider: Arc<dyn ProviderAdapter>,
    pub model: String,
    pub memory: Arc<dyn AgentMemory>,
    pub settings: CompactionSettings,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

impl ModelCompactor {
    pub fn new(
        agent: impl Into<String>,
        provider: Arc<dyn ProviderAdapter>,
        model: impl Into<String>,
        memory: Arc<dyn AgentMemory>,
        settings: CompactionSettings,
    ) -> Self {
        Self {
            agent: agent.into(),
            persona: String::new(),
            provider,
            model: model.into(),
            memory,
            settings,
            clock: Arc::new(SystemClock),
            ids: Arc::new(UlidIds),
        }
    }

    /// `None` when the model does not answer, or not with a text.
    async fn summarise(
        &self,
        conversation_id: &ConversationId,
        existing: Option<&str>,
        texts: &[String],
    ) -> Option<String> {
        let request = summary_request(&self.persona, existing, texts, self.settings.max_summary_tokens);
        let request = ChatRequest { model: Some(self.model.clone()), ..request };
        let id = self.ids.next(self.clock.now_ms()).to_string();
        let options = ProviderCallOptions {
            provider: self.provider.id().to_owned(),
            model: self.model.clone(),
            streaming: false,
            context: CallContext {
                conversation_id: conversation_id.to_string(),
                turn_id: format!("compaction-{id}"),
                agent: self.agent.clone(),
                request_class: Some(RequestClass::Background),
                ..CallContext::default()
            },
            call_id: id,
            inputs: Vec::new(),
        };
        let result = self.provider.send_chat(&request, &options).await.ok()?;
        let text: String = result.messages.iter().map(|message| message.content.text()).collect();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    async fn archive(&self, conversation_id: &ConversationId, batch: &SummaryBatch) -> Option<()> {
        let label = archive_label(conversation_id, batch);
        self.memory.archive(&self.agent, &label, &archive_text(batch)).await.ok()
    }

    /// Folds the oldest batches into one while there are too many.
    async fn merge(&self, conversation_id: &ConversationId, batches: &mut Vec<SummaryBatch>) -> Option<()> {
        while let Some(count) = merge_due(batches, &self.settings) {
            let texts: Vec<String> = batches[..count].iter().map(|batch| batch.summary.clone()).collect();
            let summary = self.summarise(conversation_id, None, &texts).await?;
            let one = SummaryBatch::of_batches(&batches[..count], summary);
            self.archive(conversation_id, &one).await?;
            batches.splice(..count, [one]);
        }
        Some(())
    }
}

#[async_trait]
impl Compactor for ModelCompactor {
    async fn compress(&self, history: &[ConversationMessage], conversation_id: &ConversationId) -> Option<Compaction> {
        let plan = plan_compaction(history, &self.settings)?;
        let mut batches = plan.earlier;
        for chunk in &plan.chunks {
            let existing = batches.last().map(|batch| batch.summary.as_str());
            let texts: Vec<String> = chunk.iter().map(transcript_line).collect();
            let summary = self.summarise(conversation_id, existing, &texts).await?;
            let batch = SummaryBatch::of_messages(chunk, summary);
            self.archive(conversation_id, &batch).await?;
            batches.push(batch);
        }
        self.merge(conversation_id, &mut batches).await?;
        let text = summary_text(&batches, &self.settings);
        let compressed = plan.chunks.iter().flatten();
        Some(Compaction {
            batches_created: plan.chunks.len(),
            messages_compressed: compressed.clone().count(),
            tokens_before: compressed.map(|message| estimate_message(&message.for_model())).sum(),
            tokens_after: estimate_tokens(&text),
            summary: NewMessage {
                kind: MessageKind::Summary,
                compacts_through: Some(plan.through),
                metadata: [("batches".to_owned(), json!(batches))].into_iter().collect(),
                ..NewMessage::system(text)
            },
        })
    }
}
