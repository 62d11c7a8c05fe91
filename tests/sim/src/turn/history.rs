//! What the turn came to: everything but times and places in the log. What a crash may change, the result of
//! a tool that runs at most once, is left to [`super::check`].

use std::collections::BTreeMap;

use domain::chat::{Message, Part};
use domain::memory::MemoryFilter;
use domain::ports::{ConversationQuery, Conversations, Memories, MemoryListQuery, Operations};
use schemas::conversation::{LogKind, LogRow, OperationKind};
use schemas::definition::EffectClass;
use schemas::id::Namespace;
use schemas::memory::MemoryOwner;
use serde_json::{Value, json};
use testkit::contract::build::agent_id;
use testkit::contract::words::{conversation_query, gapless, log_query, operation_query, turn_query};
use testkit::fake::{MemStore, ScriptedModels};

use super::person;
use super::place::Place;
use super::script::is_once;
use crate::world::World;

/// What stands for the result of a call that may be in doubt.
const SETTLED: &str = "settled";
/// More than there can be.
const MEMORIES_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The logs of all conversations: what was said, called and answered.
    pub log: Vec<String>,
    /// What models were shown for each move.
    pub shown: Vec<String>,
    /// How turns, operations and sessions ended, and what is remembered.
    pub ended: Vec<String>,
}

impl History {
    pub async fn of(place: &Place) -> Self {
        let store = &place.world.store;
        let mut ended = turns(store).await;
        ended.extend(operations(store).await);
        ended.extend(sessions(&place.world));
        ended.extend(memories(store).await);
        Self { log: log(store).await, shown: shown(&place.models), ended }
    }
}

async fn log(store: &MemStore) -> Vec<String> {
    let query = ConversationQuery { include_internal: true, ..conversation_query() };
    let found = Conversations::list(store, &query).await.expect("no faults are scripted");
    let mut ids: Vec<String> = found.into_iter().map(|one| one.conversation_id.to_string()).collect();
    ids.sort();
    let mut all = Vec::new();
    for id in ids {
        let rows = Conversations::log(store, &log_query(&id)).await.expect("no faults are scripted");
        gapless(&rows);
        let mut lines: Vec<(bool, String)> = rows.iter().filter_map(line).collect();
        // Results of one reply come in any order.
        for together in lines.chunk_by_mut(|one, next| one.0 && next.0) {
            together.sort();
        }
        all.extend(lines.into_iter().map(|(_, line)| format!("{id}: {line}")));
    }
    all
}

/// A record in words, and whether it is the result of a call that its reply waited for.
fn line(row: &LogRow) -> Option<(bool, String)> {
    let record = &row.record;
    let body = record.body.to_value();
    let detail = match record.kind {
        LogKind::Message => json!([body["sender_type"], body["text"]]),
        LogKind::Move => json!([body["move"], body["reasoning"], body["tool_calls"], body["in_background"]]),
        LogKind::ToolResult | LogKind::AsyncResult => result(&body),
        // Beside a result in doubt.
        LogKind::Event if body["type"] == "tool.failed" => return None,
        LogKind::Event => body["type"].clone(),
        LogKind::Note | LogKind::Summary => body,
        LogKind::Assembly | LogKind::ProviderCall => Value::Null,
    };
    Some((record.kind == LogKind::ToolResult, format!("{} {} {detail}", record.kind.as_str(), record.id)))
}

fn result(body: &Value) -> Value {
    let call = body["tool_call_id"].as_str().unwrap_or_default();
    if is_once(call) {
        return json!([call, SETTLED]);
    }
    json!([call, body["success"], body["result"], body["error"]])
}

/// A move that is asked for again is asked for with the same words.
fn shown(models: &ScriptedModels) -> Vec<String> {
    let mut moves: BTreeMap<String, String> = BTreeMap::new();
    for call in models.asked() {
        let words = call.request.messages.iter().map(in_words).collect::<Vec<_>>().join("\n");
        let before = moves.insert(call.id.clone(), words.clone());
        assert!(before.as_ref().is_none_or(|before| *before == words), "{}:\n{words}\nafter {before:?}", call.id);
    }
    moves.into_iter().map(|(id, words)| format!("{id}: {words}")).collect()
}

fn in_words(message: &Message) -> String {
    let parts = message.content.iter().map(|part| match part {
        Part::ToolResult { call_id, .. } if is_once(call_id) => format!("{call_id} {SETTLED}"),
        other => json!(other).to_string(),
    });
    format!("{}: {}", message.role.as_str(), parts.collect::<Vec<_>>().join(" "))
}

async fn turns(store: &MemStore) -> Vec<String> {
    let mut turns = store.turns(&turn_query()).await.expect("no faults are scripted");
    turns.sort_by(|a, b| a.turn_id.cmp(&b.turn_id));
    let words = turns.iter().map(|turn| {
        let (status, moves, used, open) = (turn.status, turn.moves, turn.usage, turn.pending_operations);
        format!("turn {} is {status:?}: {moves} moves, {used:?}, {open} open", turn.turn_id)
    });
    words.collect()
}

async fn operations(store: &MemStore) -> Vec<String> {
    let rows = store.operations(&operation_query()).await.expect("no faults are scripted");
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let one = &row.operation;
            let may_differ = one.kind == OperationKind::Task && one.effect_class == EffectClass::AtMostOnce;
            let state = if may_differ { SETTLED.to_owned() } else { format!("{:?}", one.state) };
            format!("operation {} {} {:?} is {state}", one.operation_id, one.tool, one.kind)
        })
        .collect();
    lines.sort();
    lines
}

/// Sessions, and the yeses that were given.
fn sessions(world: &World) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for row in world.store.all_sessions() {
        let (status, reason, steps) = (row.head.status, row.head.stop_reason, row.head.steps);
        lines.push(format!("session {} is {status:?} {reason:?} after {steps} steps", row.key));
    }
    let yeses = world.store.all_actions().into_iter().filter(|rec| rec.asked.actor == person::NAME);
    lines.extend(yeses.map(|rec| format!("{} came to {:?}", rec.action_id, rec.outcome)));
    lines
}

/// One of each turn, however often it was extracted.
async fn memories(store: &MemStore) -> Vec<String> {
    let mut lines = Vec::new();
    for agent in ["ben", "dev"] {
        let owner = MemoryOwner { namespace: Namespace::default_ns(), agent_id: agent_id(agent) };
        let query = MemoryListQuery { filter: MemoryFilter::default(), after: None, limit: MEMORIES_MAX };
        let page = Memories::list(store, &owner, &query).await.expect("no faults are scripted");
        let words = page.rows.iter().map(|one| format!("{agent} keeps {} v{}: {}", one.id, one.version, one.content));
        lines.extend(words);
    }
    lines
}
