//! What fails, what is stored of it, and what the caller is told (K-38).

use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::{ErrorCategory, Message};
use engine::{
    ConversationEngine, ConversationStore, CreateConversation, EngineConfig, EngineError, HistoryBuilder,
    HistoryContext, MemoryStore, NewMessage, Page, PlanInput, PlannedTurn, ProviderAdapter, RunTurn, StoreError,
    TurnError, TurnPlanner, TurnStatus,
};

use crate::fakes::{Log, Mock, Say, Watched, Watcher, asked, config, config_on, engine};
use crate::stores::on_each_store;

/// C-TST-05, C-LOOP-11, C-ERR-09.
#[tokio::test]
async fn c_tst_05_a_failing_adapter_fails_the_turn_and_says_so() {
    on_each_store(failing_adapter).await;
}

async fn failing_adapter(store: Arc<dyn ConversationStore>) {
    let watcher = Arc::new(Watcher::default());
    let mock = Mock::new(vec![Say::Fail(ErrorCategory::RateLimit, "too many requests"), Say::Text("now")]);
    let engine = ConversationEngine::new(config_on(&mock, store).hooks(watcher.clone())).expect("an engine");
    let conversation = asked(&engine, "hi").await;
    let failure = engine.run_turn(RunTurn::new(&conversation.id)).await.expect_err("it fails");
    let EngineError::TurnFailed(turn) = &failure else { panic!("{failure:?}") };
    let error = turn.error.as_ref().expect("an error");
    assert_eq!((error.message.as_str(), error.code.as_deref()), ("too many requests", Some("provider_failed")));
    assert_eq!(
        (error.provider.as_deref(), turn.status, turn.output_messages.len()),
        (Some("mock"), TurnStatus::Failed, 0)
    );
    let record = &turn.provider_calls[0];
    let outcome = record.outcome.as_ref().expect("an outcome");
    assert_eq!((outcome.ok, outcome.error_category), (false, Some(ErrorCategory::RateLimit)));
    assert_eq!(
        (record.response_metadata["error"].as_str(), record.finished_at_ms.is_some()),
        (Some("too many requests"), true)
    );
    assert!(failure.to_string().contains("too many requests"));
    assert_eq!(
        engine.get_turn(&conversation.id, &turn.id).await.expect("read").as_ref(),
        Some(turn.as_ref()),
        "K-38: stored first"
    );
    assert!(watcher.log.take().contains(&"after_turn_error failed: too many requests".to_owned()));
    let touched = engine.get_conversation(&conversation.id).await.expect("read").expect("it is there");
    assert_eq!(Some(touched.updated_at_ms), turn.finished_at_ms);
    // The message is still unanswered, so the next turn answers it.
    let again = engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    assert_eq!((again.text().as_str(), &again.input_messages), ("now", &turn.input_messages));
    let statuses: Vec<TurnStatus> =
        engine.list_turns(&conversation.id, Page::all()).await.expect("turns").iter().map(|one| one.status).collect();
    assert_eq!(statuses, [TurnStatus::Failed, TurnStatus::Succeeded]);
}

struct Forgetful;

#[async_trait]
impl HistoryBuilder for Forgetful {
    async fn build_history(&self, _: HistoryContext<'_>) -> Result<Vec<Message>, TurnError> {
        Err(TurnError::new("forgot", "there is no history"))
    }
}

#[async_trait]
impl TurnPlanner for Forgetful {
    async fn plan_turn(&self, _: PlanInput<'_>) -> Result<PlannedTurn, TurnError> {
        Ok(PlannedTurn { provider: "nobody".into(), model: "m".into(), ..PlannedTurn::default() })
    }
}

#[tokio::test]
async fn what_fails_before_the_provider_is_asked_fails_the_turn_too() {
    let mock = Mock::new(vec![Say::Text("x")]);
    let code = async |config: EngineConfig, messages: Vec<NewMessage>| {
        let engine = ConversationEngine::new(config).expect("an engine");
        let options = CreateConversation { initial_messages: messages, ..CreateConversation::default() };
        let conversation = engine.create_conversation(options).await.expect("created");
        let failure = engine.run_turn(RunTurn::new(&conversation.id)).await.expect_err("it fails");
        let turn = failure.turn().expect("a turn").clone();
        assert_eq!(engine.get_turn(&conversation.id, &turn.id).await, Ok(Some(turn.clone())));
        assert_eq!((turn.status, turn.provider_calls.len()), (TurnStatus::Failed, 0));
        turn.error.and_then(|error| error.code)
    };
    let hi = || vec![NewMessage::user("hi")];
    let forgetful = Arc::new(Forgetful);
    assert_eq!(code(config(&mock).history_builder(forgetful.clone()), hi()).await.as_deref(), Some("forgot"));
    assert_eq!(code(config(&mock).planner(forgetful), hi()).await.as_deref(), Some("provider_missing"));
    assert_eq!(code(config(&mock), vec![]).await.as_deref(), Some("invalid_request"), "there is nothing to answer");
    assert_eq!(code(config(&mock), vec![NewMessage::system("s")]).await.as_deref(), Some("invalid_request"));
    assert_eq!(mock.asked().len(), 0);
}

fn watched(mock: &Arc<Mock>, log: &Log) -> (ConversationEngine, Arc<Watched>) {
    let store = Watched::new(log.clone());
    let adapter: Arc<dyn ProviderAdapter> = mock.clone();
    let config = EngineConfig::new("ana", store.clone())
        .provider(adapter)
        .default_model("mock", "m-1")
        .hooks(Arc::new(Watcher { log: log.clone(), ..Watcher::default() }));
    (ConversationEngine::new(config).expect("an engine"), store)
}

#[tokio::test]
async fn a_store_that_fails_before_the_turn_begins_leaves_nothing() {
    for call in ["get_conversation", "get_messages", "list_turns", "create_turn"] {
        let (log, mock) = (Log::default(), Mock::new(vec![Say::Text("x")]));
        let (engine, store) = watched(&mock, &log);
        let conversation = asked(&engine, "hi").await;
        store.fail(Some(call));
        let failure = engine.run_turn(RunTurn::new(&conversation.id)).await.expect_err("the store is away");
        assert!(matches!(failure, EngineError::Store(StoreError::Failed(_))), "{call}: {failure:?}");
        store.fail(None);
        assert_eq!(engine.list_turns(&conversation.id, Page::all()).await, Ok(Vec::new()));
        assert_eq!(mock.asked().len(), 0);
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_stored_fails_the_turn_and_keeps_its_cost() {
    let (log, mock) = (Log::default(), Mock::new(vec![Say::Text("x")]));
    let (engine, store) = watched(&mock, &log);
    let conversation = asked(&engine, "hi").await;
    store.fail(Some("append_messages"));
    let failure = engine.run_turn(RunTurn::new(&conversation.id)).await.expect_err("the store is away");
    let EngineError::TurnFailed(turn) = &failure else { panic!("{failure:?}") };
    assert_eq!(turn.error.as_ref().and_then(|error| error.code.as_deref()), Some("unavailable"));
    assert!(turn.usage().is_some() && turn.output_messages.is_empty());
    assert!(turn.provider_calls[0].outcome.as_ref().is_some_and(|outcome| outcome.ok), "the provider did its part");
    assert_eq!(store.inner_turn(turn).await.as_ref(), Some(turn.as_ref()));
}

#[tokio::test]
async fn an_end_that_cannot_be_stored_is_told() {
    for (says, status) in
        [(Say::Text("x"), "update_turn succeeded"), (Say::Fail(ErrorCategory::Auth, "no"), "update_turn failed")]
    {
        let (log, mock) = (Log::default(), Mock::new(vec![says]));
        let (engine, store) = watched(&mock, &log);
        let conversation = asked(&engine, "hi").await;
        store.fail(Some(status));
        let failure = engine.run_turn(RunTurn::new(&conversation.id)).await.expect_err("the store is away");
        let EngineError::TurnNotStored { turn, .. } = &failure else { panic!("{failure:?}") };
        assert!(turn.status.has_ended(), "as it should be stored");
        let stored = store.inner_turn(turn).await.expect("a turn");
        assert_eq!(stored.status, TurnStatus::Running);
        assert_eq!(stored.provider_calls[0].finished_at_ms, None, "the call left a trace before it was made");
        assert!(!log.take().iter().any(|what| what.starts_with("after_turn_success")));
    }
}

#[tokio::test]
async fn the_store_in_memory_is_bounded() {
    let mock = Mock::new(vec![Say::Text("x")]);
    let config = EngineConfig { store: Arc::new(MemoryStore::with_messages_max(1)), ..config(&mock) };
    let small = ConversationEngine::new(config).expect("an engine");
    let conversation = asked(&small, "hi").await;
    let failure = small.run_turn(RunTurn::new(&conversation.id)).await.expect_err("no room for the answer");
    assert_eq!(failure.turn().and_then(|turn| turn.error.as_ref()?.code.as_deref()), Some("storage_full"));
    assert!(engine(&mock).get_conversation(&conversation.id).await.expect("read").is_none(), "stores are apart");
}
