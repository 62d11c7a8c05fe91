//! Tasks.

use schemas::definition::DefinitionKind;
use schemas::limits::{ATTEMPTS_MAX, OPERATION_MS_MAX, RETRY_DELAY_MS_MAX, TASK_STEPS_MAX};

use super::{Found, mapping, parts, schema};
use crate::action::fields::{Object, Problems};

const FIELDS: &[&str] = &[
    "id",
    "name",
    "description",
    "library_id",
    "project_id",
    "input_schema",
    "output_schema",
    "steps",
    "retry",
    "timeout_ms",
];
const STEP_FIELDS: &[&str] =
    &["ref", "action_def_id", "action_def_version", "input_mapping", "output_mapping", "on_failure", "condition"];
const OUTCOMES: [&str; 4] = ["continue", "skip", "succeed", "fail"];
const REF_BYTES_MAX: usize = 64;

pub(super) fn check(object: &Object<'_>, found: &mut Found) {
    object.refuse_unknown(FIELDS, &mut found.problems);
    parts::labels(object, &mut found.problems);
    parts::owner(object, found);
    for name in ["input_schema", "output_schema"] {
        schema::field(object, name, &mut found.problems);
    }
    object.whole("timeout_ms", 1, OPERATION_MS_MAX, &mut found.problems);
    retry(&object.object("retry", &mut found.problems), object.has("retry"), &mut found.problems);
    let steps = parts::objects(object, "steps", TASK_STEPS_MAX, &mut found.problems);
    if steps.is_empty() {
        found.problems.add("steps", "is missing; a task has at least one step");
    }
    let mut refs: Vec<&str> = Vec::new();
    for at in &steps {
        step(at, object.has("retry"), found);
        if let Some(name) = reference(at, &mut found.problems) {
            if refs.contains(&name) {
                found.problems.add(at.path("ref"), format!("{name:?} is the ref of another step; choose another"));
            }
            refs.push(name);
        }
    }
}

fn reference<'v>(step: &Object<'v>, problems: &mut Problems) -> Option<&'v str> {
    if !parts::required(step, "ref", "a name of the step, each another one", problems) {
        return None;
    }
    let name = step.string("ref", problems)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > REF_BYTES_MAX || !name.chars().all(is_plain) {
        problems.add(step.path("ref"), format!("must be 1 to {REF_BYTES_MAX} letters, digits, _ or -"));
    }
    Some(name)
}

fn step(object: &Object<'_>, has_retry: bool, found: &mut Found) {
    object.refuse_unknown(STEP_FIELDS, &mut found.problems);
    if parts::required(object, "action_def_id", "the id of the action it runs", &mut found.problems)
        && parts::refer(object, "action_def_id", DefinitionKind::ActionDef, found).is_some()
    {
        parts::pin(object, "action_def_version", found);
    }
    let problems = &mut found.problems;
    mapping::expressions(object, "input_mapping", problems);
    mapping::expressions(object, "output_mapping", problems);
    let on_failure = parts::choice(object, "on_failure", &["abort", "retry", "continue"], problems);
    if on_failure == Some("retry") && !has_retry {
        problems.add(object.path("on_failure"), "retry needs the task's retry, as in {\"max_attempts\": 3}");
    }
    let condition = object.object("condition", problems);
    if object.has("condition") {
        condition.refuse_unknown(&["if", "then", "else"], problems);
        if parts::required(&condition, "if", "an expression, as in input.query", problems)
            && let Some(text) = condition.string("if", problems)
        {
            mapping::expression(condition.path("if"), text, problems);
        }
        parts::choice(&condition, "then", &OUTCOMES, problems);
        parts::choice(&condition, "else", &OUTCOMES, problems);
    }
}

fn retry(object: &Object<'_>, is_there: bool, problems: &mut Problems) {
    if !is_there {
        return;
    }
    object.refuse_unknown(&["max_attempts", "backoff", "initial_delay_ms", "max_delay_ms"], problems);
    if parts::required(object, "max_attempts", "how often it is tried at most, the first time included", problems) {
        object.whole("max_attempts", 1, ATTEMPTS_MAX, problems);
    }
    parts::choice(object, "backoff", &["none", "linear", "exponential"], problems);
    let first = object.whole("initial_delay_ms", 0, RETRY_DELAY_MS_MAX, problems).unwrap_or(0);
    let last = object.whole("max_delay_ms", 0, RETRY_DELAY_MS_MAX, problems);
    if last.is_some_and(|last| last < first) {
        problems.add(object.path("max_delay_ms"), format!("is below initial_delay_ms ({first}); raise it"));
    }
}
