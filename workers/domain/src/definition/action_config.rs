//! The settings of an action, by its kind (SPEC 4.3). Kinds that take what comes are not looked into:
//! their settings are passed on as they are.

use schemas::definition::{ActionKind, DefinitionKind};
use schemas::limits::{ENTRIES_MAX, NAME_BYTES_MAX, OPERATION_MS_MAX, PROMPT_BYTES_MAX};
use serde_json::Value;

use super::{Found, mapping, parts, schema, template};
use crate::action::fields::{self, Object, Problems};

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

pub(super) fn check(kind: ActionKind, operation: &str, config: &Object<'_>, found: &mut Found) {
    match kind {
        ActionKind::Llm => llm(operation, config, found),
        ActionKind::Http => http(config, &mut found.problems),
        ActionKind::Shell => shell(config, &mut found.problems),
        ActionKind::Mock => mock(config, &mut found.problems),
        ActionKind::Context => context(operation, config, &mut found.problems),
        ActionKind::Mcp => mcp(config, &mut found.problems),
        ActionKind::Metric => metric(config, &mut found.problems),
        ActionKind::Memory | ActionKind::Repo | ActionKind::Artifact | ActionKind::Human | ActionKind::Vector => {}
    }
}

fn llm(operation: &str, config: &Object<'_>, found: &mut Found) {
    let known = ["model_profile_id", "prompt_spec_id", "prompt_spec_version", "prompt", "system_prompt"];
    config.refuse_unknown(&known, &mut found.problems);
    parts::refer(config, "model_profile_id", DefinitionKind::ModelProfile, found);
    if parts::refer(config, "prompt_spec_id", DefinitionKind::PromptSpec, found).is_some() {
        parts::pin(config, "prompt_spec_version", found);
    }
    for name in ["prompt", "system_prompt"] {
        text(config, name, &mut found.problems);
    }
    let problems = &mut found.problems;
    match (config.has("prompt"), config.has("prompt_spec_id")) {
        (false, false) if operation == "generate" => {
            problems.add(config.path("prompt"), "is missing; give prompt, or prompt_spec_id for one that is shared");
        }
        (true, true) => problems.add(config.path("prompt"), "stands beside prompt_spec_id; leave one of them out"),
        _ => {}
    }
}

fn http(config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["url", "method", "headers", "body"], problems);
    if parts::required(config, "url", "where to, as in https://example.org/{{input.id}}", problems)
        && let Some(url) = text(config, "url", problems)
        && !["http://", "https://", "{{"].iter().any(|start| url.starts_with(start))
    {
        problems.add(config.path("url"), "must begin with https:// or http://");
    }
    parts::choice(config, "method", &METHODS, problems);
    let headers = config.object("headers", problems);
    for (name, value) in parts::map(config, "headers", problems).into_iter().flatten().take(ENTRIES_MAX) {
        match value.as_str() {
            Some(value) if value.len() > PROMPT_BYTES_MAX => problems.add(
                headers.path(name),
                format!("is {} bytes long; at most {PROMPT_BYTES_MAX} are allowed", value.len()),
            ),
            Some(value) => template::check(headers.path(name), value, problems),
            None => problems.add(headers.path(name), format!("must be a string, not {}", fields::kind_of(value))),
        }
    }
}

fn shell(config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["command", "working_directory"], problems);
    if parts::required(config, "command", "the command line, as in cargo test {{input.package}}", problems) {
        text(config, "command", problems);
    }
    text(config, "working_directory", problems);
}

fn mock(config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["output", "schema", "seed", "delay_ms", "error"], problems);
    schema::field(config, "schema", problems);
    config.whole("seed", 0, u64::MAX, problems);
    let delay = config.object("delay_ms", problems);
    delay.refuse_unknown(&["min", "max"], problems);
    let min = delay.whole("min", 0, OPERATION_MS_MAX, problems).unwrap_or(0);
    let max = delay.whole("max", 0, OPERATION_MS_MAX, problems);
    if max.is_some_and(|max| max < min) {
        problems.add(delay.path("max"), format!("is below min ({min}); raise it"));
    }
    let error = config.object("error", problems);
    error.refuse_unknown(&["code", "message", "retryable"], problems);
    error.text("code", NAME_BYTES_MAX, problems);
    text(&error, "message", problems);
    error.boolean("retryable", problems);
}

fn context(operation: &str, config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["fields", "schema"], problems);
    mapping::expressions(config, "fields", problems);
    schema::field(config, "schema", problems);
    if operation == "validate" {
        parts::required(config, "schema", "the JSON Schema to check the input by", problems);
    }
}

fn mcp(config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["server", "tool"], problems);
    for (name, what) in [("server", "the name of a configured server"), ("tool", "the name of one of its tools")] {
        if parts::required(config, name, what, problems) {
            config.text(name, NAME_BYTES_MAX, problems);
        }
    }
}

fn metric(config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["name", "type", "labels"], problems);
    if parts::required(config, "name", "the name of the metric", problems) {
        config.text("name", NAME_BYTES_MAX, problems);
    }
    parts::choice(config, "type", &["counter", "gauge"], problems);
    for (name, value) in parts::map(config, "labels", problems).into_iter().flatten().take(ENTRIES_MAX) {
        if !matches!(value, Value::String(_)) {
            let path = config.object("labels", problems).path(name);
            problems.add(path, format!("must be a string, not {}", fields::kind_of(value)));
        }
    }
}

/// A templated text.
fn text<'v>(object: &Object<'v>, name: &str, problems: &mut Problems) -> Option<&'v str> {
    let text = parts::prompt(object, name, problems)?;
    template::check(object.path(name), text, problems);
    Some(text)
}
