//! Defaults that mean something else when somebody writes them down. Contents have their defaults filled in, and keep
//! the hashes that they always had; beside a default that is its author's word, `chosen` says so. Who reads a content
//! back is shown neither `chosen` nor the others of these defaults, so that writing it again changes nothing.

use schemas::definition::{Chosen, DefinitionKind, EffectClass, ToolRetry};
use schemas::json::Json;
use serde_json::{Value, json};

use crate::action::hash;
use crate::tool::default_method;

const FIELD: &str = "chosen";

/// A stored content as its author may send it again.
pub fn shown(kind: DefinitionKind, content: &Json) -> Json {
    match kind {
        DefinitionKind::Tool | DefinitionKind::ActionDef => {
            Json::lenient(&hash::canonical(&without_unsaid(kind, content.to_value())))
        }
        _ => content.clone(),
    }
}

/// What an author sent, with a note of the defaults that are their own word.
pub(super) fn noted(kind: DefinitionKind, mut value: Value) -> Value {
    let told = telling(kind, &value);
    let chosen = Chosen {
        effect_class: told.effect_class && has_default_class(&value),
        timeout_ms: told.timeout_ms && has_default_timeout(&value),
    };
    if !chosen.is_empty() {
        value[FIELD] = json!(chosen);
    }
    value
}

/// The same as [`shown`] of a value.
pub(super) fn without_unsaid(kind: DefinitionKind, mut value: Value) -> Value {
    let told = telling(kind, &value);
    let (has_class, has_timeout) = (has_default_class(&value), has_default_timeout(&value));
    // Left out, it would be filled in as `pure`: whoever wrote it before that was so may have meant it.
    let is_filled_in_again = !only_reads(&value);
    let noted = remove(&mut value, FIELD).and_then(|noted| serde_json::from_value(noted).ok());
    let chosen: Chosen = noted.unwrap_or_default();
    if told.effect_class && has_class && is_filled_in_again && !chosen.effect_class {
        remove(&mut value, "effect_class");
    }
    // The class of what it is now, and not of what its author may make of it.
    if kind == DefinitionKind::ActionDef && !is_filled_in_again && value["effect_class"] == json!(EffectClass::Pure) {
        remove(&mut value, "effect_class");
    }
    if told.timeout_ms && has_timeout && !chosen.timeout_ms {
        remove(&mut value["retry"], "timeout_ms");
    }
    value
}

fn remove(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut().and_then(|fields| fields.remove(field))
}

/// Of which fields a content tells whether somebody wrote them down: an agent that is called has its time and no
/// class; whatever else a tool or an action runs has a class. Its minute gives way to any other time, whoever wrote it:
/// noted, it would count in all files that an earlier release exported.
fn telling(kind: DefinitionKind, value: &Value) -> Chosen {
    let is_agent = value["target_type"] == "agent";
    match kind {
        DefinitionKind::Tool => Chosen { effect_class: !is_agent, timeout_ms: is_agent },
        DefinitionKind::ActionDef => Chosen { effect_class: true, timeout_ms: false },
        _ => Chosen::default(),
    }
}

fn has_default_class(value: &Value) -> bool {
    value["effect_class"] == json!(EffectClass::default())
}

fn has_default_timeout(value: &Value) -> bool {
    value["retry"]["timeout_ms"] == json!(ToolRetry::default().timeout_ms)
}

/// Whether an action is a request that only reads, as its method says (RFC 9110, 9.2.1).
pub(super) fn only_reads(action: &Value) -> bool {
    let config = &action["config"];
    let reads = match &config["method"] {
        Value::Null => default_method(!config["body"].is_null()) == "GET",
        method => method == "GET",
    };
    reads && action["kind"] == "http"
}

#[cfg(test)]
mod tests {
    use super::super::tests::{least, with};
    use super::super::{Checked, check};
    use super::*;

    fn written(kind: DefinitionKind, value: &Value) -> Checked {
        check(kind, value).expect("it is sound")
    }

    /// Holds a content against what is read back of it: writing that again must change nothing.
    fn read_back(kind: DefinitionKind, content: &Json) -> Value {
        let read = shown(kind, content).to_value();
        assert_eq!(read.get(FIELD), None, "nobody is shown that");
        assert_eq!(written(kind, &read).new.content.as_str(), content.as_str(), "{read}");
        read
    }

    fn agent(retry: Value) -> Value {
        let mut tool = with(DefinitionKind::Tool, "target_type", json!("agent"));
        tool["retry"] = retry;
        tool
    }

    #[test]
    fn what_nobody_wrote_down_is_stored_as_ever_and_not_shown() {
        let tool = written(DefinitionKind::Tool, &least(DefinitionKind::Tool));
        let stored = json!({"id": "search", "name": "search", "description": "Search.", "library_id": "core",
            "input_schema": {"type": "object"}, "target_type": "task", "target_id": "find", "async": false,
            "retry": {"max_attempts": 1, "backoff_ms": 1_000, "timeout_ms": 60_000}, "effect_class": "at_most_once"});
        assert_eq!(tool.new.content.as_str(), hash::canonical(&stored), "else each tool would be a new version");
        let read = read_back(DefinitionKind::Tool, &tool.new.content);
        assert_eq!((read.get("effect_class"), &read["retry"]["timeout_ms"]), (None, &json!(60_000)));
        let action = written(DefinitionKind::ActionDef, &least(DefinitionKind::ActionDef)).new.content;
        assert_eq!(action.to_value()["effect_class"], "at_most_once");
        assert_eq!(read_back(DefinitionKind::ActionDef, &action).get("effect_class"), None);
        let asked = written(DefinitionKind::Tool, &agent(json!({}))).new.content;
        assert_eq!(asked.to_value()["retry"]["timeout_ms"], 60_000);
        let read = read_back(DefinitionKind::Tool, &asked);
        assert_eq!((read["retry"].get("timeout_ms"), &read["effect_class"]), (None, &json!("at_most_once")));
    }

    #[test]
    fn a_default_that_somebody_wrote_down_is_another_content_where_it_matters() {
        let said = json!("at_most_once");
        for kind in [DefinitionKind::Tool, DefinitionKind::ActionDef] {
            let plain = written(kind, &least(kind)).new;
            let chosen = written(kind, &with(kind, "effect_class", said.clone())).new;
            assert_ne!(chosen.content_hash, plain.content_hash, "{kind:?}");
            assert_eq!(read_back(kind, &chosen.content)["effect_class"], said, "{kind:?}");
            let other = written(kind, &with(kind, "effect_class", json!("idempotent"))).new;
            assert_eq!(read_back(kind, &other.content)["effect_class"], "idempotent", "{kind:?}");
        }
        let hash = |value: &Value| written(DefinitionKind::Tool, value).new.content_hash;
        let minute = agent(json!({"timeout_ms": 60_000}));
        assert_ne!(hash(&minute), hash(&agent(json!({}))));
        let minute = written(DefinitionKind::Tool, &minute).new.content;
        assert_eq!(read_back(DefinitionKind::Tool, &minute)["retry"]["timeout_ms"], 60_000);
        // A machine has a minute, and an agent no class, whoever says so.
        let plain = hash(&least(DefinitionKind::Tool));
        assert_eq!(hash(&with(DefinitionKind::Tool, "retry", json!({"timeout_ms": 60_000}))), plain);
        let mut asked = agent(json!({}));
        asked["effect_class"] = said;
        assert_eq!(hash(&asked), hash(&agent(json!({}))));
    }

    #[test]
    fn what_an_earlier_release_stored_of_a_request_that_reads_is_shown_as_it_is() {
        let read = json!({"id": "page", "name": "Page", "library_id": "core", "kind": "http", "operation": "request",
                          "config": {"url": "https://example.org"}});
        let new = written(DefinitionKind::ActionDef, &read).new.content;
        assert_eq!(
            read_back(DefinitionKind::ActionDef, &new).get("effect_class"),
            None,
            "it may become one that writes"
        );
        let mut stored = new.to_value();
        assert_eq!(stored["effect_class"], "pure");
        stored["effect_class"] = json!("at_most_once");
        let shown = shown(DefinitionKind::ActionDef, &Json::of(&stored)).to_value();
        assert_eq!(shown["effect_class"], "at_most_once");
    }

    #[test]
    fn nobody_sends_the_note() {
        for kind in [DefinitionKind::Tool, DefinitionKind::ActionDef] {
            let sent = with(kind, FIELD, json!({"effect_class": true}));
            let problems = check(kind, &sent).expect_err("it is no field of theirs");
            assert_eq!(problems[0].field, FIELD);
        }
    }
}
