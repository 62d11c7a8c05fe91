//! What a turn came to: everything but times and places in the log. What a crash may change, the result of a tool
//! that runs at most once, is left to [`super::check`].

use std::collections::BTreeMap;

use domain::memory::MemoryFilter;
use domain::ports::{ConversationQuery, Conversations, Memories, MemoryListQuery, Operations};
use domain::tool::APPROVER;
use schemas::conversation::{LogKind, LogRow, OperationKind};
use schemas::definition::EffectClass;
use schemas::id::Namespace;
use schemas::memory::MemoryOwner;
use serde_json::{Value, json};
use testkit::contract::build::agent_id;
use testkit::contract::words::{conversation_query, gapless, log_query, operation_query, turn_query};
use testkit::fake::MemStore;

use super::person;
use super::place::Place;
use super::script::Script;
use crate::world::World;

/// What stands for the state of an operation that may be in doubt.
const SETTLED: &str = "settled";
/// More than there can be.
const MEMORIES_MAX: usize = 100;
/// The type of what was summed up.
pub const SUMMED_UP: &str = "compaction";

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
        ended.extend(memories(place).await);
        Self { log: log(place).await, shown: shown(place), ended }
    }
}

/// A record in words.
struct Line {
    /// The session that says it.
    whose: Option<String>,
    /// It is the result of a call that its reply waited for.
    is_result: bool,
    text: String,
}

async fn log(place: &Place) -> Vec<String> {
    let store = &place.world.store;
    let query = ConversationQuery { include_internal: true, ..conversation_query() };
    let found = Conversations::list(store, &query).await.expect("no faults are scripted");
    let mut ids: Vec<String> = found.into_iter().map(|one| one.conversation_id.to_string()).collect();
    ids.sort();
    let mut all = Vec::new();
    for id in ids {
        let rows = Conversations::log(store, &log_query(&id)).await.expect("no faults are scripted");
        gapless(&rows);
        let mut lines: Vec<Line> = rows.iter().filter_map(|row| line(place.script, row)).collect();
        // Sessions speak at the same time, so each is told by itself. Results of one reply come in any order.
        lines.sort_by(|one, other| one.whose.cmp(&other.whose));
        for together in lines.chunk_by_mut(|one, next| one.is_result && next.is_result && one.whose == next.whose) {
            together.sort_by(|one, other| one.text.cmp(&other.text));
        }
        all.extend(lines.into_iter().map(|line| timeless(&format!("{id}: {}", line.text))));
    }
    all
}

fn line(script: &Script, row: &LogRow) -> Option<Line> {
    let record = &row.record;
    let body = record.body.to_value();
    let is_once = body["tool_call_id"].as_str().is_some_and(|call| script.is_once(call));
    let detail = match record.kind {
        LogKind::Message => json!([body["sender_type"], body["text"]]),
        LogKind::Move => json!([body["move"], body["reasoning"], body["tool_calls"], body["in_background"]]),
        LogKind::ToolResult | LogKind::AsyncResult => script.result(&body),
        // Beside a result in doubt.
        LogKind::Event if is_once && body["type"] == "tool.failed" => return None,
        LogKind::Event => body["type"].clone(),
        LogKind::Note | LogKind::Summary => body,
        LogKind::Assembly | LogKind::ProviderCall => Value::Null,
    };
    Some(Line {
        whose: record.session_id.as_ref().map(ToString::to_string),
        is_result: record.kind == LogKind::ToolResult,
        text: format!("{} {} {detail}", record.kind.as_str(), record.id),
    })
}

/// A move that is asked for again is asked for with the same words.
fn shown(place: &Place) -> Vec<String> {
    let mut moves: BTreeMap<String, String> = BTreeMap::new();
    for call in place.models.asked() {
        let words = place.script.words(&call);
        let before = moves.insert(call.id.clone(), words.clone());
        assert!(before.as_ref().is_none_or(|before| *before == words), "{}:\n{words}\nafter {before:?}", call.id);
    }
    moves.into_iter().map(|(id, words)| timeless(&format!("{id}: {words}"))).collect()
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

/// Sessions, and what people answered, or the default for them.
fn sessions(world: &World) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for row in world.store.all_sessions() {
        let (status, reason, steps) = (row.head.status, row.head.stop_reason, row.head.steps);
        lines.push(format!("session {} is {status:?} {reason:?} after {steps} steps", row.key));
    }
    let actions = world.store.all_actions().into_iter();
    let answers = actions.filter(|rec| [person::NAME, APPROVER].contains(&rec.asked.actor.as_str()));
    lines.extend(answers.map(|rec| format!("{} came to {:?}", rec.action_id, rec.outcome)));
    lines
}

/// One of each turn and of each summary, however often it was made.
pub async fn memories(place: &Place) -> Vec<String> {
    let mut lines = Vec::new();
    for agent in place.script.agents {
        let owner = MemoryOwner { namespace: Namespace::default_ns(), agent_id: agent_id(agent) };
        let query = MemoryListQuery { filter: MemoryFilter::default(), after: None, limit: MEMORIES_MAX };
        let page = Memories::list(&place.world.store, &owner, &query).await.expect("no faults are scripted");
        for one in page.rows {
            // The id of a summary hangs on the times of what it stands for.
            let id = if one.kind == SUMMED_UP { SUMMED_UP } else { one.id.as_str() };
            lines.push(timeless(&format!("{agent} keeps {id} v{}: {}", one.version, one.content)));
        }
    }
    lines.sort();
    lines
}

/// A text without its times, which are those of the run.
fn timeless(text: &str) -> String {
    let (mut told, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let is_time = begins_with_time(rest);
        if is_time {
            told.push_str("(a time)");
        } else {
            told.push(c);
        }
        rest = &rest[if is_time { TIME.len() } else { c.len_utf8() }..];
    }
    told
}

/// A time as `domain::time` writes it; a 0 stands for any digit.
const TIME: &str = "0000-00-00T00:00:00.000Z";

fn begins_with_time(text: &str) -> bool {
    let is_like = |(c, form): (char, char)| if form == '0' { c.is_ascii_digit() } else { c == form };
    text.get(..TIME.len()).is_some_and(|start| start.chars().zip(TIME.chars()).all(is_like))
}
