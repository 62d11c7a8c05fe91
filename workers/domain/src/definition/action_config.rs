//! The settings of an action, by its kind (SPEC 4.3). Kinds that take what comes are not looked into:
//! their settings are passed on as they are.

use schemas::definition::{ActionKind, DefinitionKind};
use schemas::limits::{
    APPROVAL_S_MAX, ENTRIES_MAX, NAME_BYTES_MAX, OPERATION_MS_MAX, POOL_BYTES_MAX, PROMPT_BYTES_MAX,
};
use serde_json::Value;

use super::{Found, mapping, native, parts, schema, template};
use crate::action::fields::{self, Object, Problems};
use crate::tool::{self, HeaderVariable};

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

pub(super) fn check(kind: ActionKind, operation: &str, config: &Object<'_>, found: &mut Found) {
    match kind {
        ActionKind::Llm if operation == "embed" => embed(config, &mut found.problems),
        ActionKind::Llm => llm(config, found),
        ActionKind::Http => http(config, &mut found.problems),
        ActionKind::Shell => shell(config, &mut found.problems),
        ActionKind::Mock => mock(config, &mut found.problems),
        ActionKind::Context => context(operation, config, &mut found.problems),
        ActionKind::Mcp => mcp(config, &mut found.problems),
        ActionKind::Metric => metric(config, &mut found.problems),
        ActionKind::External => external(config, &mut found.problems),
        ActionKind::Human => human(config, &mut found.problems),
        ActionKind::Code => config.refuse_unknown(&[], &mut found.problems),
        ActionKind::Memory | ActionKind::Repo | ActionKind::Artifact | ActionKind::Vector => {}
    }
}

fn llm(config: &Object<'_>, found: &mut Found) {
    let known =
        ["model_profile_id", "prompt_spec_id", "prompt_spec_version", "prompt", "system_prompt", "native", "output"];
    config.refuse_unknown(&known, &mut found.problems);
    parts::refer(config, "model_profile_id", DefinitionKind::ModelProfile, found);
    if parts::refer(config, "prompt_spec_id", DefinitionKind::PromptSpec, found).is_some() {
        parts::pin(config, "prompt_spec_version", found);
    }
    for name in ["prompt", "system_prompt"] {
        text(config, name, &mut found.problems);
    }
    let problems = &mut found.problems;
    if config.has("native") {
        return native::check(config, problems);
    }
    native::check_absent(config, problems);
    match (config.has("prompt"), config.has("prompt_spec_id")) {
        (false, false) => {
            let what = "is missing; give prompt, prompt_spec_id for one that is shared, or native";
            problems.add(config.path("prompt"), what);
        }
        (true, true) => problems.add(config.path("prompt"), "stands beside prompt_spec_id; leave one of them out"),
        _ => {}
    }
}

/// The model is the one of the fleet's memories: vectors of different models cannot be compared.
fn embed(config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["prompt"], problems);
    if parts::required(config, "prompt", "the text to embed, as in {{input.text}}", problems) {
        text(config, "prompt", problems);
    }
}

fn http(config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["url", "method", "headers", "headers_env", "body", "allow_hosts", "probe"], problems);
    if parts::required(config, "url", "where to, as in https://example.org/{{input.id}}", problems)
        && let Some(url) = text(config, "url", problems)
        && !["http://", "https://", "{{"].iter().any(|start| url.starts_with(start))
    {
        problems.add(config.path("url"), "must begin with https:// or http://");
    }
    allow_hosts(config, problems);
    text(config, "probe", problems);
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
    headers_env(config, &headers, problems);
}

/// Headers whose values are variables of the executors.
fn headers_env(config: &Object<'_>, headers: &Object<'_>, problems: &mut Problems) {
    let named = config.object("headers_env", problems);
    for (name, value) in named.entries().take(ENTRIES_MAX) {
        let wrong = match value.as_str().map(HeaderVariable::parse) {
            Some(Ok(_)) if headers.entries().any(|(other, _)| other.eq_ignore_ascii_case(name)) => {
                "stands in headers, too; leave one of them out".to_owned()
            }
            Some(Ok(_)) => continue,
            Some(Err(why)) => why,
            None => format!("must name a variable, not be {}", fields::kind_of(value)),
        };
        problems.add(named.path(name), wrong);
    }
}

/// A host that the input chooses must be one of a list; a host that is written down is its own list.
fn allow_hosts(config: &Object<'_>, problems: &mut Problems) {
    for (index, value) in parts::list(config, "allow_hosts", ENTRIES_MAX, problems).iter().enumerate() {
        let path = format!("{}[{index}]", config.path("allow_hosts"));
        let host = value.as_str().map(|host| host.strip_prefix("*.").unwrap_or(host));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        match host {
            Some(host) if !host.is_empty() && host.len() <= NAME_BYTES_MAX && host.chars().all(is_plain) => {}
            _ => problems.add(path, "must be a host such as \"api.example.org\", or \"*.example.org\" for all below"),
        }
    }
    let url = config.get("url").and_then(Value::as_str).unwrap_or_default();
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains("{{") && !config.has("allow_hosts") {
        let what = "is missing; the input chooses the host, so list the hosts that it may choose";
        problems.add(config.path("allow_hosts"), what);
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

fn external(config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["pool", "messages", "settings", "expires_s"], problems);
    if parts::required(config, "pool", "the name of the pool whose workers run it", problems)
        && let Some(pool) = config.text("pool", POOL_BYTES_MAX, problems)
        && let Err(why) = tool::pool_name(pool)
    {
        problems.add(config.path("pool"), why);
    }
    config.boolean("messages", problems);
    config.object("settings", problems);
    config.whole("expires_s", 1, APPROVAL_S_MAX, problems);
}

fn human(config: &Object<'_>, problems: &mut Problems) {
    config.refuse_unknown(&["question", "expires_s", "default"], problems);
    text(config, "question", problems);
    config.whole("expires_s", 1, APPROVAL_S_MAX, problems);
    parts::choice(config, "default", &["approve", "deny"], problems);
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
