//! A provider that says what it is told to, and everything else that notes what it is asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domain::chat::{ChatDelta, ChatRequest, ErrorCategory, Finish, Message, Part, Role, ToolCall, Usage};
use domain::failure::Failure;
use domain::ports::{Clock, DeltaSink};
use engine::{
    Conversation, ConversationEngine, ConversationId, ConversationMessage, ConversationStore, ConversationTurn,
    CreateConversation, EngineConfig, FullHistory, HistoryBuilder, HistoryContext, Hooks, MemoryStore, NewMessage,
    Page, PlanInput, PlannedTurn, ProviderAdapter, ProviderCallOptions, ProviderChatResult, ProviderFailure,
    StoreError, TurnError, TurnId, TurnPlanner,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What happened, in order. Clones write to the same one.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn note(&self, what: impl Into<String>) {
        self.0.lock().expect("unpoisoned").push(what.into());
    }

    /// All so far, which is then forgotten.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("unpoisoned"))
    }
}

/// One millisecond later at each look.
pub struct Ticking(AtomicI64);

impl Ticking {
    pub fn from(ms: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(ms)))
    }
}

impl Clock for Ticking {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

pub enum Say {
    Text(&'static str),
    /// Names of tools, each called with `{}`; ids are `<name>-<n>` over all replies.
    Calls(&'static [&'static str]),
    Result(Box<ProviderChatResult>),
    Fail(ErrorCategory, &'static str),
    /// Never answers.
    Hang,
}

#[derive(Clone)]
pub struct Asked {
    pub request: ChatRequest,
    pub options: ProviderCallOptions,
}

/// Says one thing after the other; the last for ever.
pub struct Mock {
    id: String,
    streams: bool,
    says: Mutex<VecDeque<Say>>,
    asked: Mutex<Vec<Asked>>,
    log: Log,
    pub was_asked: Notify,
}

impl Mock {
    pub fn new(says: Vec<Say>) -> Arc<Self> {
        Self::named("mock", says, Log::default())
    }

    pub fn named(id: &str, says: Vec<Say>, log: Log) -> Arc<Self> {
        Arc::new(Self::plain(id, says, log))
    }

    pub fn streaming(says: Vec<Say>) -> Arc<Self> {
        Arc::new(Self { streams: true, ..Self::plain("mock", says, Log::default()) })
    }

    fn plain(id: &str, says: Vec<Say>, log: Log) -> Self {
        Self {
            id: id.to_owned(),
            streams: false,
            says: Mutex::new(says.into()),
            asked: Mutex::default(),
            log,
            was_asked: Notify::new(),
        }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("unpoisoned").clone()
    }

    /// Texts of the last request, `<role>: <text>`; calls and results show as `call <name>`, `result <text>`.
    pub fn last_request(&self) -> Vec<String> {
        self.asked().last().map(|asked| lines(&asked.request.messages)).unwrap_or_default()
    }

    fn next(&self) -> Say {
        let mut says = self.says.lock().expect("unpoisoned");
        if says.len() > 1 {
            return says.pop_front().expect("more than one");
        }
        match says.front() {
            Some(&Say::Text(text)) => Say::Text(text),
            Some(&Say::Calls(names)) => Say::Calls(names),
            Some(Say::Result(result)) => Say::Result(result.clone()),
            Some(&Say::Fail(category, message)) => Say::Fail(category, message),
            Some(Say::Hang) => Say::Hang,
            None => panic!("nothing to say"),
        }
    }
}

pub fn lines(messages: &[Message]) -> Vec<String> {
    let line = |message: &Message| {
        let show = |part: &Part| match part {
            Part::Text { text, .. } => text.clone(),
            Part::ToolCall(call) => format!("call {}", call.name),
            Part::ToolResult { content, is_error, .. } => {
                let text: String = content.iter().filter_map(Part::as_text).collect();
                format!("{} {text}", if *is_error { "error" } else { "result" })
            }
            Part::Image { .. } => "image".to_owned(),
            other => format!("{other:?}"),
        };
        let parts: Vec<String> = message.content.iter().map(show).collect();
        format!("{}: {}", message.role.as_str(), parts.join(" | "))
    };
    messages.iter().map(line).collect()
}

/// 12 tokens in, 3 out.
pub fn usage() -> Usage {
    Usage { input_tokens: 12, output_tokens: 3, total_tokens: 15, ..Usage::default() }
}

#[async_trait]
impl ProviderAdapter for Mock {
    fn id(&self) -> &str {
        &self.id
    }

    fn supports_streaming(&self) -> bool {
        self.streams
    }

    async fn send_chat(
        &self,
        request: &ChatRequest,
        options: &ProviderCallOptions,
    ) -> Result<ProviderChatResult, ProviderFailure> {
        self.log.note(format!("send_chat {}", self.id));
        let n = {
            let mut asked = self.asked.lock().expect("unpoisoned");
            asked.push(Asked { request: request.clone(), options: options.clone() });
            asked.len()
        };
        let say = self.next();
        self.was_asked.notify_one();
        match say {
            Say::Text(text) => Ok(ProviderChatResult { usage: Some(usage()), ..ProviderChatResult::text(text) }),
            Say::Calls(names) => {
                let call = |name: &&str| {
                    let (id, name) = (format!("{name}-{n}"), (*name).to_owned());
                    Part::ToolCall(ToolCall { id, name, input: json!({}), invalid: None, signature: None })
                };
                let message = Message::new(Role::Assistant, names.iter().map(call).collect());
                Ok(ProviderChatResult { messages: vec![message.into()], ..ProviderChatResult::default() })
            }
            Say::Result(result) => Ok(*result),
            Say::Fail(category, message) => Err(ProviderFailure::new(&*self.id, category, message)),
            Say::Hang => std::future::pending().await,
        }
    }

    async fn stream_chat(
        &self,
        request: &ChatRequest,
        options: &ProviderCallOptions,
        sink: &dyn DeltaSink,
    ) -> Result<ProviderChatResult, ProviderFailure> {
        let result = self.send_chat(request, options).await?;
        for (index, word) in (0..).zip(["in ", "pieces"]) {
            sink.delta(1, index, ChatDelta::Text { part: 0, text: word.to_owned() });
        }
        Ok(result)
    }
}

/// A paused answer: the model wants to go on by itself.
pub fn paused(text: &str) -> Box<ProviderChatResult> {
    let finish = Value::from(Finish::Pause.as_str());
    let response_metadata = [("finish".to_owned(), finish)].into_iter().collect();
    Box::new(ProviderChatResult { response_metadata, ..ProviderChatResult::text(text) })
}

/// Notes what it is told; refuses turns if it is to.
#[derive(Default)]
pub struct Watcher {
    pub log: Log,
    pub refuses: Mutex<Option<&'static str>>,
}

#[async_trait]
impl Hooks for Watcher {
    async fn on_conversation_created(&self, conversation: &Conversation) {
        self.log.note(format!("on_conversation_created {}", conversation.agent));
    }

    async fn before_turn(&self, turn: &ConversationTurn, _: &Conversation) -> Result<(), TurnError> {
        self.log.note(format!("before_turn {}", turn.status.as_str()));
        match *self.refuses.lock().expect("unpoisoned") {
            Some(reason) => Err(TurnError::new("refused", reason)),
            None => Ok(()),
        }
    }

    async fn after_turn_success(&self, turn: &ConversationTurn, _: &Conversation) {
        self.log.note(format!("after_turn_success {}", turn.status.as_str()));
    }

    async fn after_turn_error(&self, turn: &ConversationTurn, error: &TurnError, _: &Conversation) {
        self.log.note(format!("after_turn_error {}: {}", turn.status.as_str(), error.message));
    }
}

/// Notes every call; fails the calls whose note begins with a given word.
pub struct Watched {
    pub inner: MemoryStore,
    pub log: Log,
    fails: Mutex<Option<&'static str>>,
}

impl Watched {
    pub fn new(log: Log) -> Arc<Self> {
        Arc::new(Self { inner: MemoryStore::new(), log, fails: Mutex::default() })
    }

    pub fn fail(&self, beginning: Option<&'static str>) {
        *self.fails.lock().expect("unpoisoned") = beginning;
    }

    fn note(&self, what: String) -> Result<(), StoreError> {
        let fails = self.fails.lock().expect("unpoisoned").is_some_and(|beginning| what.starts_with(beginning));
        self.log.note(what);
        if fails { Err(StoreError::Failed(Failure::unavailable("the disk is away"))) } else { Ok(()) }
    }
}

#[async_trait]
impl ConversationStore for Watched {
    async fn create_conversation(&self, conversation: &Conversation) -> Result<(), StoreError> {
        self.note("create_conversation".to_owned())?;
        self.inner.create_conversation(conversation).await
    }

    async fn get_conversation(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        self.note("get_conversation".to_owned())?;
        self.inner.get_conversation(id).await
    }

    async fn update_conversation(&self, conversation: &Conversation) -> Result<(), StoreError> {
        self.note("update_conversation".to_owned())?;
        self.inner.update_conversation(conversation).await
    }

    async fn append_messages(&self, id: &ConversationId, messages: &[ConversationMessage]) -> Result<(), StoreError> {
        self.note(format!("append_messages {}", messages.len()))?;
        self.inner.append_messages(id, messages).await
    }

    async fn get_messages(&self, id: &ConversationId, page: Page) -> Result<Vec<ConversationMessage>, StoreError> {
        self.note("get_messages".to_owned())?;
        self.inner.get_messages(id, page).await
    }

    async fn create_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError> {
        self.note(format!("create_turn {}", turn.status.as_str()))?;
        self.inner.create_turn(turn).await
    }

    async fn update_turn(&self, turn: &ConversationTurn) -> Result<(), StoreError> {
        let open = turn.provider_calls.iter().filter(|call| call.outcome.is_none()).count();
        self.note(format!("update_turn {} {open} open", turn.status.as_str()))?;
        self.inner.update_turn(turn).await
    }

    async fn get_turn(&self, id: &ConversationId, turn_id: &TurnId) -> Result<Option<ConversationTurn>, StoreError> {
        self.note("get_turn".to_owned())?;
        self.inner.get_turn(id, turn_id).await
    }

    async fn list_turns(&self, id: &ConversationId, page: Page) -> Result<Vec<ConversationTurn>, StoreError> {
        self.note("list_turns".to_owned())?;
        self.inner.list_turns(id, page).await
    }
}

/// The full history and one model, both noted.
pub struct Noting(pub Log);

#[async_trait]
impl HistoryBuilder for Noting {
    async fn build_history(&self, context: HistoryContext<'_>) -> Result<Vec<Message>, TurnError> {
        self.0.note("build_history");
        FullHistory::default().build_history(context).await
    }
}

#[async_trait]
impl TurnPlanner for Noting {
    async fn plan_turn(&self, _: PlanInput<'_>) -> Result<PlannedTurn, TurnError> {
        self.0.note("plan_turn");
        Ok(PlannedTurn { provider: "mock".into(), model: "m-1".into(), ..PlannedTurn::default() })
    }
}

/// An engine around one mock, on a store in memory, from time 1,000 on.
pub fn engine(mock: &Arc<Mock>) -> ConversationEngine {
    ConversationEngine::new(config(mock)).expect("an engine")
}

pub fn config(mock: &Arc<Mock>) -> EngineConfig {
    config_on(mock, Arc::new(MemoryStore::new()))
}

/// The same on a store of the caller's.
pub fn engine_on(mock: &Arc<Mock>, store: Arc<dyn ConversationStore>) -> ConversationEngine {
    ConversationEngine::new(config_on(mock, store)).expect("an engine")
}

pub fn config_on(mock: &Arc<Mock>, store: Arc<dyn ConversationStore>) -> EngineConfig {
    let adapter: Arc<dyn ProviderAdapter> = mock.clone();
    EngineConfig::new("ana", store).default_model(adapter.id(), "m-1").provider(adapter).clock(Ticking::from(1_000))
}

/// A conversation in which the user has said something.
pub async fn asked(engine: &ConversationEngine, text: &str) -> Conversation {
    let initial_messages = vec![NewMessage::user(text)];
    let options = CreateConversation { initial_messages, ..CreateConversation::default() };
    engine.create_conversation(options).await.expect("created")
}

impl Watched {
    /// The turn as it is stored, without a note and without failing.
    pub async fn inner_turn(&self, turn: &ConversationTurn) -> Option<ConversationTurn> {
        self.inner.get_turn(&turn.conversation_id, &turn.id).await.expect("read")
    }
}
