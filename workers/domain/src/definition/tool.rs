//! Tools.

use schemas::definition::DefinitionKind;
use schemas::id::DefinitionId;
use schemas::limits::{APPROVAL_S_MAX, ATTEMPTS_MAX, DESCRIPTION_BYTES_MAX, OPERATION_MS_MAX, RETRY_DELAY_MS_MAX};
use serde_json::Value;

use super::{Found, mapping, parts, schema};
use crate::action::fields::{Object, Problems};

const FIELDS: &[&str] = &[
    "id",
    "name",
    "description",
    "library_id",
    "project_id",
    "input_schema",
    "target_type",
    "target_id",
    "async",
    "invocation_mode",
    "input_mapping",
    "retry",
    "effect_class",
    "requires_approval",
];
/// What every provider takes as the name of a function.
pub(super) const NAME_CHARS_MAX: usize = 64;
/// Names of what is built in (SPEC A-TOOL-10, W-TOOL-14). A model cannot say the dot of `memory.`,
/// so its other spelling is reserved as well.
const RESERVED: [&str; 2] = ["execute_code", "compact_context"];
const RESERVED_PREFIXES: [&str; 2] = ["memory.", "memory_"];
pub(super) const EFFECT_CLASSES: [&str; 4] = ["pure", "idempotent", "probeable", "at_most_once"];

pub(super) fn check(object: &Object<'_>, found: &mut Found) {
    let problems = &mut found.problems;
    object.refuse_unknown(FIELDS, problems);
    name(object, problems);
    if parts::required(object, "description", "when to use it, in words for the model", problems) {
        parts::prose(object, "description", DESCRIPTION_BYTES_MAX, problems);
    }
    input_schema(object, problems);
    parts::owner(object, found);
    target(object, found);
    let problems = &mut found.problems;
    mapping::fields(object, "input_mapping", object.get("input_schema"), problems);
    let retried = object.object("retry", problems);
    retry(&retried, problems);
    once(object, &retried, problems);
    parts::choice(object, "effect_class", &EFFECT_CLASSES, problems);
    let approval = object.object("requires_approval", problems);
    approval.refuse_unknown(&["expires_s", "default"], problems);
    approval.whole("expires_s", 1, APPROVAL_S_MAX, problems);
    parts::choice(&approval, "default", &["approve", "deny"], problems);
}

fn name(object: &Object<'_>, problems: &mut Problems) {
    if !parts::required(object, "name", "what the model calls it, as in search_notes", problems) {
        return;
    }
    let Some(name) = object.string("name", problems) else { return };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if RESERVED.contains(&name) || name == "memory" || RESERVED_PREFIXES.iter().any(|start| name.starts_with(start)) {
        problems.add("name", format!("{name:?} is the name of a built-in tool; choose another"));
    } else if name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
        let what = format!("must be 1 to {NAME_CHARS_MAX} letters, digits, _ or -: models are strict about it");
        problems.add("name", what);
    }
}

fn input_schema(object: &Object<'_>, problems: &mut Problems) {
    if !parts::required(object, "input_schema", "a JSON Schema of type object", problems) {
        return;
    }
    let Some(map) = parts::map(object, "input_schema", problems) else { return };
    if map.get("type").and_then(|kind| kind.as_str()) != Some("object") {
        problems.add("input_schema.type", "must be \"object\": models give the input of a tool as an object");
    }
    schema::check("input_schema", map, problems);
}

fn target(object: &Object<'_>, found: &mut Found) {
    let what = "what it runs: task, workflow or agent";
    let kind = match parts::required(object, "target_type", what, &mut found.problems) {
        true => parts::choice(object, "target_type", &["task", "workflow", "agent"], &mut found.problems),
        false => None,
    };
    if parts::required(object, "target_id", "the id of what it runs", &mut found.problems) {
        match kind {
            Some("task") => _ = parts::refer(object, "target_id", DefinitionKind::Task, found),
            Some("agent") => _ = parts::refer(object, "target_id", DefinitionKind::Agent, found),
            _ => _ = object.id::<DefinitionId>("target_id", &mut found.problems),
        }
    }
    let problems = &mut found.problems;
    let mode = parts::choice(object, "invocation_mode", &["delegate", "loop_in"], problems);
    let is_async = object.boolean("async", problems) == Some(true);
    if mode.is_some() && kind.is_some_and(|kind| kind != "agent") {
        problems.add("invocation_mode", "is for tools whose target is an agent; leave it out");
    }
    if mode == Some("loop_in") && is_async {
        problems.add("async", "does not go with loop_in: the agent joins at once; leave async out");
    }
}

fn retry(object: &Object<'_>, problems: &mut Problems) {
    object.refuse_unknown(&["max_attempts", "backoff_ms", "timeout_ms"], problems);
    object.whole("max_attempts", 1, ATTEMPTS_MAX, problems);
    object.whole("backoff_ms", 0, RETRY_DELAY_MS_MAX, problems);
    object.whole("timeout_ms", 1, OPERATION_MS_MAX, problems);
}

/// Whoever called an agent may call it again; nobody does so for them.
fn once(object: &Object<'_>, retry: &Object<'_>, problems: &mut Problems) {
    let is_agent = object.get("target_type").and_then(Value::as_str) == Some("agent");
    if is_agent && retry.get("max_attempts").and_then(Value::as_u64).is_some_and(|attempts| attempts > 1) {
        let what = "must be 1 where an agent is called: it is not called again by itself, and its caller, who is told \
                    how it failed, decides; leave it out";
        problems.add("retry.max_attempts", what);
    }
}
