//! `native` of an action that asks a model: the whole request in the provider's own shape (SPEC K-31, W-PRV-14).

use schemas::limits::{JSON_DEPTH_MAX, PROMPT_BYTES_MAX};
use serde_json::Value;

use super::{parts, template};
use crate::action::fields::{Object, Problems};
use crate::chat::NativeRequest;

/// What a request of messages is made from, and so says nothing beside one that is whole.
const INSTEAD: [&str; 4] = ["prompt", "prompt_spec_id", "prompt_spec_version", "system_prompt"];
const OUTPUTS: [&str; 2] = ["text", "raw"];
/// With these an answer is told in pieces, or later.
const NOT_WHOLE: [&str; 2] = ["stream", "background"];

/// `config` has `native`.
pub(super) fn check(config: &Object<'_>, problems: &mut Problems) {
    for name in INSTEAD.into_iter().filter(|name| config.has(name)) {
        problems.add(config.path(name), "stands beside native, which is the whole request; leave one of them out");
    }
    parts::choice(config, "output", &OUTPUTS, problems);
    let native = config.object("native", problems);
    if !config.get("native").is_some_and(Value::is_object) {
        return;
    }
    native.refuse_unknown(&["provider", "body"], problems);
    let providers = &NativeRequest::PROVIDERS;
    let mut provider = None;
    if parts::required(&native, "provider", &format!("one of {}", providers.join(", ")), problems) {
        provider = parts::choice(&native, "provider", providers, problems);
    }
    if parts::required(&native, "body", "the request as the provider documents it", problems) {
        body(provider.unwrap_or_default(), &native, problems);
    }
}

/// `config` has no `native`.
pub(super) fn check_absent(config: &Object<'_>, problems: &mut Problems) {
    if config.has("output") {
        problems.add(config.path("output"), "is of native alone; leave it out, and the answer is its text");
    }
}

fn body(provider: &str, native: &Object<'_>, problems: &mut Problems) {
    let body = native.object("body", problems);
    for name in NOT_WHOLE {
        if body.get(name).is_some_and(|wanted| *wanted != Value::Bool(false)) {
            problems.add(body.path(name), "must be left out, or false: an action takes its answer whole");
        }
    }
    let is_filled_in = body.get("model").and_then(Value::as_str).is_some_and(|name| name.contains("{{"));
    if let (Some(given), false) = (native.get("body"), is_filled_in)
        && let Err(why) = (NativeRequest { provider: provider.to_owned(), body: given.clone() }).model()
    {
        problems.add(body.path("model"), why);
    }
    for (name, value) in body.entries() {
        texts(body.path(clip(name)), value, 1, problems);
    }
}

/// Every text within is a template.
fn texts(path: String, value: &Value, depth: usize, problems: &mut Problems) {
    if problems.is_full() {
        return;
    }
    if depth > JSON_DEPTH_MAX {
        problems.add(path, format!("is nested more than {JSON_DEPTH_MAX} levels deep; send flatter data"));
        return;
    }
    match value {
        Value::String(text) if text.len() > PROMPT_BYTES_MAX => {
            let what = format!("is {} bytes long; at most {PROMPT_BYTES_MAX} are allowed", text.len());
            problems.add(path, what);
        }
        Value::String(text) => template::check(path, text, problems),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(format!("{path}[{index}]"), item, depth + 1, problems);
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                texts(format!("{path}.{}", clip(name)), item, depth + 1, problems);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clip(name: &str) -> &str {
    name.char_indices().nth(64).map_or(name, |(end, _)| &name[..end])
}
