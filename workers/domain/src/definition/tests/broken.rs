//! One wrong field at a time: it must be named, with what to do.

use schemas::definition::DefinitionKind::{self, *};
use serde_json::{Value, json};

use super::super::check;
use super::{least, with};

/// Checks that exactly this field is refused, with these words.
fn refused(kind: DefinitionKind, value: &Value, field: &str, words: &str) {
    let problems = check(kind, value).expect_err(field);
    let told: Vec<String> = problems.iter().map(|one| format!("{}: {}", one.field, one.message)).collect();
    assert_eq!(problems.len(), 1, "{kind:?} {field}: {told:?}");
    assert!(problems[0].field == field && problems[0].message.contains(words), "{kind:?} {field} {words}: {told:?}");
}

fn set(kind: DefinitionKind, path: &str, value: Value, field: &str, words: &str) {
    refused(kind, &with(kind, path, value), field, words);
}

#[test]
fn ids_names_and_unknown_fields() {
    for kind in DefinitionKind::ALL {
        set(kind, "id", json!("a b"), "id", "allowed are letters");
        set(kind, "id", json!("x".repeat(129)), "id", "at most 128");
        set(kind, "id", Value::Null, "id", "is missing");
        set(kind, "name", Value::Null, "name", "is missing");
        set(kind, "name", json!(" "), "name", "must not be blank; give ");
        set(kind, "nam", json!("x"), "nam", "did you mean \"name\"?");
        set(kind, "description", json!(7), "description", "must be a string");
        assert_eq!(check(kind, &json!([])).expect_err("no object")[0].field, "");
    }
    set(Persona, "sytem_prompt", json!("x"), "sytem_prompt", "did you mean \"system_prompt\"?");
}

#[test]
fn owners() {
    for kind in [PromptSpec, ActionDef, Task, Tool, Persona] {
        set(kind, "library_id", Value::Null, "library_id", "MISSING_OWNER");
        set(kind, "project_id", json!("p1"), "project_id", "MULTIPLE_OWNERS");
    }
}

#[test]
fn keys_have_no_place() {
    set(ModelProfile, "api_key", json!("x"), "api_key", "keys never live in definitions");
    set(ModelProfile, "execution_config", json!({"apiKey": "x"}), "execution_config.apiKey", "keys never live");
    let key = concat!("sk", "-ant-0123456789abcdefghij");
    set(Persona, "instructions", json!(key), "instructions", "holds what looks like a key");
    let http = json!({"url": "https://a.b", "headers": {"Authorization": "x"}});
    let mut action = with(ActionDef, "kind", json!("http"));
    action["operation"] = json!("request");
    action["config"] = http;
    refused(ActionDef, &action, "config.headers.Authorization", "headers_env");
    // What names a variable is none; what stands for one must not be a key.
    let named = |value: Value| json!({"url": "https://a.b", "headers_env": {"Authorization": value}});
    for name in ["CRM_TOKEN", "Bearer CRM_TOKEN", "Bearer CRM_PRODUCTION_ACCESS_TOKEN"] {
        action["config"] = named(json!(name));
        assert!(check(ActionDef, &action).is_ok(), "{name}");
    }
    for text in [key, concat!("AKI", "A0123456789ABCDEF"), "Bearer 0123456789abcdefghijk"] {
        action["config"] = named(json!(text));
        refused(ActionDef, &action, "config.headers_env.Authorization", "holds what looks like a key");
    }
    // A tool may ask for one: that is the schema's business, not ours.
    let asks = json!({"type": "object", "properties": {"password": {"type": "string"}}});
    assert!(check(Tool, &with(Tool, "input_schema", asks)).is_ok());
}

#[test]
fn tools() {
    for name in ["execute_code", "compact_context", "memory.search", "memory_write", "memory"] {
        set(Tool, "name", json!(name), "name", "built-in");
    }
    for name in ["a b", "a.b", &"x".repeat(65)] {
        set(Tool, "name", json!(name), "name", "letters, digits");
    }
    set(Tool, "description", Value::Null, "description", "is missing");
    set(Tool, "input_schema", json!({"type": "array"}), "input_schema.type", "must be \"object\"");
    set(Tool, "input_schema", json!({"type": "object", "$ref": "x"}), "input_schema.$ref", "not a supported keyword");
    set(Tool, "target_type", json!("tasks"), "target_type", "did you mean \"task\"?");
    set(Tool, "invocation_mode", json!("loop_in"), "invocation_mode", "target is an agent");
    set(Tool, "retry", json!({"max_attempts": 0}), "retry.max_attempts", "from 1 to 20");
    set(Tool, "retry", json!({"timeoutMs": 1}), "retry.timeoutMs", "did you mean \"timeout_ms\"?");
    set(Tool, "effect_class", json!("maybe"), "effect_class", "is none of pure");
    set(Tool, "requires_approval", json!({"default": "yes"}), "requires_approval.default", "is none of approve, deny");
    set(Tool, "requires_approval", json!({"expires_s": 0}), "requires_approval.expires_s", "whole number");
    let mut joins = with(Tool, "target_type", json!("agent"));
    joins["invocation_mode"] = json!("loop_in");
    assert!(check(Tool, &joins).is_ok());
    joins["async"] = json!(true);
    refused(Tool, &joins, "async", "loop_in");
    let mut asks = with(Tool, "target_type", json!("agent"));
    asks["retry"] = json!({"max_attempts": 1, "timeout_ms": 5_000});
    assert!(check(Tool, &asks).is_ok());
    asks["retry"]["max_attempts"] = json!(2);
    refused(Tool, &asks, "retry.max_attempts", "must be 1 where an agent is called");
    // Told once, for what is wrong with it.
    asks["retry"]["max_attempts"] = json!(0);
    refused(Tool, &asks, "retry.max_attempts", "from 1 to 20");
}

#[test]
fn input_mappings() {
    set(Tool, "input_mapping", json!(["a"]), "input_mapping", "must be an object");
    set(Tool, "input_mapping", json!({"q": 1}), "input_mapping.q", "must name a field");
    set(Tool, "input_mapping", json!({"q": "a..b"}), "input_mapping.q", "no field of the input");
    set(Tool, "input_mapping", json!({"q q": "a"}), "input_mapping.q q", "no field of a target");
    let schema = json!({"type": "object", "properties": {"query": {}}, "additionalProperties": false});
    let mut tool = with(Tool, "input_schema", schema);
    tool["input_mapping"] = json!({"q": "qeury.text"});
    refused(Tool, &tool, "input_mapping.q", "did you mean \"query\"?");
    tool["input_mapping"] = json!({"q": "query.text", "r": "$.query", "s": "input.query"});
    assert!(check(Tool, &tool).is_ok());
}

#[test]
fn personas_and_agents() {
    set(Persona, "system_prompt", json!(" "), "system_prompt", "must not be blank; give who the model is");
    set(Persona, "instructions", json!(" "), "instructions", "must not be blank; leave it out instead");
    set(Persona, "system_prompt", json!("x".repeat(65_537)), "system_prompt", "at most 65536");
    set(Persona, "model_profile_id", Value::Null, "model_profile_id", "is missing");
    set(Persona, "tool_ids", json!(["search", "search"]), "tool_ids[1]", "twice");
    set(Persona, "tool_ids", json!("search"), "tool_ids", "must be an array");
    set(Persona, "constraints", json!({"allowed_tools": ["x"]}), "constraints.allowed_tools[0]", "not in tool_ids");
    set(
        Persona,
        "constraints",
        json!({"allowed_action_kinds": ["htp"]}),
        "constraints.allowed_action_kinds[0]",
        "http",
    );
    set(Persona, "constraints", json!({"max_moves_per_turn": 0}), "constraints.max_moves_per_turn", "from 1");
    set(Persona, "context_budget", json!(1.5), "context_budget", "from 0.05 to 1");
    set(Persona, "assembly", json!("always"), "assembly", "per_turn, per_call");
    set(Persona, "compaction", json!({"chunk_size": 0}), "compaction.chunk_size", "from 1");
    set(Persona, "compaction", json!({"model_profile": "m"}), "compaction.model_profile", "model_profile_id");
    let profile = "compaction.model_profile_id";
    set(Persona, "compaction", json!({"model_profile_id": "a b"}), profile, "allowed are letters");
    set(Persona, "compaction", json!({"model_profile_id": 7}), profile, "must be a string");
    set(Persona, "busy", json!("ster"), "busy", "did you mean \"steer\"?");
    set(Agent, "project_ids", json!([]), "project_ids", "at least one project");
    set(Agent, "persona_inline", json!({}), "persona_inline", "leave one of them out");
    set(Agent, "persona_ref", json!({}), "persona_ref.persona_id", "is missing");
    set(Agent, "persona_ref", json!({"persona_id": "p", "version": 0}), "persona_ref.version", "from 1");
    set(Agent, "persona_ref", Value::Null, "persona_ref", "is missing");
    let mut inline = with(Agent, "persona_inline", json!({"system_prompt": "x", "model_profile_id": "m", "id": "y"}));
    inline["persona_ref"] = Value::Null;
    refused(Agent, &inline, "persona_inline.id", "not a known field");
}

#[test]
fn branches_of_projects() {
    for name in ["main", "release/2.1", "team/a-b_c"] {
        assert!(check(Project, &with(Project, "default_branch", json!(name))).is_ok(), "{name}");
    }
    for name in ["a b", "-main", "a..b", "a//b", "/a", "a/", "a.lock", "a.", ".a", "a~1", "a:b", "a\\b", "@", "a@{1}"] {
        set(Project, "default_branch", json!(name), "default_branch", "is no name of a branch");
    }
    set(Project, "default_branch", json!(" "), "default_branch", "must not be blank");
}

#[test]
fn profiles_tasks_and_prompts() {
    set(ModelProfile, "parameters", json!({"temperature": 3}), "parameters.temperature", "from 0 to 2, not 3");
    set(ModelProfile, "parameters", json!({"stop_sequences": [""]}), "parameters.stop_sequences[0]", "1 to 128");
    let mut small = with(ModelProfile, "model_max_tokens", json!(10));
    small["parameters"] = json!({"max_tokens": 11});
    refused(ModelProfile, &small, "parameters.max_tokens", "the whole window");
    set(Task, "steps", json!([]), "steps", "at least one step");
    set(Task, "steps.0.ref", json!("a b"), "steps[0].ref", "letters");
    set(Task, "steps.0.on_failure", json!("retry"), "steps[0].on_failure", "needs the task's retry");
    set(Task, "steps.0.input_mapping", json!({"a": 1}), "steps[0].input_mapping.a", "an expression in a string");
    set(Task, "steps.0.condition", json!({"then": "skip"}), "steps[0].condition.if", "is missing");
    set(
        Task,
        "steps",
        json!([{"ref": "a", "action_def_id": "x"}, {"ref": "a", "action_def_id": "x"}]),
        "steps[1].ref",
        "another step",
    );
    set(
        Task,
        "retry",
        json!({"max_attempts": 2, "initial_delay_ms": 5, "max_delay_ms": 1}),
        "retry.max_delay_ms",
        "below",
    );
    set(PromptSpec, "template", json!("{{#if a}}"), "template", "not closed");
    set(PromptSpec, "examples", json!([{"input": 1}]), "examples[0].output", "is missing");
    let nothing = json!([{"input": null, "output": null}]);
    assert_eq!(
        check(PromptSpec, &with(PromptSpec, "examples", nothing.clone())).expect("valid").value["examples"],
        nothing
    );
}

#[test]
fn actions() {
    set(ActionDef, "kind", json!("htttp"), "kind", "did you mean \"http\"?");
    set(ActionDef, "operation", json!("give"), "operation", "is none of return");
    set(ActionDef, "operation", Value::Null, "operation", "one of return");
    set(ActionDef, "config", json!({"delay_ms": {"min": 2, "max": 1}}), "config.delay_ms.max", "below min");
    set(ActionDef, "config", json!({"outputs": 1}), "config.outputs", "did you mean \"output\"?");
    set(ActionDef, "execution", json!({"timeout_ms": 0}), "execution.timeout_ms", "from 1");
    let errors = json!({"retry_policy": {"retryable_errors": ["auth"]}});
    set(ActionDef, "execution", errors, "execution.retry_policy.retryable_errors[0]", "is none of network");
    for (kind, operation, config, field, words) in [
        ("llm", "generate", json!({}), "config.prompt", "is missing"),
        ("llm", "generate", json!({"prompt": "a", "prompt_spec_id": "b"}), "config.prompt", "leave one of them out"),
        ("llm", "embed", json!({}), "config.prompt", "the text to embed"),
        ("llm", "embed", json!({"prompt": "a", "native": {}}), "config.native", "is not a known field"),
        ("llm", "embed", json!({"prompt": "a", "model_profile_id": "m"}), "config.model_profile_id", "not a known"),
        ("http", "request", json!({}), "config.url", "is missing"),
        ("http", "request", json!({"url": "ftp://x"}), "config.url", "must begin with https://"),
        ("http", "request", json!({"url": "https://x", "method": "get"}), "config.method", "is none of GET"),
        ("http", "request", json!({"url": "https://x", "headers": {"a": 1}}), "config.headers.a", "must be a string"),
        ("http", "request", json!({"url": "https://x", "headers_env": {"a": 1}}), "config.headers_env.a", "a variable"),
        (
            "http",
            "request",
            json!({"url": "https://x", "headers_env": {"a": "b"}}),
            "config.headers_env.a",
            "CRM_TOKEN",
        ),
        ("http", "request", json!({"url": "https://x", "headers_env": "A"}), "config.headers_env", "must be an object"),
        (
            "http",
            "request",
            json!({"url": "https://x", "headers": {"x-a": "b"}, "headers_env": {"X-A": "B"}}),
            "config.headers_env.X-A",
            "stands in headers",
        ),
        ("shell", "exec", json!({"comand": "ls", "command": "ls"}), "config.comand", "did you mean \"command\"?"),
        ("context", "validate", json!({}), "config.schema", "is missing"),
        ("mcp", "invoke", json!({"server": "s"}), "config.tool", "is missing"),
        ("metric", "record", json!({"name": "n", "type": "timer"}), "config.type", "counter, gauge"),
    ] {
        let mut action = least(ActionDef);
        action["kind"] = json!(kind);
        action["operation"] = json!(operation);
        action["config"] = config;
        refused(ActionDef, &action, field, words);
    }
}

/// An action that asks a model, with these settings.
fn generate(config: Value) -> Value {
    let mut action = least(ActionDef);
    action["kind"] = json!("llm");
    action["operation"] = json!("generate");
    action["config"] = config;
    action
}

/// Settings with a request in the own shape of Anthropic, and one more field there.
fn native(place: &str, name: &str, value: Value) -> Value {
    let messages = json!([{"role": "user", "content": "{{input.text}}"}]);
    let mut config = json!({"native": {"provider": "anthropic", "body": {"max_tokens": 9, "messages": messages}}});
    match place {
        "native" => config["native"][name] = value,
        "body" => config["native"]["body"][name] = value,
        _ => config[name] = value,
    }
    config
}

#[test]
fn k_31_requests_in_a_providers_own_shape_pass() {
    let fields = json!({"properties": {"password": {"type": "string"}}});
    let password = json!([{"name": "t", "parameters": fields}]);
    let answers = json!([{"functionDeclarations": [{"name": "t", "response": fields}]}]);
    let called = json!([{"role": "assistant", "content": [{"type": "tool_use", "input": {"api_key": "the user's"}}]}]);
    for config in [
        native("config", "output", json!("raw")),
        native("config", "output", json!("text")),
        native("config", "model_profile_id", json!("fast")),
        native("native", "provider", json!("gemini")),
        native("body", "model", json!("m-1")),
        native("body", "model", json!("{{input.model}}")),
        native("body", "stream", json!(false)),
        native("body", "background", json!(false)),
        native("body", "messages", json!("{{input.messages}}")),
        native("body", "tools", password),
        native("body", "tools", answers),
        native("body", "messages", called),
    ] {
        let action = generate(config);
        let taken = check(ActionDef, &action).unwrap_or_else(|problems| panic!("{action}: {problems:?}"));
        assert_eq!(taken.value["config"], action["config"], "it is kept as it is");
    }
}

#[test]
fn k_31_requests_in_a_providers_own_shape_are_refused_by_field() {
    let key = concat!("sk", "-ant-0123456789abcdefghij");
    let long = json!("x".repeat(65_537));
    for (place, name, value, field, words) in [
        ("config", "prompt", json!("x"), "config.prompt", "stands beside native"),
        ("config", "prompt_spec_id", json!("p"), "config.prompt_spec_id", "stands beside native"),
        ("config", "prompt_spec_version", json!(1), "config.prompt_spec_version", "stands beside native"),
        ("config", "system_prompt", json!("x"), "config.system_prompt", "stands beside native"),
        ("config", "output", json!("json"), "config.output", "is none of text, raw"),
        ("config", "native", json!("x"), "config.native", "must be an object"),
        ("native", "headers", json!({}), "config.native.headers", "is not a known field"),
        ("native", "provider", Value::Null, "config.native.provider", "is missing"),
        ("native", "provider", json!("openia"), "config.native.provider", "did you mean \"openai\"?"),
        ("native", "body", Value::Null, "config.native.body", "is missing"),
        ("native", "body", json!([]), "config.native.body", "must be an object"),
        ("body", "stream", json!(true), "config.native.body.stream", "must be left out"),
        ("body", "background", json!(true), "config.native.body.background", "must be left out"),
        ("body", "background", json!("{{input.later}}"), "config.native.body.background", "must be left out"),
        ("body", "model", json!(7), "config.native.body.model", "must be a string"),
        ("body", "model", json!(" "), "config.native.body.model", "must not be blank"),
        ("body", "system", json!("{{#if a}}"), "config.native.body.system", "is not closed"),
        ("body", "system", long, "config.native.body.system", "at most 65536"),
        ("body", "system", json!([{"text": "{{"}]), "config.native.body.system[0].text", "is not closed"),
        ("body", "api_key", json!("x"), "config.native.body.api_key", "keys never live in definitions"),
        ("body", "system", json!(key), "config.native.body.system", "holds what looks like a key"),
        ("body", "input", json!({"a": key}), "config.native.body.input.a", "holds what looks like a key"),
    ] {
        refused(ActionDef, &generate(native(place, name, value)), field, words);
    }
    let elsewhere = json!({"native": {"provider": "gemini", "body": {"model": "../files"}}});
    refused(ActionDef, &generate(elsewhere), "config.native.body.model", "is no name of a model");
    let plain = json!({"prompt": "x", "output": "raw"});
    refused(ActionDef, &generate(plain), "config.output", "is of native alone");
}

#[test]
fn models_that_are_named_in_an_address() {
    let profile = |provider: &str, model: &str| {
        let mut profile = least(ModelProfile);
        profile["provider"] = json!(provider);
        profile["model_id"] = json!(model);
        profile
    };
    for model in ["../files", "a/b", "m:predict?x=", "models/models/m"] {
        refused(ModelProfile, &profile("gemini", model), "model_id", "is no name of a model");
        assert!(check(ModelProfile, &profile("openai", model)).is_ok(), "{model}: elsewhere it is a text");
    }
    for model in ["gemini-2.5-flash", "models/gemini-2.5-flash", "default"] {
        assert!(check(ModelProfile, &profile("gemini", model)).is_ok(), "{model}");
    }
}

#[test]
fn extra_headers_of_profiles() {
    let sound = json!({"top_k": 5, "headers": {"anthropic-beta": "a,b", "openai-beta": "responses=v1"}});
    assert!(check(ModelProfile, &with(ModelProfile, "execution_config", sound)).is_ok());
    for (headers, field, words) in [
        (json!("x"), "execution_config.headers", "must be an object"),
        (json!({"x-mine": "1"}), "execution_config.headers.x-mine", "anthropic-beta, openai-beta"),
        (json!({"Host": "h"}), "execution_config.headers.Host", "is no header that can be set"),
        (json!({"content-type": 1}), "execution_config.headers.content-type", "is no header that can be set"),
        (json!({"x-api-key": "1"}), "execution_config.headers.x-api-key", "keys never live in definitions"),
        (json!({"Authorization": "x"}), "execution_config.headers.Authorization", "keys never live in definitions"),
        (json!({"anthropic-beta": 1}), "execution_config.headers.anthropic-beta", "must be a string, not a number"),
        (json!({"openai-beta": "a\r\nb"}), "execution_config.headers.openai-beta", "characters"),
    ] {
        set(ModelProfile, "execution_config", json!({ "headers": headers }), field, words);
    }
}

#[test]
fn all_problems_come_at_once_and_sizes_are_bounded() {
    let many = json!({"id": "a b", "name": "", "target_type": "x", "input_schema": {"type": "object", "enum": []}});
    let fields: Vec<String> = check(Tool, &many).expect_err("broken").into_iter().map(|one| one.field).collect();
    for field in ["id", "name", "description", "library_id", "input_schema.enum", "target_type", "target_id"] {
        assert!(fields.iter().any(|one| one == field), "{field} is not in {fields:?}");
    }
    let examples: Vec<Value> = (0..100).map(|_| json!({"input": "x".repeat(2_000), "output": 1})).collect();
    set(PromptSpec, "examples", json!(examples), "", "at most 131072");
}
