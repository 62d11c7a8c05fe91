//! What programs may call.

use schemas::limits::TOOLBOX_BYTES_MAX;

use super::*;

/// A tool of this name that may be repeated.
fn named(name: &str, more: Value) -> ResolvedTool {
    usual(merged(json!({"id": name, "name": name, "effect_class": "pure"}), more))
}

/// A tool of this name whose action is of this kind.
fn of_kind(name: &str, kind: &str, operation: &str, config: Value) -> ResolvedTool {
    let tool = tool(json!({"id": name, "name": name, "effect_class": "pure"}));
    bound(tool, &task(json!({})), &action(json!({"kind": kind, "operation": operation, "config": config})))
}

fn whole(tools: &[ResolvedTool]) -> Toolbox {
    Toolbox::of(tools, &AgentConstraints::default())
}

fn names(toolbox: &Toolbox) -> Vec<&str> {
    toolbox.tools.iter().map(|tool| tool.tool.name.as_str()).collect()
}

#[test]
fn programs_call_what_runs_at_once_and_may_be_repeated() {
    let tools = [
        named("plain", json!({})),
        named("probed", json!({"effect_class": "probeable"})),
        named("gated", json!({"requires_approval": {"expires_s": 60}})),
        named("background", json!({"async": true})),
        named("pay", json!({"effect_class": "at_most_once"})),
        of_kind("fetch", "http", "request", json!({"url": "https://example.org"})),
        of_kind("ask", "human", "approve", json!({})),
        of_kind("elsewhere", "external", "run", json!({"pool": "python"})),
        resolve(tool(json!({"name": "ben", "target_type": "agent"})), 1, Target::Agent { version: 1 }),
        resolve(tool(json!({"name": "gone"})), 1, Target::Nothing),
    ];
    let toolbox = whole(&tools);
    assert_eq!(names(&toolbox), ["plain", "probed", "fetch", "gone"]);
    for (name, why) in [
        ("gated", "a person is asked"),
        ("background", "comes later"),
        ("pay", "effect_class"),
        ("ask", "kind human"),
        ("elsewhere", "kind external"),
        ("ben", "another agent"),
    ] {
        let told = toolbox.dispatch(&call(name, json!({"query": "x"}))).unwrap_err();
        assert_eq!((told.code, told.retriable), (ToolErrorCode::PermissionDenied, false));
        assert!(told.message.contains(why) && told.message.contains("directly"), "{}", told.message);
    }
    assert_eq!(toolbox.dispatch(&call("plain", json!({"query": "x"}))).unwrap().effect_class, EffectClass::Pure);
    let told = |name| toolbox.dispatch(&call(name, json!({"query": 7}))).unwrap_err().code;
    assert_eq!((told("plain"), told("plan")), (ToolErrorCode::InvalidInput, ToolErrorCode::NotFound));
    let gone = toolbox.dispatch(&call("gone", json!({"query": "x"}))).unwrap_err();
    assert_eq!(gone.code, ToolErrorCode::NotFound);
}

#[test]
fn of_what_is_built_in_programs_call_the_memory() {
    let toolbox = whole(&builtins());
    assert_eq!(names(&toolbox).len(), 5);
    assert!(toolbox.dispatch(&call("memory.search", json!({"query": "x"}))).is_ok());
    for name in ["execute_code", "compact_context"] {
        assert_eq!(toolbox.dispatch(&call(name, json!({}))).unwrap_err().code, ToolErrorCode::PermissionDenied);
    }
}

#[test]
fn constraints_of_the_agent_count_for_its_programs() {
    let only = AgentConstraints {
        allowed_tools: Some(vec![DefinitionId::parse("plain").unwrap()]),
        allowed_action_kinds: Some(vec![ActionKind::Mock]),
        ..AgentConstraints::default()
    };
    let mut tools = vec![named("plain", json!({})), named("other", json!({}))];
    tools.extend(builtins());
    let toolbox = Toolbox::of(&tools, &only);
    assert_eq!(names(&toolbox), ["plain"]);
    let told = |name| toolbox.dispatch(&call(name, json!({"query": "x"}))).unwrap_err();
    assert!(told("other").message.contains("not among the tools that you may use"));
    assert!(told("memory_search").message.contains("kind memory"));
}

#[test]
fn a_toolbox_is_kept_as_it_was_and_has_a_size() {
    let large = |name| named(name, json!({"description": "x".repeat(TOOLBOX_BYTES_MAX / 3)}));
    let tools = [large("a"), large("b"), large("c"), named("d", json!({})), named("d", json!({"async": true}))];
    let toolbox = whole(&tools);
    assert_eq!(names(&toolbox), ["a", "b", "d"], "the first of one name counts");
    assert!(toolbox.refused["c"].contains("too large"), "{:?}", toolbox.refused.keys());
    let text = serde_json::to_string(&toolbox).unwrap();
    assert_eq!(serde_json::from_str::<Toolbox>(&text).unwrap(), toolbox);
}

#[test]
fn programs_that_may_be_run_again_call_nothing() {
    let tools = [named("plain", json!({}))];
    let given = |class, others| Toolbox::for_program(&tools, &AgentConstraints::default(), class, others);
    for class in [EffectClass::Pure, EffectClass::Idempotent, EffectClass::Probeable] {
        let told = given(class, 0).dispatch(&call("plain", json!({"query": "x"}))).unwrap_err();
        assert_eq!(told.code, ToolErrorCode::PermissionDenied);
        assert!(told.message.contains("effect_class"), "{}", told.message);
    }
    assert_eq!(given(EffectClass::AtMostOnce, 0), whole(&tools));
}

#[test]
fn eight_programs_of_a_reply_call_tools() {
    let tools = [named("plain", json!({}))];
    let given = |others| Toolbox::for_program(&tools, &AgentConstraints::default(), EffectClass::AtMostOnce, others);
    assert_eq!(names(&given(7)), ["plain"]);
    let told = given(8).dispatch(&call("plain", json!({"query": "x"}))).unwrap_err();
    assert!(told.message.contains("in the next reply"), "{}", told.message);
    assert!(given(8).tools.is_empty());
}

#[test]
fn who_reads_the_history_says_so() {
    assert!(!whole(&[named("plain", json!({}))]).wants_messages());
    let wants = |config: Value| whole(&[of_kind("sum", "llm", "generate", config)]).wants_messages();
    for prompt in ["{{#each messages}}x{{/each}}", "{{$.messages}}", "{{input.messages}} and {{messages}}"] {
        assert!(wants(json!({ "prompt": prompt })), "{prompt}");
    }
    let native = json!({"native": {"provider": "openai", "body": {"messages": "{{input.messages}}"}}});
    for own in [native, json!({"prompt": "{{input.messages}}"}), json!({"prompt": "messages"})] {
        assert!(!wants(own.clone()), "a field of the tool's own input, or none: {own}");
    }
}

#[test]
fn calls_of_a_program_have_keys_of_their_own() {
    let execution = operation_id(&TurnId::parse("t1").unwrap(), 1, 0);
    assert_eq!(called_id(&execution, 3).as_str(), "t1.1.0.call.3");
    let long = schemas::id::OperationId::parse(&"x".repeat(128)).unwrap();
    assert_ne!(called_id(&long, 0), called_id(&long, 1));
}
