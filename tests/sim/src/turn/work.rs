//! A turn with tools of two classes, work in the background, another agent, and a person who says yes.

use domain::chat::{ChatCall, Part};
use domain::definition::NewDefinition;
use domain::ports::{ActionCall, OperationQuery, Operations};
use schemas::conversation::{OperationKind, OperationState};
use schemas::id::Namespace;
use serde_json::json;
use testkit::contract::words::{conversation_id, operation_query};
use testkit::crash::Run;
use testkit::fake::MemStore;
use testkit::fake::tools::Work;
use testkit::unreliable::CrashPoint;

use super::check::check;
use super::history::History;
use super::script::{ATTEMPT, CONVERSATION, LOOK, PLAIN, Script, agent, asks, tool, tool_call};
use super::{Drilled, every, person, played};

pub static SCRIPT: Script =
    Script { agents: &["ben", "dev"], said: "do it all", definitions, reply, work, once: &["send", "pay"], ..PLAIN };

/// The message that says that work goes on in the background.
const ACKNOWLEDGED: &str = "t1.m3";

/// One crash at every `stride`th call, before and after it.
///
/// # Errors
/// The first crash that changes history.
pub fn drill_turn(stride: usize) -> Result<Drilled, String> {
    every(stride, play)
}

async fn play(crash: Option<CrashPoint>) -> (Run<History>, Drilled) {
    let ended = played(&SCRIPT, crash, person::says_yes).await;
    let drilled = check(&ended).await;
    (ended.run().await, drilled)
}

/// The agent `ben` with its tools, and the agent `dev`, whom it asks.
fn definitions() -> Vec<NewDefinition> {
    let mut all = Vec::new();
    for (name, class, more) in [
        ("look", "idempotent", json!({})),
        ("send", "at_most_once", json!({})),
        ("build", "idempotent", json!({"async": true})),
        ("pay", "at_most_once", json!({"requires_approval": {"expires_s": 3_600}})),
    ] {
        all.extend(tool(name, class, &more));
    }
    all.push(asks("ask_dev", "dev", &json!({})));
    let tools = ["look", "send", "build", "ask_dev", "pay"];
    all.push(agent("ben", &json!({"system_prompt": "You lead.", "model_profile_id": "m", "tool_ids": tools})));
    all.push(agent("dev", &json!({"system_prompt": "You develop.", "model_profile_id": "m"})));
    all
}

/// What is said follows from the place alone: which move of whose turn.
fn reply(call: &ChatCall) -> Vec<Part> {
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

/// One attempt of a tool.
fn work(store: MemStore, call: ActionCall) -> Work {
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
