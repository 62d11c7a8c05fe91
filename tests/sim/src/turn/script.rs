//! What a scenario is made of: who takes part, what they are asked for, what models say and what tools do.

use std::time::Duration;

use domain::chat::{ChatCall, Message, Part, ToolCall};
use domain::definition::{NewDefinition, check};
use domain::ports::ActionCall;
use schemas::conversation::LogRecord;
use schemas::definition::DefinitionKind;
use schemas::id::{ConversationId, Namespace};
use serde_json::{Value, json};
use testkit::fake::MemStore;
use testkit::fake::tools::Work;

/// Where all is said, and the turn that is asked for.
pub const CONVERSATION: &str = "c1";
pub const TURN: &str = "t1";
/// How long a tool takes.
pub const ATTEMPT: Duration = Duration::from_millis(10);
/// How often a tool looks whether it may end.
pub const LOOK: Duration = Duration::from_millis(10);
/// What stands for the result of a call that may be in doubt.
const SETTLED: &str = "settled";

pub struct Script {
    /// Who is asked comes first; all of them remember.
    pub agents: &'static [&'static str],
    pub said: &'static str,
    pub definitions: fn() -> Vec<NewDefinition>,
    /// What the conversation has already.
    pub before: fn() -> Vec<LogRecord>,
    /// How long models take.
    pub thought: Duration,
    pub reply: fn(&ChatCall) -> Vec<Part>,
    /// Why a model must not be asked now, besides what no model is asked for.
    pub object: fn(&MemStore, &ChatCall) -> Option<String>,
    pub work: fn(MemStore, ActionCall) -> Work,
    /// Models that are asked at a time, at most.
    pub at_once: usize,
    /// Tools that run at most once. Each is called once, by [`tool_call`].
    pub once: &'static [&'static str],
    /// Calls of tools that fail in every run.
    pub refused: usize,
}

/// What scripts have in common.
pub const PLAIN: Script = Script {
    agents: &["ben"],
    said: "do it",
    definitions: Vec::new,
    before: Vec::new,
    thought: Duration::from_millis(5),
    reply: |_| Vec::new(),
    object: |_, _| None,
    work: done,
    at_once: 1,
    once: &[],
    refused: 0,
};

impl Script {
    /// All is posted before the worker starts, so that nothing depends on who is faster.
    pub fn opening(&self) -> [(&'static str, Value); 2] {
        let payload = json!({"moniker": "converse", "conversation_id": CONVERSATION});
        let said = json!({"text": self.said, "turn_id": TURN});
        [
            ("create", json!({"type": "create", "session_id": "s1", "agent_id": self.agents[0], "payload": payload})),
            ("said", json!({"type": "input", "session_id": "s1", "payload": said})),
        ]
    }

    /// What comes of a call of such a tool depends on the crash.
    pub fn is_once(&self, call_id: &str) -> bool {
        self.once.iter().any(|tool| call_id == call_of(tool))
    }

    /// What a model is shown, but for what depends on the crash.
    pub fn words(&self, call: &ChatCall) -> String {
        call.request.messages.iter().map(|message| self.in_words(message)).collect::<Vec<_>>().join("\n")
    }

    pub fn in_words(&self, message: &Message) -> String {
        let parts = message.content.iter().map(|part| match part {
            Part::ToolResult { call_id, .. } if self.is_once(call_id) => format!("{call_id} {SETTLED}"),
            other => json!(other).to_string(),
        });
        format!("{}: {}", message.role.as_str(), parts.collect::<Vec<_>>().join(" "))
    }

    /// A result as the log has it, but for what depends on the crash.
    pub fn result(&self, body: &Value) -> Value {
        let call = body["tool_call_id"].as_str().unwrap_or_default();
        if self.is_once(call) {
            return json!([call, SETTLED]);
        }
        json!([call, body["success"], body["result"], body["error"]])
    }
}

fn call_of(tool: &str) -> String {
    format!("call-{tool}")
}

/// The one call of a tool.
pub fn tool_call(name: &str) -> Part {
    call(&call_of(name), name, name)
}

pub fn call(id: &str, name: &str, what: &str) -> Part {
    let input = json!({ "what": what });
    Part::ToolCall(ToolCall { id: id.to_owned(), name: name.to_owned(), input, invalid: None, signature: None })
}

fn done(_: MemStore, call: ActionCall) -> Work {
    Box::pin(async move {
        tokio::time::sleep(ATTEMPT).await;
        Ok(json!({ "done": call.tool }))
    })
}

/// A tool with the task and the action that it stands for.
pub fn tool(name: &str, class: &str, more: &Value) -> [NewDefinition; 3] {
    let (task, action) = (format!("{name}-task"), format!("{name}-action"));
    let tool = json!({"id": name, "name": name, "description": name, "library_id": "desk",
                      "input_schema": {"type": "object"}, "target_type": "task", "target_id": task,
                      "effect_class": class});
    let steps = json!([{"ref": "only", "action_def_id": action}]);
    let task = json!({"id": task, "name": task, "library_id": "desk", "steps": steps});
    let action = json!({"id": action, "name": action, "library_id": "desk", "kind": "mock", "operation": "return",
                        "config": {}, "effect_class": class});
    [
        new(DefinitionKind::ActionDef, &action),
        new(DefinitionKind::Task, &task),
        new(DefinitionKind::Tool, &with(tool, more)),
    ]
}

/// A tool that stands for an agent.
pub fn asks(name: &str, agent: &str, more: &Value) -> NewDefinition {
    let tool = json!({"id": name, "name": name, "description": "Asks somebody.", "library_id": "desk",
                      "input_schema": {"type": "object"}, "target_type": "agent", "target_id": agent});
    new(DefinitionKind::Tool, &with(tool, more))
}

pub fn agent(id: &str, persona: &Value) -> NewDefinition {
    let agent = json!({"id": id, "name": id, "project_ids": ["p1"], "persona_inline": persona});
    new(DefinitionKind::Agent, &agent)
}

/// The agent `ben`, who counts, and has one tool, which may be repeated.
pub fn ben_counts() -> Vec<NewDefinition> {
    let mut all = Vec::from(tool("look", "idempotent", &json!({})));
    let persona = json!({"system_prompt": "You count.", "model_profile_id": "m", "tool_ids": ["look"]});
    all.push(agent("ben", &persona));
    all
}

pub fn new(kind: DefinitionKind, value: &Value) -> NewDefinition {
    check(kind, value).unwrap_or_else(|problems| panic!("{value}: {problems:?}")).new
}

fn with(mut value: Value, more: &Value) -> Value {
    for (field, given) in more.as_object().into_iter().flatten() {
        value[field] = given.clone();
    }
    value
}

/// Why no model must be asked now: a recorded answer is never asked for again, be it a reply or a summary, and moves
/// come one after the other.
pub fn object_to(store: &MemStore, call: &ChatCall) -> Option<String> {
    let (turn, number) = call.id.rsplit_once('.')?;
    let number: u32 = number.parse().ok()?;
    let conversation = ConversationId::parse(&call.context.conversation_id).ok()?;
    let has = |id: String| store.has_record(&Namespace::default_ns(), &conversation, &id);
    let is_recorded = |number: u32| has(format!("{turn}.move.{number}")) || has(format!("{turn}.{number}.call"));
    if is_recorded(number) {
        return Some(format!("{} is asked for and is recorded already", call.id));
    }
    // Pieces of a compaction that had nothing to do have asked nobody.
    let is_early = !is_summary(call) && number > 1 && !is_recorded(number - 1);
    is_early.then(|| format!("{} is asked for before the move before it is recorded", call.id))
}

/// Whether a model is asked to sum up what is old.
pub fn is_summary(call: &ChatCall) -> bool {
    call.id.contains(".compact.")
}
