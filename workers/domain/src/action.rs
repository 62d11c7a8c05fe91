//! Actions as callers send them, checked field by field: one file per verb.
//!
//! [`parse`] collects every problem of a body before it answers, so that a caller mends them all
//! at once. It is pure: fresh ids and the default actor come in with [`ParseContext`].

pub mod bulk;
pub mod fields;
pub mod foreign;
pub mod hash;
pub mod lift;

mod create;
mod destroy;
mod input;
mod interrupt;
mod pause;
mod reason;
mod resume;
mod tool_result;

#[cfg(test)]
mod tests;

use schemas::action::{ActionType, NewAction, Urgency};
use schemas::id::{ActionId, AgentId, Namespace, SessionId};
use schemas::json::{Json, is_too_deep};
use schemas::limits::ACTION_BYTES_MAX;
use schemas::problem::{Code, FieldProblem, Problem};
use serde_json::{Map, Value};

use crate::tool::APPROVER;
use fields::{Object, Problems};
pub use interrupt::MODE_NOW;
pub use tool_result::{Failed, failure_of, result_of};

/// The fields of an action (frozen, DESIGN 8).
pub const ENVELOPE: &[&str] =
    &["type", "action_id", "session_id", "agent_id", "payload", "metadata", "urgency", "actor"];

/// Before the id of a session that acts: its pauses end with its own, and no person's do.
pub(crate) const SESSION_ACTOR: &str = "session:";

/// Whether this is one as whom the fleet itself acts, and nobody else may.
pub fn is_reserved_actor(actor: &str) -> bool {
    actor.starts_with(SESSION_ACTOR) || actor == APPROVER
}

/// What a body is read with. The ids are fresh; each is used where the caller gave none.
#[derive(Debug, Clone)]
pub struct ParseContext {
    pub namespace: Namespace,
    /// Who acts, unless the body names somebody.
    pub actor: String,
    pub action_id: ActionId,
    pub session_id: SessionId,
    pub agent_id: AgentId,
    /// The header `Idempotency-Key`, which is another place for `action_id`.
    pub idempotency_key: Option<String>,
}

/// Checks a whole action. The error names every wrong field.
pub fn parse(body: &Value, ctx: ParseContext) -> Result<NewAction, Box<Problem>> {
    let Value::Object(map) = body else {
        let what = format!("must be a JSON object such as {{\"type\": \"pause\", …}}, not {}", fields::kind_of(body));
        return Err(fields::wrong("body", what));
    };
    if is_too_deep(body) {
        return Err(fields::too_deep("body"));
    }
    let hashed = hash::body(map);
    if hashed.bytes > ACTION_BYTES_MAX {
        return Err(too_large(map, hashed.bytes));
    }
    let mut problems = Problems::default();
    let object = Object::new("", map);
    object.refuse_unknown(ENVELOPE, &mut problems);
    let envelope = Envelope::read(&object, &ctx, &mut problems);
    let payload = object.object("payload", &mut problems);
    let session = match envelope.kind {
        Some(ActionType::Create) => {
            let ids = (envelope.session_id.clone(), envelope.agent_id.clone());
            create::check(&payload, ids, &ctx, &mut problems)
        }
        Some(kind) => {
            let has_target = object.has("session_id") || object.has("agent_id");
            // Whoever ends an operation need not know who waits for it.
            let has_operation = kind == ActionType::ToolResult && tool_result::names_operation(&payload);
            if !(has_target || has_operation) {
                let verb = kind.as_str();
                problems.add("session_id", format!("{verb} needs session_id, or agent_id for its newest session"));
            }
            check_payload(kind, &payload, &mut problems);
            None
        }
        None => None,
    };
    problems.into_result()?;
    let kind = envelope.kind.ok_or_else(|| Problem::new(Code::UnknownType, "type is missing"))?;
    let session_id = session.as_ref().map(|new| new.session_id.clone()).or(envelope.session_id);
    let agent_id = session.as_ref().map(|new| new.agent_id.clone()).or(envelope.agent_id);
    Ok(NewAction {
        namespace: ctx.namespace,
        action_id: envelope.action_id.unwrap_or(ctx.action_id),
        kind,
        session_id,
        agent_id,
        urgency: envelope.urgency,
        actor: envelope.actor.unwrap_or(ctx.actor),
        payload: stored(map.get("payload")),
        metadata: stored(map.get("metadata")),
        body_hash: hashed.sha256,
        session,
        seat: None,
    })
}

fn check_payload(kind: ActionType, payload: &Object<'_>, problems: &mut Problems) {
    match kind {
        ActionType::Create => {}
        ActionType::Input => input::check(payload, problems),
        ActionType::Interrupt => interrupt::check(payload, problems),
        ActionType::Pause => pause::check(payload, problems),
        ActionType::Resume => resume::check(payload, problems),
        ActionType::Destroy => destroy::check(payload, problems),
        ActionType::ToolResult => tool_result::check(payload, problems),
    }
}

/// The part that all verbs share.
struct Envelope {
    kind: Option<ActionType>,
    action_id: Option<ActionId>,
    session_id: Option<SessionId>,
    agent_id: Option<AgentId>,
    urgency: Urgency,
    actor: Option<String>,
}

impl Envelope {
    fn read(object: &Object<'_>, ctx: &ParseContext, problems: &mut Problems) -> Self {
        object.object("metadata", problems);
        Self {
            kind: read_type(object, problems),
            action_id: read_action_id(object, ctx.idempotency_key.as_deref(), problems),
            session_id: object.id("session_id", problems),
            agent_id: object.id("agent_id", problems),
            urgency: read_urgency(object, problems),
            actor: object.actor(problems).map(str::to_owned),
        }
    }
}

fn read_type(object: &Object<'_>, problems: &mut Problems) -> Option<ActionType> {
    let names = ActionType::ALL.map(ActionType::as_str);
    if !object.has("type") {
        problems.add_as(Code::UnknownType, "type", format!("is missing; send one of {}", names.join(", ")));
        return None;
    }
    let text = object.string("type", problems)?;
    let kind = ActionType::parse(text);
    if kind.is_none() {
        problems.add_as(Code::UnknownType, "type", fields::not_one_of(text, &names));
    }
    kind
}

fn read_action_id(object: &Object<'_>, header: Option<&str>, problems: &mut Problems) -> Option<ActionId> {
    let in_body = object.id::<ActionId>("action_id", problems);
    let Some(header) = header else { return in_body };
    let in_header = match ActionId::parse(header) {
        Ok(id) => id,
        Err(error) => {
            problems.add("Idempotency-Key", error.to_string());
            return in_body;
        }
    };
    if in_body.as_ref().is_some_and(|id| *id != in_header) {
        problems
            .add("action_id", "differs from the header Idempotency-Key; send one of them, or the same text in both");
    }
    Some(in_header)
}

fn read_urgency(object: &Object<'_>, problems: &mut Problems) -> Urgency {
    let Some(text) = object.string("urgency", problems) else { return Urgency::default() };
    Urgency::parse(text).unwrap_or_else(|| {
        problems.add("urgency", fields::not_one_of(text, &["low", "normal", "high"]));
        Urgency::default()
    })
}

/// An object as it goes into the ledger; absent is `{}`.
fn stored(value: Option<&Value>) -> Json {
    match value {
        Some(given @ Value::Object(_)) => Json::of(given),
        _ => Json::of(&Map::new()),
    }
}

/// Names the largest field, because that is the one to shorten.
fn too_large(map: &Map<String, Value>, bytes: usize) -> Box<Problem> {
    let mut sizes = Vec::new();
    for (name, value) in map {
        match value {
            Value::Object(inner) if name == "payload" => {
                sizes.extend(inner.iter().map(|(key, value)| (hash::size(value), format!("payload.{key}"))));
            }
            other => sizes.push((hash::size(other), name.clone())),
        }
    }
    let what = format!("the action has {bytes} bytes, at most {ACTION_BYTES_MAX} are allowed");
    Box::new(match sizes.into_iter().max() {
        Some((size, field)) => {
            let hint = format!("has {size} bytes; shorten it, or send a path or URL instead");
            let mut problem = Problem::fields(Code::TooLarge, vec![FieldProblem::new(field, hint)]);
            problem.detail = format!("{what}; {}", problem.detail);
            problem
        }
        None => Problem::new(Code::TooLarge, what),
    })
}
