//! Who the agents are, what their models say, and what their tools do.

use std::time::Duration;

use domain::chat::{ChatCall, Part, ToolCall};
use domain::definition::{NewDefinition, check};
use domain::ports::{ActionCall, OperationQuery, Operations};
use schemas::conversation::{OperationKind, OperationState};
use schemas::definition::DefinitionKind;
use schemas::id::{ConversationId, Namespace};
use serde_json::{Value, json};
use testkit::contract::words::{conversation_id, operation_query};
use testkit::fake::MemStore;
use testkit::fake::tools::Work;

/// How long models and tools take.
pub const THOUGHT: Duration = Duration::from_millis(5);
const ATTEMPT: Duration = Duration::from_millis(10);
/// How often work in the background looks whether it may end.
const LOOK: Duration = Duration::from_millis(10);

const CONVERSATION: &str = "c1";
pub const TURN: &str = "t1";
/// The message that says that work goes on in the background.
const ACKNOWLEDGED: &str = "t1.m3";
/// Tools that run at most once.
const ONCE: [&str; 2] = ["send", "pay"];

/// What comes of a call of such a tool depends on the crash.
pub fn is_once(call_id: &str) -> bool {
    ONCE.iter().any(|tool| call_id == call_of(tool))
}

fn call_of(tool: &str) -> String {
    format!("call-{tool}")
}

/// All is posted before the worker starts, so that nothing depends on who is faster.
pub fn opening() -> [(&'static str, Value); 2] {
    let payload = json!({"moniker": "converse", "conversation_id": CONVERSATION});
    [
        ("create", json!({"type": "create", "session_id": "s1", "agent_id": "ben", "payload": payload})),
        ("said", json!({"type": "input", "session_id": "s1", "payload": {"text": "do it all", "turn_id": TURN}})),
    ]
}

/// The agent `ben` with its tools, and the agent `dev`, whom it asks.
pub fn definitions() -> Vec<NewDefinition> {
    let mut all = Vec::new();
    for (name, class, more) in [
        ("look", "idempotent", json!({})),
        ("send", "at_most_once", json!({})),
        ("build", "idempotent", json!({"async": true})),
        ("pay", "at_most_once", json!({"requires_approval": {"expires_s": 3_600}})),
    ] {
        all.extend(tool(name, class, &more));
    }
    let ask = json!({"id": "ask_dev", "name": "ask_dev", "description": "Asks Dev.", "library_id": "desk",
                     "input_schema": {"type": "object"}, "target_type": "agent", "target_id": "dev"});
    all.push(new(DefinitionKind::Tool, &ask));
    let tools = ["look", "send", "build", "ask_dev", "pay"];
    all.push(agent("ben", json!({"system_prompt": "You lead.", "model_profile_id": "m", "tool_ids": tools})));
    all.push(agent("dev", json!({"system_prompt": "You develop.", "model_profile_id": "m"})));
    all
}

/// A tool with the task and the action that it stands for.
fn tool(name: &str, class: &str, more: &Value) -> [NewDefinition; 3] {
    let (task, action) = (format!("{name}-task"), format!("{name}-action"));
    let mut tool = json!({"id": name, "name": name, "description": name, "library_id": "desk",
                          "input_schema": {"type": "object"}, "target_type": "task", "target_id": task,
                          "effect_class": class});
    for (field, value) in more.as_object().into_iter().flatten() {
        tool[field] = value.clone();
    }
    let steps = json!([{"ref": "only", "action_def_id": action}]);
    let task = json!({"id": task, "name": task, "library_id": "desk", "steps": steps});
    let action = json!({"id": action, "name": action, "library_id": "desk", "kind": "mock", "operation": "return",
                        "config": {}, "effect_class": class});
    [new(DefinitionKind::ActionDef, &action), new(DefinitionKind::Task, &task), new(DefinitionKind::Tool, &tool)]
}

fn agent(id: &str, persona: Value) -> NewDefinition {
    let agent = json!({"id": id, "name": id, "project_ids": ["p1"], "persona_inline": persona});
    new(DefinitionKind::Agent, &agent)
}

fn new(kind: DefinitionKind, value: &Value) -> NewDefinition {
    check(kind, value).unwrap_or_else(|problems| panic!("{value}: {problems:?}")).new
}

/// What is said follows from the place alone: which move of whose turn.
pub fn reply(call: &ChatCall) -> Vec<Part> {
    match call.id.as_str() {
        "t1.1" => vec![tool_call("look"), tool_call("send")],
        "t1.2" => vec![tool_call("build")],
        "t1.3" => vec![Part::text("It is being built.")],
        "t1.4" => vec![Part::text("It is built."), tool_call("ask_dev")],
        "t1.5" => vec![tool_call("pay")],
        "t1.6" => vec![Part::text("All is done.")],
        _ => vec![Part::text("Dev did it.")],
    }
}

fn tool_call(name: &str) -> Part {
    let input = json!({ "what": name });
    Part::ToolCall(ToolCall { id: call_of(name), name: name.to_owned(), input, invalid: None, signature: None })
}

/// Why a model must not be asked now: a recorded reply is never asked for again, and moves come one after
/// the other.
pub fn object_to(store: &MemStore, call: &ChatCall) -> Option<String> {
    let (turn, number) = call.id.rsplit_once('.')?;
    let number: u32 = number.parse().ok()?;
    let conversation = ConversationId::parse(&call.context.conversation_id).ok()?;
    let is_recorded =
        |number: u32| store.has_record(&Namespace::default_ns(), &conversation, &format!("{turn}.move.{number}"));
    if is_recorded(number) {
        return Some(format!("{} is asked for and is recorded already", call.id));
    }
    let is_early = number > 1 && !is_recorded(number - 1);
    is_early.then(|| format!("{} is asked for before the move before it is recorded", call.id))
}

/// One attempt of a tool.
pub fn work(store: MemStore, call: ActionCall) -> Work {
    Box::pin(async move {
        tokio::time::sleep(ATTEMPT).await;
        match call.tool.as_str() {
            // The order of the log must not depend on who is faster.
            "build" => acknowledged(&store).await,
            "pay" => assert!(is_allowed(&store).await, "it is paid before somebody has said yes"),
            _ => {}
        }
        Ok(json!({ "done": call.tool }))
    })
}

async fn acknowledged(store: &MemStore) {
    while !store.has_record(&Namespace::default_ns(), &conversation_id(CONVERSATION), ACKNOWLEDGED) {
        tokio::time::sleep(LOOK).await;
    }
}

async fn is_allowed(store: &MemStore) -> bool {
    let (kind, state) = (Some(OperationKind::Approval), Some(OperationState::Completed));
    let answered = store.operations(&OperationQuery { kind, state, ..operation_query() }).await;
    answered.is_ok_and(|answered| !answered.is_empty())
}
