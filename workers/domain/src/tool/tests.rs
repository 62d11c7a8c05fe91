//! Calls against tools: what is refused, what is dispatched, and under which names.

mod toolbox;

use std::collections::HashSet;

use schemas::conversation::OperationKind;
use schemas::definition::{
    ActionDef, ActionKind, AgentConstraints, DefinitionKind, EffectClass, InvocationMode, Task, Tool,
};
use schemas::id::{ConversationId, DefinitionId, Namespace, SessionId, TurnId};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::chat::{Message, Role, ToolCall, ToolError, ToolErrorCode};
use crate::definition::check;

fn merged(mut base: Value, more: Value) -> Value {
    let map = base.as_object_mut().unwrap();
    map.extend(more.as_object().unwrap().clone());
    base
}

fn tool(more: Value) -> Tool {
    let least = json!({"id": "t1", "name": "search", "description": "Search.", "target_type": "task",
        "target_id": "find", "input_schema": {"type": "object", "properties": {"query": {"type": "string"}},
            "required": ["query"]}});
    serde_json::from_value(merged(least, more)).unwrap()
}

fn task(more: Value) -> Task {
    let least = json!({"id": "find", "name": "Find", "steps": [{"ref": "a", "action_def_id": "lookup"}]});
    serde_json::from_value(merged(least, more)).unwrap()
}

fn action(more: Value) -> ActionDef {
    let least = json!({"id": "lookup", "name": "Look up", "kind": "mock", "operation": "return"});
    serde_json::from_value(merged(least, more)).unwrap()
}

fn bound(tool: Tool, task: &Task, action: &ActionDef) -> ResolvedTool {
    resolve(tool, 3, Target::Task { task, version: 2, action: Some((action, 5)) })
}

fn usual(more: Value) -> ResolvedTool {
    bound(tool(more), &task(json!({})), &action(json!({})))
}

fn call(name: &str, input: Value) -> ToolCall {
    ToolCall { id: "c1".into(), name: name.into(), input, invalid: None, signature: None }
}

fn refusal(tools: &[ResolvedTool], constraints: &AgentConstraints, call: &ToolCall) -> ToolError {
    match plan(tools, constraints, call) {
        ToolPlan::Refused(result) => {
            assert_eq!(result.tool_call_id, call.id);
            assert!(!result.success);
            result.error.unwrap()
        }
        other => panic!("not refused: {other:?}"),
    }
}

fn dispatched(tool: ResolvedTool, input: Value) -> Dispatch {
    let name = tool.tool.name.clone();
    match plan(&[tool], &AgentConstraints::default(), &call(&name, input)) {
        ToolPlan::Dispatch(dispatch) => *dispatch,
        other => panic!("not dispatched: {other:?}"),
    }
}

#[test]
fn a_call_becomes_an_operation_with_all_that_it_needs() {
    let found = dispatched(usual(json!({"effect_class": "idempotent"})), json!({"query": "cats"}));
    assert_eq!((found.kind, found.pool.as_str()), (OperationKind::Task, POOL));
    assert_eq!((found.max_attempts, found.backoff_ms, found.timeout_ms), (1, 1_000, 60_000));
    assert_eq!((found.effect_class, found.is_async, &found.approval), (EffectClass::Idempotent, false, &None));
    let request = &found.request;
    assert_eq!((request.target_id.as_str(), request.version), ("find", 2));
    assert_eq!((request.action_id.as_str(), request.action_version), ("lookup", 5));
    assert_eq!((request.kind, request.operation.as_str()), (ActionKind::Mock, "return"));
    assert_eq!(request.input, json!({"query": "cats"}));
}

#[test]
fn unknown_tools_are_not_found_and_the_nearest_is_named() {
    let told = refusal(&[usual(json!({}))], &AgentConstraints::default(), &call("serch", json!({})));
    assert_eq!(told.code, ToolErrorCode::NotFound);
    assert!(told.message.contains("did you mean \"search\""), "{}", told.message);
    let told = refusal(&[], &AgentConstraints::default(), &call("search", json!({})));
    assert!(told.message.contains("no tools can be called"), "{}", told.message);
}

#[test]
fn every_break_of_the_schema_is_told_at_once() {
    let schema = json!({"type": "object", "properties": {"query": {"type": "string"}, "limit": {"maximum": 5}},
        "required": ["query", "lang"]});
    let tools = [usual(json!({"input_schema": schema}))];
    let told = refusal(&tools, &AgentConstraints::default(), &call("search", json!({"query": 7, "limit": 9})));
    assert_eq!((told.code, told.retriable), (ToolErrorCode::InvalidInput, false));
    for part in ["/lang: is missing", "/query: must be string, not 7", "/limit: must be at most 5, not 9"] {
        assert!(told.message.contains(part), "{}", told.message);
    }
    let broken = ToolCall { invalid: Some("{\"query\": ".into()), ..call("search", json!({})) };
    let told = refusal(&tools, &AgentConstraints::default(), &broken);
    assert_eq!(told.code, ToolErrorCode::InvalidInput);
}

#[test]
fn what_is_not_permitted_is_refused_before_it_is_looked_at() {
    let id = |text: &str| DefinitionId::parse(text).unwrap();
    let only = AgentConstraints { allowed_tools: Some(vec![id("other")]), ..AgentConstraints::default() };
    let told = refusal(&[usual(json!({}))], &only, &call("search", json!({})));
    assert_eq!(told.code, ToolErrorCode::PermissionDenied);
    let kinds = AgentConstraints {
        allowed_tools: Some(vec![id("t1")]),
        allowed_action_kinds: Some(vec![ActionKind::Memory]),
        ..AgentConstraints::default()
    };
    let mut tools = builtins();
    tools.push(usual(json!({})));
    let told = refusal(&tools, &kinds, &call("search", json!({"query": "x"})));
    assert!(told.message.contains("kind mock"), "{}", told.message);
    assert_eq!(refusal(&tools, &kinds, &call("execute_code", json!({}))).code, ToolErrorCode::PermissionDenied);
    // What is built in is limited by its kind, and not by a list of definitions.
    let memory = plan(&tools, &kinds, &call("memory.search", json!({"query": "x"})));
    assert!(matches!(memory, ToolPlan::Dispatch(found) if found.request.kind == ActionKind::Memory));
}

#[test]
fn targets_that_cannot_be_run_are_not_found_with_the_reason() {
    let steps = json!([{"ref": "a", "action_def_id": "lookup"}, {"ref": "b", "action_def_id": "lookup"}]);
    let beyond = json!([{"ref": "a", "action_def_id": "lookup", "input_mapping": {"q": "upper(input.query)"}}]);
    let maybe = json!([{"ref": "a", "action_def_id": "lookup", "condition": {"if": "input.query"}}]);
    let other = json!([{"ref": "a", "action_def_id": "lookup", "action_def_version": 4}]);
    let one = action(json!({}));
    let lost = tool(json!({"target_type": "workflow"}));
    for (found, words) in [
        (resolve(lost, 1, Target::Nothing), "cannot run workflows yet"),
        (resolve(tool(json!({})), 1, Target::Nothing), "there is no task find"),
        (
            bound(tool(json!({})), &task(json!({ "steps": steps })), &one),
            "the task find has 2 steps; tasks of several steps are not run yet",
        ),
        (bound(tool(json!({})), &task(json!({ "steps": maybe })), &one), "cannot be run by a tool yet: conditions"),
        (
            bound(tool(json!({})), &task(json!({ "steps": beyond })), &one),
            "cannot be run by a tool yet: the expression",
        ),
        (bound(tool(json!({})), &task(json!({ "steps": other })), &one), "does not exist"),
    ] {
        let told = refusal(&[found], &AgentConstraints::default(), &call("search", json!({"query": "x"})));
        assert_eq!(told.code, ToolErrorCode::NotFound);
        assert!(told.message.contains(words), "{}", told.message);
    }
}

#[test]
fn input_is_mapped_twice_and_checked_on_the_way() {
    let mapped_tool = tool(json!({"input_mapping": {"q": "query", "n": "limit"}}));
    let task = task(json!({"input_schema": {"type": "object", "required": ["q"]},
        "steps": [{"ref": "a", "action_def_id": "lookup", "input_mapping": {"text": "input.q"}}]}));
    let strict = action(json!({"input_schema": {"type": "object", "properties": {"text": {"maxLength": 3}}}}));
    let tools = bound(mapped_tool, &task, &strict);
    assert_eq!(dispatched(tools.clone(), json!({"query": "abc"})).request.input, json!({"text": "abc"}));
    let told = refusal(&[tools], &AgentConstraints::default(), &call("search", json!({"query": "abcd"})));
    assert!(told.message.contains("after mapping") && told.message.contains("/text"), "{}", told.message);
}

#[test]
fn attempts_times_and_classes_come_from_whoever_says_more() {
    let action = action(json!({"effect_class": "pure",
        "execution": {"timeout_ms": 5_000, "retry_policy": {"max_attempts": 4, "backoff_ms": 20}}}));
    let found = dispatched(bound(tool(json!({})), &task(json!({})), &action), json!({"query": "x"}));
    assert_eq!((found.max_attempts, found.backoff_ms, found.timeout_ms), (4, 20, 5_000));
    assert_eq!(found.effect_class, EffectClass::Pure);
    let own = tool(json!({"retry": {"max_attempts": 6, "backoff_ms": 7}, "effect_class": "probeable", "async": true}));
    let found = dispatched(bound(own, &task(json!({})), &action), json!({"query": "x"}));
    assert_eq!((found.max_attempts, found.backoff_ms), (6, 7));
    assert_eq!((found.effect_class, found.is_async), (EffectClass::Probeable, true));
}

#[test]
fn w_tool_03_a_time_that_nobody_wrote_limits_none_that_somebody_wrote() {
    let time = |ms: Option<u64>| ms.map_or_else(|| json!({}), |ms| json!({ "timeout_ms": ms }));
    let ms = |of_tool, of_action, of_task| {
        let tool = tool(json!({ "retry": time(of_tool) }));
        let action = action(json!({ "execution": time(of_action) }));
        dispatched(bound(tool, &task(time(of_task)), &action), json!({"query": "x"})).timeout_ms
    };
    assert_eq!(ms(None, None, None), 60_000);
    assert_eq!(ms(Some(300_000), None, None), 300_000, "the action's minute is nobody's word");
    assert_eq!(ms(None, Some(300_000), None), 300_000, "nor is the tool's");
    assert_eq!(ms(None, None, Some(300_000)), 300_000);
    for (times, shortest) in [
        ([Some(5_000), None, None], 5_000),
        ([None, Some(5_000), None], 5_000),
        ([Some(300_000), Some(120_000), None], 120_000),
        ([Some(90_000), Some(300_000), Some(200_000)], 90_000),
        ([Some(300_000), Some(600_000), Some(60_000)], 60_000),
    ] {
        let [of_tool, of_action, of_task] = times;
        assert_eq!(ms(of_tool, of_action, of_task), shortest, "{times:?}");
    }
    // Of tools and actions nobody knows whether a minute was written down.
    assert_eq!((ms(Some(60_000), Some(300_000), None), ms(Some(300_000), Some(60_000), None)), (300_000, 300_000));
    let written = written_tool(json!({"retry": {"timeout_ms": 300_000}}));
    let found = dispatched(bound(written, &task(json!({})), &action(json!({}))), json!({}));
    assert_eq!(found.timeout_ms, 300_000, "as it is read once it was written");
}

/// A definition of a library as it is read once it was written.
fn written<T: DeserializeOwned>(kind: DefinitionKind, value: Value) -> T {
    let checked = check(kind, &merged(value, json!({"library_id": "core"}))).unwrap();
    checked.new.content.to().unwrap()
}

fn written_tool(more: Value) -> Tool {
    let least = json!({"id": "t1", "name": "search", "description": "Search.", "target_type": "task",
        "target_id": "find", "input_schema": {"type": "object"}});
    written(DefinitionKind::Tool, merged(least, more))
}

#[test]
fn a_class_that_somebody_wrote_down_counts_also_if_it_is_the_default() {
    // A request that only reads, which is pure where nobody says otherwise.
    let read = |more| {
        let least = json!({"id": "lookup", "name": "Look up", "kind": "http", "operation": "request",
            "config": {"url": "https://example.org"}});
        written::<ActionDef>(DefinitionKind::ActionDef, merged(least, more))
    };
    let class = |tool, action: &ActionDef| dispatched(bound(tool, &task(json!({})), action), json!({})).effect_class;
    let (none, said) = (json!({}), |class: &str| json!({"effect_class": class}));
    for (of_tool, of_action, expected) in [
        (none.clone(), none.clone(), EffectClass::Pure),
        (said("at_most_once"), none.clone(), EffectClass::AtMostOnce),
        (said("idempotent"), none.clone(), EffectClass::Idempotent),
        (none.clone(), said("at_most_once"), EffectClass::AtMostOnce),
        (none.clone(), said("idempotent"), EffectClass::Idempotent),
        (said("pure"), said("at_most_once"), EffectClass::AtMostOnce),
        (said("at_most_once"), said("idempotent"), EffectClass::AtMostOnce),
    ] {
        let found = class(written_tool(of_tool.clone()), &read(of_action.clone()));
        assert_eq!(found, expected, "{of_tool} {of_action}");
    }
    // What was stored before that was noted: nobody knows, and it is as it was.
    assert_eq!(class(tool(merged(said("at_most_once"), json!({"input_schema": {}}))), &read(none)), EffectClass::Pure);
}

#[test]
fn a_minute_that_somebody_wrote_down_is_no_day() {
    let ms = |tool: Tool| {
        let tool = resolve(tool, 1, Target::Agent { version: 1 });
        match plan(&[tool], &AgentConstraints::default(), &call("search", json!({"query": "x"}))) {
            ToolPlan::Agent(call) => call.timeout_ms,
            other => panic!("{other:?}"),
        }
    };
    let agent = |retry: Value| written_tool(json!({"target_type": "agent", "retry": retry}));
    assert_eq!((ms(agent(json!({}))), ms(agent(json!({"max_attempts": 1})))), (86_400_000, 86_400_000));
    assert_eq!((ms(agent(json!({"timeout_ms": 60_000}))), ms(agent(json!({"timeout_ms": 7})))), (60_000, 7));
    let before = tool(json!({"target_type": "agent", "retry": {"timeout_ms": 60_000}}));
    assert_eq!(ms(before), 86_400_000, "as it was stored before that was noted");
}

#[test]
fn approval_is_bound_to_the_very_arguments() {
    let gated = || usual(json!({"requires_approval": {"expires_s": 60, "default": "approve"}}));
    let found = dispatched(gated(), json!({"query": "x", "b": 1}));
    let asked = found.approval.clone().unwrap();
    assert_eq!((found.kind, asked.expires_ms, asked.default_approve), (OperationKind::Approval, 60_000, true));
    let same = dispatched(gated(), json!({"b": 1, "query": "x"})).approval.unwrap();
    let other = dispatched(gated(), json!({"b": 2, "query": "x"})).approval.unwrap();
    assert_eq!(asked.arguments_hash, same.arguments_hash);
    assert_ne!(asked.arguments_hash, other.arguments_hash);
    assert_eq!(asked.arguments_hash, arguments_hash("search", &json!({"query": "x", "b": 1})));
    assert_eq!(asked.arguments_hash.len(), 64);
    let human = action(json!({"kind": "human", "operation": "approve", "config": {"expires_s": 5}}));
    let found = dispatched(bound(tool(json!({})), &task(json!({})), &human), json!({"query": "x"}));
    assert_eq!((found.kind, found.approval.unwrap().expires_ms), (OperationKind::Approval, 5_000));
}

#[test]
fn agents_are_asked_in_the_mode_that_is_chosen() {
    let agent = |more| resolve(tool(merged(json!({"target_type": "agent"}), more)), 1, Target::Agent { version: 9 });
    let asked = |tool: ResolvedTool, input| match plan(&[tool], &AgentConstraints::default(), &call("search", input)) {
        ToolPlan::Agent(call) => *call,
        other => panic!("{other:?}"),
    };
    let plain = asked(agent(json!({"async": true})), json!({"query": "x"}));
    assert_eq!((plain.mode, plain.is_async, plain.agent_id.as_str()), (InvocationMode::Delegate, true, "find"));
    let ms = |retry: Value| asked(agent(json!({ "retry": retry })), json!({"query": "x"})).timeout_ms;
    assert_eq!((ms(json!({})), ms(json!({"timeout_ms": 5_000}))), (86_400_000, 5_000), "agents wait for people");
    // The choice is no part of the input, and who joins does so at once.
    let joined = asked(agent(json!({"async": true})), json!({"query": "x", "invocation_mode": "loop_in"}));
    assert_eq!((joined.mode, joined.is_async, joined.input), (InvocationMode::LoopIn, false, json!({"query": "x"})));
    let wrong = call("search", json!({"query": "x", "invocation_mode": "join"}));
    let told = refusal(&[agent(json!({}))], &AgentConstraints::default(), &wrong);
    assert_eq!(told.code, ToolErrorCode::InvalidInput);
    // A schema with a field of this name keeps it.
    let own = json!({"input_schema": {"type": "object", "properties": {"invocation_mode": {"type": "string"}}}});
    let kept = asked(agent(own), json!({"invocation_mode": "join"}));
    assert_eq!((kept.mode, kept.input), (InvocationMode::Delegate, json!({"invocation_mode": "join"})));
}

#[test]
fn models_see_names_words_and_schemas() {
    let agent = resolve(tool(json!({"name": "ask", "target_type": "agent"})), 1, Target::Agent { version: 1 });
    let mut tools = vec![usual(json!({})), agent, usual(json!({"description": "Another."}))];
    tools.extend(builtins());
    let specs = specs(&tools);
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(&names[..2], ["search", "ask"]);
    assert_eq!(names.len(), 2 + Builtin::ALL.len());
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    assert!(names.iter().all(|name| name.chars().all(plain)), "{names:?}");
    assert!(specs[0].input_schema["properties"].get(MODE_FIELD).is_none());
    assert_eq!(specs[1].input_schema["properties"][MODE_FIELD]["enum"], json!(["delegate", "loop_in"]));
    for spec in &specs {
        let problems = crate::definition::schema_problems(spec.input_schema.as_object().unwrap());
        assert!(problems.is_empty(), "{}: {problems:?}", spec.name);
    }
}

#[test]
fn of_two_tools_with_one_name_the_first_decides_whether_it_is_offered() {
    let tools = [usual(json!({})), usual(json!({"id": "t2"}))];
    let names = |allowed: &str, called: &[&str]| -> usize {
        let allowed_tools = Some(vec![DefinitionId::parse(allowed).unwrap()]);
        let called: HashSet<String> = called.iter().map(|name| (*name).to_owned()).collect();
        offered(&tools, &AgentConstraints { allowed_tools, ..AgentConstraints::default() }, &called).len()
    };
    assert_eq!((names("t1", &[]), names("t2", &[])), (1, 0), "a call of the second is one of the first");
    assert_eq!(names("t2", &["search"]), 1, "its calls are in sight");
    assert_eq!(names("t2", &["gone"]), 0);
}

#[test]
fn what_is_built_in_is_dispatched_like_the_rest() {
    let tools = builtins();
    let text = serde_json::to_string(&tools).unwrap();
    assert_eq!(serde_json::from_str::<Vec<ResolvedTool>>(&text).unwrap(), tools);
    for (tool, one) in tools.iter().zip(Builtin::ALL) {
        assert_eq!(Builtin::of(tool), Some(one));
        assert_eq!(Builtin::parse(one.name()), Some(one));
    }
    assert_eq!(Builtin::parse("memory.read"), Some(Builtin::MemoryRead));
    assert_eq!(Builtin::parse("memory.execute_code"), None);
    let call = call("memory.write", json!({"content": "It rains."}));
    let ToolPlan::Dispatch(found) = plan(&tools, &AgentConstraints::default(), &call) else { panic!("refused") };
    assert_eq!((found.request.operation.as_str(), found.effect_class), ("write", EffectClass::Idempotent));
}

#[test]
fn operations_have_ids_that_are_derived_and_short() {
    let turn = TurnId::parse("01ABC").unwrap();
    assert_eq!(operation_id(&turn, 2, 0).as_str(), "01ABC.2.0");
    assert_eq!(result_id(&operation_id(&turn, 2, 0)).as_str(), "01ABC.2.0.result");
    let long = TurnId::parse(&"x".repeat(128)).unwrap();
    let ids = [(1, 0), (1, 1), (2, 0)].map(|(n, index)| operation_id(&long, n, index));
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] == operation_id(&long, 1, 0));
    assert!(ids.iter().all(|id| is_result_id(&result_id(id))));
    let foreign = schemas::id::OperationId::parse(&"y".repeat(128)).unwrap();
    assert!(result_id(&foreign).as_str().len() <= 128);
}

fn placed(dispatch: Dispatch, context: ExecutionContext) -> schemas::conversation::Operation {
    let place = Place {
        namespace: Namespace::default_ns(),
        session_id: SessionId::parse("s1").unwrap(),
        conversation_id: ConversationId::parse("c1").unwrap(),
        turn_id: TurnId::parse("t1").unwrap(),
        move_number: 1,
        index: 0,
        tool_call_id: "call".into(),
        tool: "search".into(),
    };
    operation(dispatch, place, context)
}

#[test]
fn only_who_asks_for_the_history_gets_it() {
    let messages = vec![Message::text(Role::System, "secret"), Message::text(Role::User, "hello")];
    let context = || ExecutionContext { messages: Some(history(&messages)), ..ExecutionContext::default() };
    let request = |more: Value| {
        let tool = bound(tool(json!({})), &task(json!({})), &action(more));
        let operation = placed(dispatched(tool, json!({"query": "x"})), context());
        operation.request.to::<ActionRequest>().unwrap()
    };
    assert_eq!(request(json!({})).context.messages, None);
    let external = json!({"kind": "external", "operation": "run", "config": {"pool": "py", "messages": true}});
    assert_eq!(request(external).context.messages, Some(messages[1..].to_vec()));
    let prompt = json!({"kind": "llm", "operation": "generate", "config": {"prompt": "{{#each messages}}x{{/each}}"}});
    assert!(request(prompt).context.messages.is_some());
}

#[test]
fn the_history_keeps_its_newest_end() {
    let large = "x".repeat(schemas::limits::TOOL_MESSAGES_BYTES_MAX / 2);
    let messages: Vec<Message> = ["a", "b", "c"].map(|name| Message::text(Role::User, format!("{name}{large}"))).into();
    let kept = history(&messages);
    assert_eq!(kept.len(), 1);
    assert!(kept[0].plain_text().starts_with('c'));
}

#[test]
fn external_tools_go_to_their_pool() {
    let external = action(json!({"kind": "external", "operation": "run", "config": {"pool": "python"}}));
    let found = dispatched(bound(tool(json!({})), &task(json!({})), &external), json!({"query": "x"}));
    assert_eq!(placed(found, ExecutionContext::default()).pool, "default:python");
    assert!(pool_name("python").is_ok());
    for wrong in ["", "default", "a.b", "a b"] {
        assert!(pool_name(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_end_is_the_same_action_whoever_tells_it() {
    let operation = placed(dispatched(usual(json!({})), json!({"query": "x"})), ExecutionContext::default());
    let end = |outcome| settled(&Namespace::default_ns(), &operation, outcome, "executor");
    let (state, action) = end(Ok(json!({"found": 3})));
    assert_eq!(state, schemas::conversation::OperationState::Completed);
    assert_eq!(action.action_id.as_str(), "t1.1.0.result");
    let payload = action.payload.to_value();
    assert_eq!((payload["success"].clone(), payload["result"]["found"].clone()), (json!(true), json!(3)));
    assert_eq!(action.body_hash, end(Ok(json!({"found": 3}))).1.body_hash);
    assert_ne!(action.body_hash, end(Ok(json!({"found": 4}))).1.body_hash);
    let huge = end(Ok(Value::String("x".repeat(schemas::limits::TOOL_RESULT_BYTES_MAX)))).1.payload.to_value();
    assert_eq!(huge["error"]["code"], "EXECUTION_FAILED");
    // What is sent is what the API takes.
    let body = json!({"type": "tool_result", "session_id": "s1", "payload": payload});
    let context = crate::action::ParseContext {
        namespace: Namespace::default_ns(),
        actor: "a".into(),
        action_id: action.action_id.clone(),
        session_id: SessionId::parse("s1").unwrap(),
        agent_id: schemas::id::AgentId::parse("a1").unwrap(),
        idempotency_key: None,
    };
    assert!(crate::action::parse(&body, context).is_ok());
}

#[test]
fn calls_of_models_are_told_by_the_fleet_and_by_nobody_else() {
    let operation = placed(dispatched(usual(json!({})), json!({"query": "x"})), ExecutionContext::default());
    let record = json!({"id": "t1.1.0.llm.1", "conversation_id": "c1", "turn_id": "t1", "provider": "p", "model": "m",
        "operation": "chat", "started_at_ms": 0});
    let calls = [serde_json::from_value::<crate::chat::ProviderCallRecord>(record.clone()).unwrap()];
    let namespace = Namespace::default_ns();
    let (_, action) = settled_with(&namespace, &operation, Ok(json!(1)), "executor", &calls);
    let payload = action.payload.to_value();
    assert_eq!(payload["provider_calls"][0]["id"], record["id"]);
    let body = json!({"type": "tool_result", "session_id": "s1", "payload": payload});
    let context = crate::action::ParseContext {
        namespace: namespace.clone(),
        actor: "a".into(),
        action_id: action.action_id.clone(),
        session_id: SessionId::parse("s1").unwrap(),
        agent_id: schemas::id::AgentId::parse("a1").unwrap(),
        idempotency_key: None,
    };
    assert!(crate::action::parse(&body, context).is_err(), "who is not of the fleet spends nothing");
    let told = |attempt| {
        let operation = schemas::conversation::Operation { attempt, ..operation.clone() };
        spent(&namespace, &operation, &calls, "executor")
    };
    let first = told(1);
    assert_eq!((first.kind, first.action_id.as_str()), (schemas::action::ActionType::Interrupt, "t1.1.0.spent.1"));
    assert_eq!(first.payload.to_value()["guidance"]["spent"]["provider_calls"][0]["id"], record["id"]);
    assert_eq!((first.body_hash == told(1).body_hash, first.action_id == told(2).action_id), (true, false));
    let field = first.payload.to_value()["guidance"].as_object().unwrap().keys().next().cloned().unwrap();
    assert!(crate::converse::OWN_FIELDS.contains(&field.as_str()), "guidance of clients must not have it");
}

#[test]
fn errors_of_others_are_read_as_they_come() {
    let full = tool_error(&json!({"code": "NOT_FOUND", "message": "gone", "retriable": true}));
    assert_eq!((full.code, full.retriable, full.message.as_str()), (ToolErrorCode::NotFound, true, "gone"));
    assert_eq!(tool_error(&json!("broken")).message, "broken");
    let odd = tool_error(&json!({"code": "MINE", "why": 1}));
    assert_eq!(odd.code, ToolErrorCode::ExecutionFailed);
    assert!(odd.message.contains("why"));
}

#[test]
fn answers_are_mapped_and_held_to_their_schema() {
    let task = task(json!({"steps": [{"ref": "a", "action_def_id": "lookup",
        "output_mapping": {"output.hits": "result.body.items"}}],
        "output_schema": {"type": "object", "properties": {"hits": {"type": "array"}}}}));
    let request = dispatched(bound(tool(json!({})), &task, &action(json!({}))), json!({"query": "x"})).request;
    let good = finished(&request, json!({"status": 200, "body": {"items": [1]}}));
    assert_eq!(good, Ok(json!({"hits": [1]})));
    let told = finished(&request, json!({"body": {"items": "none"}})).unwrap_err();
    assert!(told.message.contains("/hits: must be array"), "{}", told.message);
}
