//! Model profiles.

use schemas::limits::{ENTRIES_MAX, NAME_BYTES_MAX};
use serde_json::Value;

use super::{Found, parts};
use crate::action::fields::{self, Object, Problems};
use crate::chat::{extra_header, model_in_address};

const FIELDS: &[&str] = &[
    "id",
    "name",
    "description",
    "provider",
    "model_id",
    "parameters",
    "execution_config",
    "model_max_tokens",
    "cost_per_1k_input_tokens",
    "cost_per_1k_output_tokens",
];
/// No model has a window near this.
const TOKENS_MAX: u64 = 100_000_000;
const COST_MAX: f64 = 1_000_000.0;
const STOP_SEQUENCES_MAX: usize = 16;

pub(super) fn check(object: &Object<'_>, found: &mut Found) {
    let problems = &mut found.problems;
    object.refuse_unknown(FIELDS, problems);
    parts::labels(object, problems);
    let providers = "the name of a provider, as in anthropic or openai, or default for the fleet's own";
    let mut provider = None;
    if parts::required(object, "provider", providers, problems) {
        provider = object.text("provider", NAME_BYTES_MAX, problems);
    }
    if parts::required(object, "model_id", "the provider's name of a model", problems)
        && let Some(model) = object.text("model_id", NAME_BYTES_MAX, problems)
        && let Err(why) = model_in_address(provider.unwrap_or_default(), model)
    {
        problems.add(object.path("model_id"), why);
    }
    let window = object.whole("model_max_tokens", 1, TOKENS_MAX, problems);
    parameters(&object.object("parameters", problems), window, problems);
    headers(&object.object("execution_config", problems).object("headers", problems), problems);
    for price in ["cost_per_1k_input_tokens", "cost_per_1k_output_tokens"] {
        parts::decimal(object, price, 0.0, COST_MAX, problems);
    }
}

/// What is sent beside the body.
fn headers(object: &Object<'_>, problems: &mut Problems) {
    for (name, value) in object.entries().take(ENTRIES_MAX) {
        let told = match value.as_str() {
            Some(text) => extra_header(name, text).map(drop),
            // Of two things that are wrong, the name is told.
            None => {
                extra_header(name, "x").and_then(|_| Err(format!("must be a string, not {}", fields::kind_of(value))))
            }
        };
        if let Err(what) = told {
            let shown: String = name.chars().take(64).collect();
            problems.add(object.path(&shown), what);
        }
    }
}

fn parameters(object: &Object<'_>, window: Option<u64>, problems: &mut Problems) {
    object.refuse_unknown(&["temperature", "max_tokens", "top_p", "stop_sequences"], problems);
    parts::decimal(object, "temperature", 0.0, 2.0, problems);
    parts::decimal(object, "top_p", 0.0, 1.0, problems);
    let max_tokens = object.whole("max_tokens", 1, TOKENS_MAX, problems);
    if let (Some(answer), Some(window)) = (max_tokens, window)
        && answer > window
    {
        let what = format!("is {answer}, more than the whole window (model_max_tokens {window}); lower it");
        problems.add(object.path("max_tokens"), what);
    }
    for (index, value) in parts::list(object, "stop_sequences", STOP_SEQUENCES_MAX, problems).iter().enumerate() {
        if !matches!(value, Value::String(text) if !text.is_empty() && text.len() <= NAME_BYTES_MAX) {
            let path = format!("{}[{index}]", object.path("stop_sequences"));
            problems.add(path, format!("must be a text of 1 to {NAME_BYTES_MAX} bytes"));
        }
    }
}
