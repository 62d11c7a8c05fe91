//! Bulk actions: one verb for all sessions that match a filter.

use schemas::action::ActionType;
use schemas::api::{BulkBody, SessionFilter};
use schemas::id::{ActionId, Namespace, SessionId};
use schemas::json::Json;
use schemas::limits::PAGE_MAX;
use schemas::problem::{Code, Problem};
use schemas::session::SessionStatus;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::fields::{self, Object, Problems};

const FIELDS: &[&str] = &["action", "filter", "payload"];
const FILTER_FIELDS: &[&str] = &["agent_id", "moniker", "status", "conversation_id", "session_ids"];
/// Verbs that make sense for many sessions at once.
const VERBS: &[ActionType] =
    &[ActionType::Pause, ActionType::Resume, ActionType::Interrupt, ActionType::Destroy, ActionType::Input];

/// Checks a bulk body. Its payload is checked per verb as for a single action.
pub fn parse(body: &Value) -> Result<BulkBody, Box<Problem>> {
    let Value::Object(map) = body else {
        let what = format!("must be a JSON object, not {}", fields::kind_of(body));
        return Err(fields::wrong("body", what));
    };
    let mut problems = Problems::default();
    let object = Object::new("", map);
    object.refuse_unknown(FIELDS, &mut problems);
    let action = read_verb(&object, &mut problems);
    if !object.has("filter") {
        problems.add("filter", "is missing; send {} to mean all sessions");
    }
    let filter = read_filter(&object.object("filter", &mut problems), &mut problems);
    let payload = object.object("payload", &mut problems);
    if let Some(kind) = action {
        super::check_payload(kind, &payload, &mut problems);
    }
    problems.into_result()?;
    let action = action.ok_or_else(|| Problem::new(Code::UnknownType, "action is missing"))?;
    Ok(BulkBody { action, filter, payload: object.get("payload").map(Json::of) })
}

fn read_verb(object: &Object<'_>, problems: &mut Problems) -> Option<ActionType> {
    let names: Vec<&str> = VERBS.iter().map(|verb| verb.as_str()).collect();
    if !object.has("action") {
        problems.add_as(Code::UnknownType, "action", format!("is missing; send one of {}", names.join(", ")));
        return None;
    }
    let text = object.string("action", problems)?;
    let verb = ActionType::parse(text).filter(|verb| VERBS.contains(verb));
    if verb.is_none() {
        problems.add_as(Code::UnknownType, "action", fields::not_one_of(text, &names));
    }
    verb
}

fn read_filter(object: &Object<'_>, problems: &mut Problems) -> SessionFilter {
    object.refuse_unknown(FILTER_FIELDS, problems);
    SessionFilter {
        agent_id: object.id("agent_id", problems),
        moniker: object.string("moniker", problems).map(str::to_owned),
        status: read_list(object, "status", problems, read_status),
        conversation_id: object.id("conversation_id", problems),
        session_ids: read_list(object, "session_ids", problems, |text| {
            SessionId::parse(text).map_err(|error| error.to_string())
        }),
    }
}

/// Reads a status name as filters have it.
pub fn read_status(text: &str) -> Result<SessionStatus, String> {
    let names = SessionStatus::ALL.map(SessionStatus::as_str);
    SessionStatus::parse(text).ok_or_else(|| fields::not_one_of(text, &names))
}

fn read_list<T>(
    object: &Object<'_>,
    name: &str,
    problems: &mut Problems,
    read: impl Fn(&str) -> Result<T, String>,
) -> Vec<T> {
    let Some(value) = object.get(name) else { return Vec::new() };
    let Some(items) = value.as_array() else {
        problems.add(object.path(name), format!("must be an array of strings, not {}", fields::kind_of(value)));
        return Vec::new();
    };
    // An empty list could be read as "none" or as "any"; both readings have surprised people.
    if items.is_empty() {
        problems.add(object.path(name), "must not be empty; leave it out to match any");
    }
    if items.len() > PAGE_MAX {
        problems.add(object.path(name), format!("has {} entries; at most {PAGE_MAX} are allowed", items.len()));
        return Vec::new();
    }
    let mut read_items = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item.as_str().ok_or_else(|| "must be a string".to_owned()).and_then(&read) {
            Ok(item) => read_items.push(item),
            Err(message) => problems.add(format!("{}[{index}]", object.path(name)), message),
        }
    }
    read_items
}

/// The statuses that a verb can change, for a filter that names none.
pub fn default_statuses(verb: ActionType) -> Vec<SessionStatus> {
    use SessionStatus::{Error, Paused, Running, Starting, Stopping};
    match verb {
        ActionType::Destroy => vec![Starting, Running, Paused, Stopping, Error],
        _ => vec![Starting, Running, Paused],
    }
}

/// The action id of one member of a bulk action: the same for the same key and session, so that
/// a repeat of the whole is harmless.
pub fn member_id(namespace: &Namespace, key: &ActionId, verb: ActionType, session: &SessionId) -> ActionId {
    let digest = Sha256::digest(format!("{namespace}/{key}/{}/{session}", verb.as_str()));
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    ActionId::parse(&format!("bulk-{hex}")).expect("hex digits are of the alphabet of ids")
}
