//! Turns: order, inputs and outputs, histories, plans, what an adapter sees.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domain::chat::{ChatDelta, ImageSource, Message, Parameters, Part, RequestClass, ToolSpec};
use domain::ports::DeltaSink;
use engine::{
    Content, ConversationEngine, ConversationStore, ConversationTurn, CreateConversation, EngineConfig, FullHistory,
    HistoryBuilder, HistoryContext, HistoryLimits, MessageRole, NewMessage, PlanInput, PlannedTurn, ProviderChatResult,
    RunTurn, TurnError, TurnId, TurnPlanner, TurnStatus,
};
use serde_json::{Map, Value, json};

use crate::fakes::{Log, Mock, Noting, Say, Ticking, Watched, Watcher, asked, config, engine, engine_on, usage};
use crate::stores::on_each_store;

/// C-TST-02, C-TRN-10.
#[tokio::test]
async fn c_tst_02_a_turn_is_stored_with_its_messages_and_its_call() {
    on_each_store(one_turn).await;
}

async fn one_turn(store: Arc<dyn ConversationStore>) {
    let mock = Mock::new(vec![Say::Text("hello")]);
    let engine = engine_on(&mock, store);
    let conversation = asked(&engine, "hi").await;
    let turn = engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    let messages = engine.messages(&conversation.id).await.expect("messages");
    assert_eq!(turn.input_messages, messages[..1]);
    assert_eq!(turn.output_messages, messages[1..]);
    let answer = &messages[1];
    assert_eq!((answer.role, answer.content.text().as_str()), (MessageRole::Assistant, "hello"));
    assert_eq!((answer.turn_id.as_ref(), answer.created_at_ms >= messages[0].created_at_ms), (Some(&turn.id), true));
    assert_eq!((turn.provider_calls.len(), turn.provider_calls[0].usage.clone()), (1, Some(usage())));
    assert_eq!(engine.get_turn(&conversation.id, &turn.id).await, Ok(Some(turn.clone())));
    assert_eq!(engine.list_turns(&conversation.id, engine::Page::all()).await, Ok(vec![turn.clone()]));
    let after = engine.get_conversation(&conversation.id).await.expect("read").expect("it is there");
    assert_eq!(Some(after.updated_at_ms), turn.finished_at_ms, "the conversation was touched");
    assert_eq!(mock.last_request(), ["user: hi"]);
}

/// S-99, C-LOOP-10: the exact order.
#[tokio::test]
async fn s_99_a_turn_runs_in_the_order_of_the_loop() {
    let log = Log::default();
    let store = Watched::new(log.clone());
    let noting = Arc::new(Noting(log.clone()));
    let config = EngineConfig::new("ana", store)
        .provider(Mock::named("mock", vec![Say::Text("hello")], log.clone()))
        .history_builder(noting.clone())
        .planner(noting)
        .hooks(Arc::new(Watcher { log: log.clone(), ..Watcher::default() }));
    let engine = ConversationEngine::new(config).expect("an engine");
    let conversation = asked(&engine, "hi").await;
    assert_eq!(log.take(), ["create_conversation", "append_messages 1", "on_conversation_created ana"]);
    engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    let expected = [
        "get_conversation",
        "get_messages",
        "list_turns",
        "create_turn running",
        "build_history",
        "plan_turn",
        "before_turn running",
        "update_turn running 1 open",
        "send_chat mock",
        "append_messages 1",
        "update_turn succeeded 0 open",
        "get_conversation",
        "update_conversation",
        "after_turn_success succeeded",
    ];
    assert_eq!(log.take(), expected);
}

struct ByHint;

#[async_trait]
impl TurnPlanner for ByHint {
    async fn plan_turn(&self, input: PlanInput<'_>) -> Result<PlannedTurn, TurnError> {
        let hard = input.hints.get("hard") == Some(&Value::Bool(true));
        let (provider, model) = if hard { ("large", "l-9") } else { ("small", "s-1") };
        let parameters = Parameters { max_tokens: Some(50), ..Parameters::default() };
        let tools = vec![ToolSpec { name: "look".into(), description: String::new(), input_schema: json!({}) }];
        Ok(PlannedTurn { provider: provider.into(), model: model.into(), parameters, tools })
    }
}

/// Only the newest message.
struct Newest;

#[async_trait]
impl HistoryBuilder for Newest {
    async fn build_history(&self, context: HistoryContext<'_>) -> Result<Vec<Message>, TurnError> {
        assert!(!context.next_turn_id.as_str().is_empty() && context.agent == "ana");
        Ok(context.messages.last().map(|one| one.for_model()).into_iter().collect())
    }
}

/// C-TST-03.
#[tokio::test]
async fn c_tst_03_builders_limit_the_history_and_planners_choose_by_hints() {
    on_each_store(builders_and_planners).await;
}

async fn builders_and_planners(store: Arc<dyn ConversationStore>) {
    let (small, large) = (
        Mock::named("small", vec![Say::Text("s")], Log::default()),
        Mock::named("large", vec![Say::Text("l")], Log::default()),
    );
    let config = EngineConfig::new("ana", store)
        .provider(small.clone())
        .provider(large.clone())
        .planner(Arc::new(ByHint))
        .history_builder(Arc::new(Newest));
    let engine = ConversationEngine::new(config).expect("an engine");
    let conversation = asked(&engine, "one").await;
    engine.append_messages(&conversation.id, vec![NewMessage::user("two")]).await.expect("added");
    let turn = engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    assert_eq!((turn.text().as_str(), turn.provider_calls[0].model.as_str()), ("s", "s-1"));
    assert_eq!((small.last_request(), turn.input_messages.len()), (vec!["user: two".to_owned()], 2));
    engine.append_messages(&conversation.id, vec![NewMessage::user("three")]).await.expect("added");
    let turn = engine.run_turn(RunTurn::new(&conversation.id).hint("hard", true)).await.expect("a turn");
    assert_eq!((turn.text().as_str(), turn.provider_calls[0].provider.as_str()), ("l", "large"));
    let request = large.asked()[0].request.clone();
    assert_eq!(
        (request.model.as_deref(), request.parameters.max_tokens, request.tools.len()),
        (Some("l-9"), Some(50), 1)
    );
}

#[tokio::test]
async fn the_defaults_are_the_full_history_and_the_first_default_model() {
    let (one, two) = (
        Mock::named("one", vec![Say::Text("1")], Log::default()),
        Mock::named("two", vec![Say::Text("2")], Log::default()),
    );
    let config = EngineConfig::new("ana", Arc::new(engine::MemoryStore::new()))
        .provider(two.clone())
        .provider(one.clone())
        .default_model("one", "m-1")
        .default_model("two", "m-2");
    let engine = ConversationEngine::new(config).expect("an engine");
    let conversation = asked(&engine, "a").await;
    let id = &conversation.id;
    engine.run_turn(RunTurn::new(id)).await.expect("a turn");
    engine.append_messages(id, vec![NewMessage::user("b")]).await.expect("added");
    engine.run_turn(RunTurn::new(id).hint("provider", "two")).await.expect("a turn");
    assert_eq!(two.last_request(), ["user: a", "assistant: 1", "user: b"]);
    assert_eq!(two.asked()[0].options.model, "m-2");
    engine.run_turn(RunTurn::new(id).hint("model", "m-9")).await.expect("a turn");
    assert_eq!(one.asked()[1].options.model, "m-9");
    let lost = engine.run_turn(RunTurn::new(id).hint("provider", "three")).await.expect_err("nobody is there");
    assert!(lost.to_string().contains("there are some for: one, two"), "{lost}");
}

#[tokio::test]
async fn the_default_history_can_be_limited() {
    let mock = Mock::new(vec![Say::Text("x")]);
    let limits = HistoryLimits { max_messages: Some(1), max_tokens: None };
    let config = config(&mock).history_builder(Arc::new(FullHistory::limited(limits)));
    let engine = ConversationEngine::new(config).expect("an engine");
    let initial_messages = vec![NewMessage::system("rules"), NewMessage::user("one"), NewMessage::user("two")];
    let options = CreateConversation { initial_messages, ..CreateConversation::default() };
    let conversation = engine.create_conversation(options).await.expect("created");
    engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    assert_eq!(mock.last_request(), ["system: rules", "user: two"]);
}

/// C-TST-06, C-PRV-08 to C-PRV-12.
#[tokio::test]
async fn c_tst_06_contexts_extensions_outcomes_and_times_are_told() {
    on_each_store(what_is_told).await;
}

async fn what_is_told(store: Arc<dyn ConversationStore>) {
    let mock = Mock::new(vec![Say::Text("x")]);
    let engine = engine_on(&mock, store);
    let conversation = asked(&engine, "hi").await;
    let first = engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    let options = RunTurn {
        turn_id: Some(TurnId::parse("my-turn").expect("an id")),
        agent: Some("bo".into()),
        metadata: json!({"experiment": "b"}).as_object().expect("an object").clone(),
        request_class: Some(RequestClass::Interactive),
        ..RunTurn::new(&conversation.id)
    };
    let turn = engine.run_turn(options).await.expect("a turn");
    let asked = mock.asked().pop().expect("a request").options;
    let context = asked.agent_context();
    let run = format!("{}:my-turn", conversation.id);
    assert_eq!((context.agent.as_str(), &context.run_id, &context.metadata["experiment"]), ("bo", &run, &json!("b")));
    let labels = json!({"conversationId": conversation.id, "turnId": "my-turn", "provider": "mock", "model": "m-1"});
    assert_eq!(Value::Object(context.labels.clone()), labels);
    let extensions = json!({"ai.provider": "mock", "ai.model": "m-1", "ai.request_type": "chat",
        "ai.streaming": false, "request.class": "interactive"});
    assert_eq!(Value::Object(asked.extensions()), extensions);
    let parent = format!("{}:{}", conversation.id, first.id);
    assert_eq!((asked.correlation_id(), asked.parent_correlation_id()), (run.clone(), Some(parent.clone())));
    let record = &turn.provider_calls[0];
    assert_eq!((&record.id, record.turn_id.as_str(), record.provider.as_str()), (&asked.call_id, "my-turn", "mock"));
    assert_eq!((&record.correlation_id, &record.parent_correlation_id), (&Some(run), &Some(parent)));
    assert_eq!(record.request_metadata["extensions"], extensions);
    assert_eq!(record.request_metadata["agent_context"], json!(context));
    assert_eq!(record.request_metadata["metadata"], json!({"experiment": "b"}));
    let outcome = record.outcome.as_ref().expect("an outcome");
    assert_eq!((outcome.ok, outcome.attempts, outcome.error_category), (true, 1, None));
    assert_eq!((Some(outcome.finished_at_ms), outcome.started_at_ms), (record.finished_at_ms, record.started_at_ms));
    assert!(turn.started_at_ms < record.started_at_ms && record.started_at_ms < outcome.finished_at_ms);
    assert!(Some(outcome.finished_at_ms) <= turn.finished_at_ms);
    assert_eq!(first.provider_calls[0].parent_correlation_id, None, "there was none before");
    assert_ne!(first.provider_calls[0].id, record.id);
}

/// S-134.
#[tokio::test]
async fn s_134_a_finished_turn_reads_succeeded_with_all_that_it_did() {
    let mock = Mock::new(vec![Say::Text("hello")]);
    let engine = engine(&mock);
    let conversation = asked(&engine, "hi").await;
    let turn = engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    let view: Value = serde_json::to_value(&turn).expect("json");
    assert_eq!(
        (&view["status"], &view["trigger_type"], &view["agent"]),
        (&json!("succeeded"), &json!("user_message"), &json!("ana"))
    );
    assert_eq!(
        (&view["input_messages"][0]["content"], &view["output_messages"][0]["content"]),
        (&json!("hi"), &json!("hello"))
    );
    assert_eq!(view["provider_calls"][0]["usage"]["total_tokens"], 15);
    assert_eq!((turn.usage(), turn.error.is_none(), turn.finished_at_ms.is_some()), (Some(usage()), true, true));
    assert!(view["started_at"].as_str().is_some_and(|text| text.ends_with('Z')), "{view}");
    let result = NewMessage::new(MessageRole::Tool, vec![Part::tool_result("k", "3", false)]);
    engine.append_messages(&conversation.id, vec![result]).await.expect("added");
    let trigger = async |options: RunTurn| -> ConversationTurn { engine.run_turn(options).await.expect("a turn") };
    assert_eq!(trigger(RunTurn::new(&conversation.id)).await.trigger_type.as_deref(), Some("tool_result"));
    let none = trigger(RunTurn::new(&conversation.id)).await;
    assert_eq!((none.trigger_type.as_deref(), none.input_messages.len()), (Some("system_trigger"), 0));
    let own = trigger(RunTurn::new(&conversation.id).trigger("every_morning")).await;
    assert_eq!(own.trigger_type.as_deref(), Some("every_morning"));
}

/// S-149.
#[tokio::test]
async fn s_149_whatever_a_message_holds_reaches_the_adapter() {
    let mock = Mock::new(vec![Say::Text("x")]);
    let engine = engine(&mock);
    let image = Part::Image { source: ImageSource::Url { url: "https://h/i.png".into() } };
    let metadata: Map<String, Value> = json!({"ui": {"fold": true}}).as_object().expect("an object").clone();
    let seen = NewMessage { name: Some("ana".into()), ..NewMessage::user(vec![Part::text("see"), image.clone()]) };
    let form = NewMessage { metadata: metadata.clone(), ..NewMessage::new(MessageRole::Other, json!({"size": 3})) };
    let options = CreateConversation {
        initial_messages: vec![NewMessage::system("rules"), seen, form],
        ..CreateConversation::default()
    };
    let conversation = engine.create_conversation(options).await.expect("created");
    engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    let asked = mock.asked().pop().expect("a request");
    assert_eq!(mock.last_request(), ["system: rules", "user: see | image", "user: {\"size\":3}"]);
    assert_eq!(
        (asked.request.messages[1].name.as_deref(), &asked.request.messages[1].content[1]),
        (Some("ana"), &image)
    );
    let inputs = asked.options.inputs;
    assert_eq!((inputs.len(), &inputs[1].metadata, inputs[1].role), (2, &metadata, MessageRole::Other));
    assert_eq!(inputs[1].content, Content::from(json!({"size": 3})));
    let stored = engine.messages(&conversation.id).await.expect("messages");
    assert_eq!(inputs, stored[1..3]);
}

#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

impl DeltaSink for Listener {
    fn delta(&self, attempt: u32, index: u64, delta: ChatDelta) {
        let text = match delta {
            ChatDelta::Text { text, .. } => text,
            other => format!("{other:?}").split(' ').next().unwrap_or_default().to_owned(),
        };
        self.0.lock().expect("unpoisoned").push(format!("{attempt}.{index} {text}"));
    }

    fn retract(&self, attempt: u32) {
        self.0.lock().expect("unpoisoned").push(format!("-{attempt}"));
    }
}

/// C-PRV-02: who cannot stream tells the whole at its end.
#[tokio::test]
async fn answers_are_streamed_where_the_provider_can() {
    for (mock, streams, heard) in [
        (Mock::streaming(vec![Say::Text("in pieces")]), true, vec!["1.0 in ", "1.1 pieces"]),
        (Mock::new(vec![Say::Text("at once")]), false, vec!["1.0 at once", "1.1 Usage"]),
    ] {
        let engine = engine(&mock);
        let conversation = asked(&engine, "hi").await;
        let listener = Arc::new(Listener::default());
        engine.run_turn(RunTurn::new(&conversation.id).stream_to(listener.clone())).await.expect("a turn");
        assert_eq!(*listener.0.lock().expect("unpoisoned"), heard);
        assert_eq!(mock.asked()[0].options.streaming, streams);
        engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
        assert!(!mock.asked()[1].options.streaming, "nobody listens");
    }
}

#[tokio::test]
async fn a_provider_may_answer_with_several_messages_or_with_none() {
    let both = vec![NewMessage::new(MessageRole::Tool, "3 ships"), NewMessage::assistant("There are three.")];
    let several = Box::new(ProviderChatResult { messages: both, ..ProviderChatResult::default() });
    let mock = Mock::new(vec![Say::Result(several), Say::Result(Box::default())]);
    let engine = engine(&mock);
    let conversation = asked(&engine, "how many?").await;
    let turn = engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    let texts: Vec<String> =
        engine.messages(&conversation.id).await.expect("messages").iter().map(|one| one.content.text()).collect();
    assert_eq!((turn.output_messages.len(), texts.join(" / ").as_str()), (2, "how many? / 3 ships / There are three."));
    engine.append_messages(&conversation.id, vec![NewMessage::user("and?")]).await.expect("added");
    let turn = engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
    assert_eq!((turn.status, turn.output_messages.len(), turn.text().as_str()), (TurnStatus::Succeeded, 0, ""));
    assert_eq!(turn.usage(), None);
}

#[tokio::test]
async fn turns_of_many_conversations_run_side_by_side() {
    let engine =
        ConversationEngine::new(config(&Mock::new(vec![Say::Text("x")])).clock(Ticking::from(5))).expect("an engine");
    let runs = (0..20).map(|n| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let conversation = asked(&engine, &format!("hi {n}")).await;
            engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
            engine.messages(&conversation.id).await.expect("messages").len()
        })
    });
    for run in runs.collect::<Vec<_>>() {
        assert_eq!(run.await.expect("a run"), 2);
    }
}
