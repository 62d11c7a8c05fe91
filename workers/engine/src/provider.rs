//! Asking providers: one adapter for each (SPEC C-PRV-02 to C-PRV-12).

use async_trait::async_trait;
use domain::chat::{
    AgentContext, CallContext, ChatDelta, ChatFailure, ChatReply, ChatRequest, ErrorCategory, Finish, Part,
    ProviderCallRecord, Usage,
};
use domain::context::{ConversationMessage, NewMessage};
use domain::ports::DeltaSink;
use schemas::problem::Code;
use serde_json::{Map, Value};

/// What a call is for. None of it is for the provider to see.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderCallOptions {
    /// Id of the record; another for every call.
    pub call_id: String,
    /// Id of the adapter.
    pub provider: String,
    pub model: String,
    /// Whether pieces of the answer are passed on as they come.
    pub streaming: bool,
    /// Conversation, turn and agent; the turn's metadata.
    pub context: CallContext,
    /// What the turn answers, as it is stored: with ids, names and metadata.
    pub inputs: Vec<ConversationMessage>,
}

impl ProviderCallOptions {
    /// Who asks and why, for whatever watches outgoing requests.
    pub fn agent_context(&self) -> AgentContext {
        self.context.agent_context(&self.provider, &self.model)
    }

    /// `ai.provider`, `ai.model`, `ai.request_type`, `ai.streaming`, `request.class`.
    pub fn extensions(&self) -> Map<String, Value> {
        self.context.extensions(&self.provider, &self.model, self.streaming)
    }

    /// `<conversation>:<turn>`.
    pub fn correlation_id(&self) -> String {
        self.context.run_id()
    }

    /// The same of the turn before.
    pub fn parent_correlation_id(&self) -> Option<String> {
        self.context.parent_run_id()
    }
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderChatResult {
    /// To be added to the conversation: the model's, and those of tools that the provider ran.
    pub messages: Vec<NewMessage>,
    pub usage: Option<Usage>,
    /// The provider's answer, untouched, for an adapter around this one to log. It is not stored.
    pub raw: Option<Value>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// For the record: `finish`, `raw_finish`, `message_id`, `model`.
    pub response_metadata: Map<String, Value>,
    /// An adapter that keeps records of its own gives its closed one; else the engine's is kept.
    pub record: Option<ProviderCallRecord>,
}

impl ProviderChatResult {
    /// One message of the assistant.
    pub fn text(text: impl Into<String>) -> Self {
        Self { messages: vec![NewMessage::assistant(text.into())], ..Self::default() }
    }

    /// The model wants to go on by itself, with its answer as the last message.
    pub(crate) fn is_paused(metadata: &Map<String, Value>) -> bool {
        metadata.get("finish").and_then(Value::as_str) == Some(Finish::Pause.as_str())
    }

    /// Told to a listener as if it had been streamed.
    pub(crate) fn tell(&self, sink: &dyn DeltaSink) {
        let parts: Vec<Part> = self.messages.iter().flat_map(|message| message.content.parts()).collect();
        for (index, delta) in (0..).zip(ChatDelta::of_whole(&parts, self.usage.as_ref())) {
            sink.delta(1, index, delta);
        }
    }
}

impl From<ChatReply> for ProviderChatResult {
    fn from(reply: ChatReply) -> Self {
        let facts = [
            ("finish", Some(reply.finish.as_str())),
            ("raw_finish", reply.raw_finish.as_deref()),
            ("message_id", reply.message_id.as_deref()),
            ("model", Some(reply.model.as_str())),
        ];
        let facts = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
        Self {
            messages: vec![NewMessage::from(&reply)],
            response_metadata: facts.collect(),
            usage: reply.usage,
            raw: Some(reply.raw),
            request_id: reply.request_id,
            record: None,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderFailure {
    pub failure: ChatFailure,
    /// As in [`ProviderChatResult::record`].
    pub record: Option<Box<ProviderCallRecord>>,
}

impl ProviderFailure {
    /// A failure that nothing more is known about.
    pub fn new(provider: impl Into<String>, category: ErrorCategory, message: impl Into<String>) -> Self {
        Self::from(ChatFailure {
            category,
            code: Code::ProviderFailed,
            message: message.into(),
            provider: provider.into(),
            raw: None,
            retriable: category.is_infrastructure(),
            may_have_happened: true,
        })
    }
}

impl From<ChatFailure> for ProviderFailure {
    fn from(failure: ChatFailure) -> Self {
        Self { failure, record: None }
    }
}

/// Translates between the shapes here and one provider's API. Attempts and waits are its own
/// business; dropping a call's future cancels the call.
#[async_trait]
pub trait ProviderAdapter: Send + Sync {
    /// As in `openai`; what planners name it by.
    fn id(&self) -> &str;

    /// Whether [`ProviderAdapter::stream_chat`] passes pieces on as they come. Callers do not use it
    /// otherwise.
    fn supports_streaming(&self) -> bool {
        false
    }

    /// # Errors
    /// Why there is no answer, when all attempts are used up.
    async fn send_chat(
        &self,
        request: &ChatRequest,
        options: &ProviderCallOptions,
    ) -> Result<ProviderChatResult, ProviderFailure>;

    /// The same, with pieces for `sink` as they come. Unless implemented, the whole answer is told at
    /// its end.
    ///
    /// # Errors
    /// As [`ProviderAdapter::send_chat`]; what was told of a failed attempt is retracted.
    async fn stream_chat(
        &self,
        request: &ChatRequest,
        options: &ProviderCallOptions,
        sink: &dyn DeltaSink,
    ) -> Result<ProviderChatResult, ProviderFailure> {
        let result = self.send_chat(request, options).await?;
        result.tell(sink);
        Ok(result)
    }
}
