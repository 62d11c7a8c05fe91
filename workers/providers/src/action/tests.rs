//! Actions of each kind, against servers and programs of this machine.

mod bridge;
mod code;
mod embed;
mod http;
mod llm;
mod mcp;
mod memory;
mod mock;
mod native;
mod variables;

use std::sync::Arc;

use domain::tool::{ActionRequest, ExecutionContext};
use schemas::definition::{EffectClass, TargetType};
use schemas::id::{AgentId, ConversationId, DefinitionId, Namespace, OperationId, SessionId, TurnId};
use serde_json::json;
use testkit::fake::{MemStore, SimClock};

use super::*;
use crate::config::ProvidersConfig;
use crate::performer::Performer;

fn id(text: &str) -> DefinitionId {
    DefinitionId::parse(text).expect("an id")
}

/// A call of an action with these settings and this input.
fn call(kind: ActionKind, config: Value, input: Value) -> ActionCall {
    let Value::Object(config) = config else { panic!("settings are an object") };
    ActionCall {
        namespace: Namespace::default_ns(),
        session_id: SessionId::parse("s1").expect("an id"),
        conversation_id: ConversationId::parse("c1").expect("an id"),
        turn_id: TurnId::parse("t1").expect("an id"),
        operation_id: OperationId::parse("t1.1.0").expect("an id"),
        tool: "search".to_owned(),
        effect_class: EffectClass::AtMostOnce,
        attempt: 1,
        timeout_ms: 5_000,
        request: ActionRequest {
            target_type: TargetType::Task,
            target_id: id("find"),
            version: 1,
            action_id: id("lookup"),
            action_version: 1,
            kind,
            operation: kind.operations()[0].to_owned(),
            config,
            output_schema: None,
            output_mapping: None,
            retry_on: Vec::new(),
            idempotency_key: None,
            input,
            context: ExecutionContext {
                agent_id: Some(AgentId::parse("ana").expect("an id")),
                ..ExecutionContext::default()
            },
        },
    }
}

fn store() -> Arc<MemStore> {
    Arc::new(MemStore::new(4, Arc::new(SimClock::new())))
}

fn config(allow_private: bool) -> ActionsConfig {
    let variables = Variables::of_process(Vec::new());
    ActionsConfig { allow_private, variables, mcp: BTreeMap::new(), code: CodeConfig::default() }
}

fn models() -> Arc<Performer> {
    Arc::new(Performer::new(&ProvidersConfig::from_env(|_| None, BTreeMap::new())).expect("valid"))
}

fn actions(config: ActionsConfig) -> Actions {
    Actions::new(config, models(), store()).expect("TLS works")
}

#[tokio::test]
async fn kinds_that_nobody_runs_are_told_so_and_can_be_brought() {
    struct Memory;
    #[async_trait]
    impl ActionRunner for Memory {
        async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure> {
            Ok(json!({"kept": call.request.input}))
        }
    }
    let memory = call(ActionKind::Memory, json!({}), json!({"content": "x"}));
    let failed = actions(config(false)).run(&memory).await.unwrap_err();
    assert_eq!((failed.error.code, failed.may_have_happened), (ToolErrorCode::NotFound, false));
    assert!(failed.error.message.contains("kind memory"), "{}", failed.error.message);
    let with = actions(config(false)).with(ActionKind::Memory, Arc::new(Memory));
    assert_eq!(with.run(&memory).await.unwrap(), json!({"kept": {"content": "x"}}));
}

#[tokio::test]
async fn context_reshapes_and_checks() {
    let actions = actions(config(false));
    let fields = json!({"fields": {"name": "input.user.name", "all": "$.input"}});
    let made = actions.run(&call(ActionKind::Context, fields, json!({"user": {"name": "Ana"}}))).await.unwrap();
    assert_eq!(made, json!({"name": "Ana", "all": {"user": {"name": "Ana"}}}));
    let beyond = call(ActionKind::Context, json!({"fields": {"n": "input.a + 1"}}), json!({}));
    assert!(actions.run(&beyond).await.unwrap_err().error.message.contains("not run yet"));
    let strict = json!({"schema": {"type": "object", "required": ["a"]}});
    let failed = actions.run(&call(ActionKind::Context, strict, json!({}))).await.unwrap_err();
    assert_eq!(failed.error.code, ToolErrorCode::InvalidInput);
}

/// A program that others wrote, installed by the script that knows how.
fn program(name: &str) -> std::path::PathBuf {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/mcp-servers");
    let output = std::process::Command::new(script).arg(name).output().expect("a shell");
    assert!(output.status.success(), "ops/mcp-servers: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a path").trim().into()
}
