//! The real adapters behind the engine, answering from a script.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domain::chat::{CallContext, ChatDelta, ErrorCategory, ToolCall, ToolResult, ToolSpec};
use domain::ports::{DeltaSink, Models};
use engine::{
    AgentDeps, ConversationEngine, EngineConfig, EngineError, MemoryStore, ModelsAdapter, PROFILE_MODEL,
    ProviderAdapter, RunTurn, Tools, create_agent,
};
use providers::{Performer, ProvidersConfig};
use serde_json::json;

use crate::fakes::asked;

fn performer(script: &serde_json::Value) -> Arc<Performer> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.json");
    std::fs::write(&path, script.to_string()).expect("written");
    let config = ProvidersConfig { script: Some(path), ..ProvidersConfig::default() };
    Arc::new(Performer::new(&config).expect("a performer"))
}

fn engine(adapter: ModelsAdapter, model: &str) -> ConversationEngine {
    let config = EngineConfig::new("ana", Arc::new(MemoryStore::new()))
        .default_model(adapter.id(), model)
        .provider(Arc::new(adapter));
    ConversationEngine::new(config).expect("an engine")
}

#[derive(Default)]
struct Listener(Mutex<String>);

impl DeltaSink for Listener {
    fn delta(&self, _: u32, _: u64, delta: ChatDelta) {
        if let ChatDelta::Text { text, .. } = delta {
            self.0.lock().expect("unpoisoned").push_str(&format!("[{text}]"));
        }
    }

    fn retract(&self, _: u32) {
        self.0.lock().expect("unpoisoned").push('!');
    }
}

#[tokio::test(start_paused = true)]
async fn the_real_adapters_serve_the_engine() {
    let script = json!({"rules": [
        {"when": {"contains": "weather"}, "times": 1, "reply": {"fail": {"class": "rate_limit"}}},
        {"when": {"contains": "weather"}, "reply": {"text": "It is sunny.", "reasoning": "hm", "usage": {"input_tokens": 9, "output_tokens": 4}}},
        {"when": {"contains": "key"}, "reply": {"fail": {"class": "auth", "message": "no such key"}}}
    ]});
    let models: Arc<dyn Models> = performer(&script);
    let engine = engine(ModelsAdapter::provider(models, "scripted"), "m-7");
    let conversation = asked(&engine, "the weather?").await;
    let listener = Arc::new(Listener::default());
    let turn = engine.run_turn(RunTurn::new(&conversation.id).stream_to(listener.clone())).await.expect("a turn");
    assert_eq!(turn.text(), "It is sunny.");
    assert_eq!(listener.0.lock().expect("unpoisoned").replace("][", ""), "[It is sunny.]");
    let record = &turn.provider_calls[0];
    assert_eq!((record.provider.as_str(), record.model.as_str()), ("scripted", "m-7"));
    assert_eq!(
        record.outcome.as_ref().map(|outcome| (outcome.ok, outcome.attempts)),
        Some((true, 2)),
        "its own record"
    );
    assert_eq!(
        (record.turn_id.as_str(), record.response_metadata["finish"].as_str()),
        (turn.id.as_str(), Some("stop"))
    );
    assert_eq!(record.request_metadata["extensions"]["ai.streaming"], true);
    assert_eq!(turn.usage().map(|usage| usage.total_tokens), Some(13));
    assert_eq!(turn.output_messages[0].content.parts().len(), 2, "thoughts are kept: some providers want them back");

    let other = asked(&engine, "the key?").await;
    let failure = engine.run_turn(RunTurn::new(&other.id)).await.expect_err("no key");
    let EngineError::TurnFailed(turn) = &failure else { panic!("{failure:?}") };
    assert!(turn.error.as_ref().is_some_and(|error| error.message.contains("no such key")), "{failure}");
    let outcome = turn.provider_calls[0].outcome.as_ref().expect("an outcome");
    assert_eq!((outcome.error_category, outcome.attempts), (Some(ErrorCategory::Auth), 1));
}

#[tokio::test(start_paused = true)]
async fn a_profile_brings_its_own_model() {
    let models = performer(&json!({"otherwise": {"text": "as you like"}}));
    for adapter in [ModelsAdapter::profile(models.clone(), "fast"), ModelsAdapter::fleet_default(models.clone(), "any")]
    {
        let engine = engine(adapter, PROFILE_MODEL);
        let conversation = asked(&engine, "hi").await;
        let turn = engine.run_turn(RunTurn::new(&conversation.id)).await.expect("a turn");
        assert_eq!((turn.text().as_str(), turn.provider_calls[0].model.as_str()), ("as you like", "script"));
        let turn = engine.run_turn(RunTurn::new(&conversation.id).hint("model", "m-8")).await.expect("a turn");
        assert_eq!(turn.provider_calls[0].model, "m-8");
    }
}

struct Harbour;

#[async_trait]
impl Tools for Harbour {
    fn specs(&self) -> Vec<ToolSpec> {
        let input_schema = json!({"type": "object", "properties": {}});
        vec![ToolSpec { name: "count_ships".into(), description: String::new(), input_schema }]
    }

    async fn call(&self, call: &ToolCall, _: &CallContext) -> ToolResult {
        ToolResult::ok(call.id.clone(), json!({"ships": 3}))
    }
}

#[tokio::test(start_paused = true)]
async fn the_script_of_the_example_works() {
    let script = serde_json::from_str(include_str!("../../examples/harbour.json")).expect("json");
    let models = ModelsAdapter::fleet_default(performer(&script), "default");
    let deps = AgentDeps::new("master", Arc::new(MemoryStore::new()), Arc::new(models), PROFILE_MODEL);
    let mut agent = create_agent(AgentDeps { tools: Some(Arc::new(Harbour)), ..deps }, None).await.expect("an agent");
    let answer = agent.process_message("How many ships are there?").await.expect("an answer");
    assert_eq!(answer, "There are three ships in the harbour.");
    assert_eq!(agent.conversation_history().await.expect("a history").len(), 4);
}
