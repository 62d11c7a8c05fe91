//! Action definitions; their settings by kind are in `action_config`.

use schemas::definition::{ActionKind, RetryPolicy};
use schemas::limits::{ATTEMPTS_MAX, DESCRIPTION_BYTES_MAX, OPERATION_MS_MAX, RETRY_DELAY_MS_MAX};

use super::tool::EFFECT_CLASSES;
use super::{Found, action_config, parts, schema, template};
use crate::action::fields::{Object, Problems};

const FIELDS: &[&str] = &[
    "id",
    "name",
    "description",
    "library_id",
    "project_id",
    "kind",
    "operation",
    "config",
    "input_schema",
    "output_schema",
    "effect_class",
    "execution",
    "idempotency_key",
];

pub(super) fn check(object: &Object<'_>, found: &mut Found) {
    object.refuse_unknown(FIELDS, &mut found.problems);
    parts::labels(object, &mut found.problems);
    parts::owner(object, found);
    if let Some((kind, operation)) = kind(object, &mut found.problems) {
        action_config::check(kind, operation, &object.object("config", &mut found.problems), found);
    }
    let problems = &mut found.problems;
    for name in ["input_schema", "output_schema"] {
        schema::field(object, name, problems);
    }
    parts::choice(object, "effect_class", &EFFECT_CLASSES, problems);
    execution(&object.object("execution", problems), problems);
    if let Some(text) = parts::prose(object, "idempotency_key", DESCRIPTION_BYTES_MAX, problems) {
        template::check("idempotency_key".to_owned(), text, problems);
    }
}

fn kind<'v>(object: &Object<'v>, problems: &mut Problems) -> Option<(ActionKind, &'v str)> {
    let names = ActionKind::ALL.map(ActionKind::as_str);
    let kind = match parts::required(object, "kind", &format!("one of {}", names.join(", ")), problems) {
        true => parts::choice(object, "kind", &names, problems).and_then(ActionKind::parse),
        false => None,
    };
    let known = kind.map(ActionKind::operations).unwrap_or_default();
    let what =
        if known.is_empty() { "an operation of its kind".to_owned() } else { format!("one of {}", known.join(", ")) };
    if !parts::required(object, "operation", &what, problems) {
        return None;
    }
    let operation = parts::choice(object, "operation", if known.is_empty() { return None } else { known }, problems)?;
    Some((kind?, operation))
}

fn execution(object: &Object<'_>, problems: &mut Problems) {
    object.refuse_unknown(&["timeout_ms", "retry_policy"], problems);
    object.whole("timeout_ms", 1, OPERATION_MS_MAX, problems);
    let policy = object.object("retry_policy", problems);
    policy.refuse_unknown(&["max_attempts", "backoff_ms", "retryable_errors"], problems);
    policy.whole("max_attempts", 1, ATTEMPTS_MAX, problems);
    policy.whole("backoff_ms", 0, RETRY_DELAY_MS_MAX, problems);
    parts::choices(&policy, "retryable_errors", &RetryPolicy::ERRORS, problems);
}
