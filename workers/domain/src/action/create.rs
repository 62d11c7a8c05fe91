//! `create`: a new session of an agent, running one moniker.

use schemas::id::{AgentId, ConversationId, SessionId};
use schemas::json::Json;
use schemas::limits::{LOOP_INTERVAL_MS_MAX, RUNTIME_S_MAX, STEPS_MAX};
use schemas::problem::Code;
use schemas::session::{NewSession, SessionSpec};
use serde_json::{Map, Value};

use super::ParseContext;
use super::fields::{self, Object, Problems};
use crate::moniker::{self, Moniker};

/// Fields of the payload (frozen, DESIGN 8).
pub(super) const FIELDS: &[&str] = &[
    "moniker",
    "state",
    "task",
    "config",
    "conversation_id",
    "stop_on_done",
    "max_steps",
    "max_runtime_s",
    "loop_interval_ms",
];

pub(super) fn check(
    payload: &Object<'_>,
    (session_id, agent_id): (Option<SessionId>, Option<AgentId>),
    ctx: &ParseContext,
    problems: &mut Problems,
) -> Option<NewSession> {
    payload.refuse_unknown(FIELDS, problems);
    if let Some(id) = session_id.as_ref().filter(|id| id.is_reserved()) {
        let what = format!("must not be {id:?}: /api/sessions/{id} is a path of its own");
        problems.add("session_id", format!("{what}; choose another, or leave it out to get a fresh one"));
    }
    let moniker = read_moniker(payload, problems);
    let task = payload.string("task", problems);
    let conversation_id = payload.id::<ConversationId>("conversation_id", problems);
    let stop_on_done = payload.boolean("stop_on_done", problems);
    let max_steps = payload.whole("max_steps", 1, STEPS_MAX, problems);
    let max_runtime_s = payload.whole("max_runtime_s", 1, RUNTIME_S_MAX, problems);
    let loop_interval_ms = payload.whole("loop_interval_ms", 0, LOOP_INTERVAL_MS_MAX, problems);
    payload.object("config", problems);
    payload.object("state", problems);
    let moniker = moniker?;
    let state = object_or_empty(payload.get("state"));
    let session_id = session_id.unwrap_or_else(|| ctx.session_id.clone());
    // Who converses does so somewhere: in a conversation of its own, unless it is told where.
    let own = || ConversationId::parse(session_id.as_str()).ok().filter(|_| moniker.talks());
    let conversation_id = conversation_id.or_else(own);
    let spec = SessionSpec {
        moniker: moniker.name().to_owned(),
        task: task.map(str::to_owned),
        config: Json::of(&object_or_empty(payload.get("config"))),
        stop_on_done: stop_on_done.unwrap_or_else(|| moniker.stops_on_done()),
        max_steps,
        max_runtime_ms: max_runtime_s.map(|seconds| seconds * 1_000),
        loop_interval_ms: loop_interval_ms.unwrap_or_else(|| moniker.loop_interval_ms()),
        conversation_id,
        parent: None,
    };
    problems.extend(moniker.check(&spec, &state));
    if !problems.is_empty() {
        return None;
    }
    Some(NewSession {
        session_id,
        agent_id: agent_id.unwrap_or_else(|| ctx.agent_id.clone()),
        state: Json::of(&moniker.initial_state(&spec, state)),
        spec,
        added_by_turn_id: None,
    })
}

fn read_moniker(payload: &Object<'_>, problems: &mut Problems) -> Option<&'static dyn Moniker> {
    let names: Vec<&str> = moniker::ALL.iter().map(|moniker| moniker.name()).collect();
    if !payload.has("moniker") {
        problems.add("payload.moniker", format!("is missing; create needs one of {}", names.join(", ")));
        return None;
    }
    let name = payload.string("moniker", problems)?;
    let found = moniker::find(name);
    if found.is_none() {
        problems.add_as(Code::UnknownMoniker, "payload.moniker", fields::not_one_of(name, &names));
    }
    found
}

fn object_or_empty(value: Option<&Value>) -> Value {
    value.filter(|value| value.is_object()).cloned().unwrap_or_else(|| Value::Object(Map::new()))
}
