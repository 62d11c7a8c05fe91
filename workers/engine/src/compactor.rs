//! Turning old messages into summaries, with a model of its own (SPEC 4.8, A-CMP-05, A-CMP-06).

use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::{CallContext, ChatRequest, RequestClass};
use domain::compact::{Batch, Entry, Job, old, summary_text};
use domain::context::{
    ContextBudget, ConversationMessage, MessageKind, NewMessage, estimate_message, estimate_tokens, not_summarised,
};
use domain::ports::Clock;
use schemas::definition::CompactionSettings;
use schemas::id::ConversationId;
use serde_json::json;

use crate::agent::AgentMemory;
use crate::ids::{Ids, SystemClock, UlidIds};
use crate::provider::{ProviderAdapter, ProviderCallOptions};

/// Where the message that stands for the older ones keeps its batches.
const BATCHES: &str = "batches";

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
    async fn summarise(&self, conversation_id: &ConversationId, request: ChatRequest) -> Option<String> {
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
        Some(text)
    }
}

#[async_trait]
impl Compactor for ModelCompactor {
    async fn compress(&self, history: &[ConversationMessage], conversation_id: &ConversationId) -> Option<Compaction> {
        let (summary, rest) = not_summarised(history);
        let entries: Vec<Entry> = (0..).zip(&rest).map(|(key, message)| entry(key, message)).collect();
        let count = old(&entries, self.settings.keep_recent as usize);
        let through = rest[..count].last().filter(|_| self.settings.enabled)?.id.clone();
        let earlier = summary.and_then(|summary| summary.metadata.get(BATCHES));
        let mut batches: Vec<Batch> =
            earlier.and_then(|value| serde_json::from_value(value.clone()).ok()).unwrap_or_default();
        let (mut messages, mut batches_created) = (&entries[..count], 0);
        loop {
            let job = Job {
                conversation_id,
                subject: conversation_id.as_str(),
                messages,
                batches: &batches,
                persona: &self.persona,
                settings: &self.settings,
                window_tokens: ContextBudget::default().model_max_tokens,
            };
            let Some(piece) = job.next() else { break };
            let summary = self.summarise(conversation_id, job.request(piece)).await?;
            let made = job.close(piece, &summary).ok()?;
            let label = made.archive.label.as_deref().unwrap_or_default();
            self.memory.archive(&self.agent, label, &made.archive.content).await.ok()?;
            messages = &messages[made.messages as usize..];
            batches_created += usize::from(made.messages > 0);
            batches = made.batches;
        }
        let text = summary_text(&batches, self.settings.clip_first, self.settings.clip_last);
        Some(Compaction {
            batches_created,
            messages_compressed: count,
            tokens_before: entries[..count].iter().map(|entry| estimate_message(&entry.message)).sum(),
            tokens_after: estimate_tokens(&text),
            summary: NewMessage {
                kind: MessageKind::Summary,
                compacts_through: Some(through),
                metadata: [(BATCHES.to_owned(), json!(batches))].into_iter().collect(),
                ..NewMessage::system(text)
            },
        })
    }
}

fn entry(key: u64, message: &ConversationMessage) -> Entry {
    Entry { key, at_ms: message.created_at_ms, message: message.for_model() }
}
