//! Calls of tools in earlier turns: shown whole, in their places, within bounds.

use std::collections::HashSet;

use schemas::conversation::{LogKind, LogRow};
use schemas::definition::{ActionKind, AgentConstraints};
use schemas::id::{DefinitionId, TurnId};
use serde_json::{Value, json};

use super::bench::Bench;
use super::contexts::{gathered, row, said, summary};
use crate::chat::{Message, Part, Role};
use crate::converse::{Gathered, Shown, Summary, assemble, message_id};
use crate::tool::builtins;

fn of(turn: &str, offset: u64, kind: LogKind, body: Value) -> LogRow {
    let mut row = row(offset, kind, Some("ada"), body);
    row.record.turn_id = Some(TurnId::parse(turn).unwrap());
    row
}

/// The `number`th reply of a turn: a text, and calls of `look` by their ids.
fn called(turn: &str, number: u32, offset: u64, text: &str, ids: &[&str]) -> LogRow {
    let calls: Vec<Value> = ids.iter().map(|id| json!({"id": id, "name": "look", "input": {"q": "x"}})).collect();
    let mut parts = vec![
        json!({"type": "reasoning", "text": "Hm.", "signature": "s", "provider": "anthropic"}),
        json!({"type": "text", "text": text}),
    ];
    parts.extend(calls.iter().map(|call| {
        json!({"type": "tool_call", "id": call["id"], "name": "look", "input": call["input"], "signature": "proof"})
    }));
    let body = json!({"move": number, "tool_calls": calls, "parts": parts, "finish": "tool_calls", "raw": {"all": 1}});
    of(turn, offset, LogKind::Move, body)
}

fn result(turn: &str, number: u32, offset: u64, id: &str, text: &str) -> LogRow {
    let body = json!({"move": number, "tool_call_id": id, "success": true, "result": text});
    of(turn, offset, LogKind::ToolResult, body)
}

/// What the agent said with its `number`th reply.
fn spoken(turn: &str, number: u32, offset: u64) -> LogRow {
    let id = message_id(&TurnId::parse(turn).unwrap(), number);
    let body = json!({"message_id": id, "sender_type": "agent", "role": "assistant", "agent_id": "ada",
        "text": format!("spoken {number}"), "event_type": "utterance"});
    let mut row = of(turn, offset, LogKind::Message, body);
    row.record.id = id.to_string();
    row
}

/// A turn that looked twice, and the message that the next one answers.
fn looked() -> Vec<LogRow> {
    vec![
        said(1, None),
        called("t1", 1, 2, "spoken 1", &["c1", "c2"]),
        spoken("t1", 1, 3),
        result("t1", 1, 4, "c2", "two"),
        result("t1", 1, 5, "c1", "one"),
        called("t1", 2, 6, "", &["c3"]),
        result("t1", 2, 7, "c3", "three"),
        spoken("t1", 3, 8),
        said(9, None),
    ]
}

/// The next turn of an agent that has the tool, and room for all.
fn next(history: Vec<LogRow>) -> Gathered {
    let input = history.last().expect("an input").offset;
    let tools = Bench::new(json!({})).with_tool("look", json!({})).tools;
    Gathered { tools, model_max_tokens: 200_000, ..gathered(history, input) }
}

/// Messages in short: who speaks, and what.
fn told(messages: &[Message]) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text { text, .. } => text.clone(),
        Part::ToolCall(call) => format!("{}({})", call.name, call.id),
        Part::ToolResult { call_id, content, .. } => {
            format!("{call_id}={}", content.iter().filter_map(Part::as_text).collect::<String>())
        }
        other => format!("{other:?}"),
    };
    let parts = |message: &Message| message.content.iter().map(part).collect::<Vec<String>>().join(" ");
    messages.iter().map(|message| format!("{}: {}", message.role.as_str(), parts(message))).collect()
}

/// What every provider wants: results of all calls right behind them, and each id once.
fn assert_whole(messages: &[Message]) {
    let mut known = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let results = message.content.iter().filter_map(|part| match part {
            Part::ToolResult { call_id, .. } => Some(call_id.clone()),
            _ => None,
        });
        assert_eq!(results.collect::<Vec<String>>(), open, "{:?}", told(messages));
        assert_eq!(message.role == Role::Tool, !open.is_empty());
        open = message.content.iter().filter_map(Part::as_tool_call).map(|call| call.id.clone()).collect();
        assert!(open.iter().all(|id| known.insert(id.clone())), "{:?}", told(messages));
    }
    assert!(open.is_empty());
}

fn shown(given: &Gathered) -> Vec<String> {
    let messages = assemble(given).request.messages;
    assert_whole(&messages);
    told(&messages)
}

#[test]
fn k_09_calls_of_earlier_turns_come_back_with_their_results_in_their_places() {
    let assembly = assemble(&next(looked()));
    assert_whole(&assembly.request.messages);
    let all = [
        "system: You help.",
        "user: said 1",
        "assistant: spoken 1 look(c1) look(c2)",
        "tool: c1=one c2=two",
        "assistant: look(c3)",
        "tool: c3=three",
        "assistant: spoken 3",
        "user: said 9",
    ];
    assert_eq!(told(&assembly.request.messages), all);
    let signed = json!(assembly.request.messages).to_string();
    assert!(!signed.contains("proof") && !signed.contains("Hm."), "thoughts are of their turn alone: {signed}");
    // A call and its results share a place, so no summary reaches between them.
    let places: Vec<(usize, u64)> = assembly.history.iter().map(|one| (one.at, one.offset)).collect();
    assert_eq!(places, [(1, 1), (2, 3), (3, 3), (4, 6), (5, 6), (6, 8)]);
}

#[test]
fn a_summary_takes_calls_with_their_results_and_their_words() {
    let assembly = assemble(&next(looked()));
    let newest = |upto: u64| -> Summary {
        serde_json::from_value(json!({"upto": upto, "text": "[Context Summary]", "batches": []})).unwrap()
    };
    let messages = Shown::of(&assembly, Some(&newest(3)), &[]).request(false).messages;
    assert_whole(&messages);
    let left = ["assistant: look(c3)", "tool: c3=three"];
    assert_eq!(told(&messages)[3..5], left);
    assert_eq!(told(&messages)[1], "system: [Context Summary]");
    assert_eq!(messages[2].role, Role::User, "no provider takes a history that begins with a call");
    // The same for those that begin after it, whatever came behind the summary's end.
    let mut history = looked();
    history.insert(8, summary(20, "ada", 3, "conversation"));
    assert_eq!(shown(&next(history))[2..4], left);
}

#[test]
fn only_own_calls_of_turns_that_are_over_are_shown_and_of_tools_that_are_there() {
    let plain = ["system: You help.", "user: said 1", "assistant: spoken 1", "assistant: spoken 3", "user: said 9"];
    let mut given = next(looked());
    given.active = vec![TurnId::parse("t1").unwrap()];
    assert_eq!(shown(&given), plain, "another turn is at work");
    given.active.clear();
    given.tools.clear();
    assert_eq!(shown(&given), plain, "providers refuse calls of tools that are not offered");
    let mut others = looked();
    for row in others.iter_mut().filter(|row| row.record.kind != LogKind::Message) {
        row.record.agent_id = Some(schemas::id::AgentId::parse("ben").unwrap());
    }
    assert_eq!(shown(&next(others)), plain, "another agent's");
    // Its own replies come behind what it answers, whenever its context is made.
    let mut own = next(looked());
    own.turn = TurnId::parse("t1").unwrap();
    assert_eq!(shown(&own), ["system: You help.", "user: said 1", "user: said 9"]);
}

#[test]
fn k_03_what_an_agent_may_not_use_is_not_offered_unless_its_calls_are_shown() {
    let given = |history| {
        let mut tools = Bench::new(json!({})).with_tool("look", json!({})).with_tool("pay", json!({})).tools;
        tools.extend(builtins());
        let mut given = Gathered { tools, ..next(history) };
        given.persona.constraints.allowed_tools = Some(vec![DefinitionId::parse("pay").unwrap()]);
        given.persona.constraints.allowed_action_kinds = Some(vec![ActionKind::Mock, ActionKind::Context]);
        given
    };
    let offered = |given: &Gathered| -> Vec<String> {
        let assembly = assemble(given);
        assert_eq!(assembly.tools, given.tools, "whoever calls it all the same is told why not");
        assembly.request.tools.into_iter().map(|spec| spec.name).collect()
    };
    let (few, more) = (["pay", "compact_context"], ["look", "pay", "compact_context"]);
    assert_eq!(offered(&given(vec![said(1, None)])), few);
    let mut looked_before = given(looked());
    assert!(shown(&looked_before).contains(&"assistant: look(c3)".to_owned()));
    assert_eq!(offered(&looked_before), more, "providers refuse calls of tools that are not offered");
    looked_before.active = vec![TurnId::parse("t1").unwrap()];
    assert_eq!(offered(&looked_before), few, "another turn is at work, and its calls are not shown");
    // Its own calls come behind a context that is made anew.
    let own = Gathered { turn: TurnId::parse("t1").unwrap(), ..given(looked()) };
    assert_eq!(offered(&own), more);
    let mut free = given(vec![said(1, None)]);
    free.persona.constraints = AgentConstraints::default();
    assert_eq!(offered(&free).len(), free.tools.len());
}

#[test]
fn the_newest_calls_that_fit_are_shown_and_long_texts_shortened() {
    let long = "x".repeat(2_000);
    let turn = |n: u64| {
        let (id, call, at) = (format!("t{n}"), format!("c{n}"), 10 * n);
        [
            said(at, None),
            called(&id, 1, at + 1, "", &[call.as_str()]),
            result(&id, 1, at + 2, &call, &long),
            spoken(&id, 2, at + 3),
        ]
    };
    let history: Vec<LogRow> = (1..=3).flat_map(turn).chain([said(40, None)]).collect();
    // A quarter of half the window: 1,000 tokens, of which each call takes half and a little.
    let mut given = Gathered { model_max_tokens: 8_000, ..next(history.clone()) };
    let calls = |given: &Gathered| -> Vec<String> {
        let all = shown(given);
        all.into_iter().filter(|line| line.starts_with("assistant: look")).collect()
    };
    assert_eq!(calls(&given), ["assistant: look(c3)"]);
    given.model_max_tokens = 200_000;
    assert_eq!(calls(&given).len(), 3);
    assert_eq!(shown(&Gathered { model_max_tokens: 100, ..next(history) }).len(), 8, "what was said stays");
    let huge = vec![
        said(1, None),
        called("t1", 1, 2, "", &["c1"]),
        result("t1", 1, 3, "c1", &"y".repeat(700_000)),
        spoken("t1", 2, 4),
        said(5, None),
    ];
    let lines = shown(&next(huge));
    let result = lines.iter().find(|line| line.starts_with("tool: c1=yyy")).expect("its beginning");
    assert!(result.len() < 5_000 && result.contains("characters left out"), "{}", result.len());
}

#[test]
fn a_turn_that_was_cut_off_leaves_no_call_without_a_result_and_no_result_without_an_answer() {
    let history =
        vec![said(1, None), called("t1", 1, 2, "", &["c1", "c2"]), result("t1", 1, 3, "c1", "one"), said(4, None)];
    let lines = shown(&next(history));
    assert_eq!(lines[2..4], ["assistant: look(c1) look(c2)", "tool: c1=one c2=no result of it is known"]);
    assert_eq!(lines[4..], ["assistant: [Nothing more was said in this turn.]", "user: said 4"]);
}

#[test]
fn work_in_the_background_is_shown_with_what_came_of_it() {
    let mut started = called("t1", 1, 2, "spoken 1", &["c1"]);
    let mut body = started.record.body.to_value();
    body["in_background"] = json!([["c1", "t1.1.0"]]);
    started.record.body = schemas::json::Json::of(&body);
    let late = json!({"operation_id": "t1.1.0", "tool": "look", "tool_call_id": "c1", "success": true, "result": "ok"});
    let history = vec![
        said(1, None),
        started,
        spoken("t1", 1, 3),
        said(4, None),
        of("t1", 5, LogKind::AsyncResult, late),
        spoken("t1", 2, 6),
        said(7, None),
    ];
    let accepted = "accepted; it goes on in the background as operation t1.1.0";
    assert_eq!(
        shown(&next(history))[2..],
        [
            "assistant: spoken 1 look(c1)".to_owned(),
            format!("tool: c1={accepted}"),
            "user: said 4".to_owned(),
            "user: [Operation t1.1.0 (look) has finished]\nok".to_owned(),
            "assistant: spoken 2".to_owned(),
            "user: said 7".to_owned(),
        ]
    );
}

/// Some servers count anew in each reply, and some use letters that others refuse.
#[test]
fn ids_that_are_taken_or_strange_are_made_anew() {
    let turn = |n: u64, call: &str| {
        let (id, at) = (format!("t{n}"), 10 * n);
        [
            said(at, None),
            called(&id, 1, at + 1, "", &[call]),
            result(&id, 1, at + 2, call, &format!("r{n}")),
            spoken(&id, 2, at + 3),
        ]
    };
    let turns = [turn(1, "call_0"), turn(2, "call_0"), turn(3, "functions.look:0")];
    let history: Vec<LogRow> = turns.into_iter().flatten().chain([said(40, None)]).collect();
    let lines = shown(&next(history));
    let results: Vec<&String> = lines.iter().filter(|line| line.starts_with("tool: ")).collect();
    assert_eq!(results[0], "tool: call_0=r1");
    for (line, text) in results[1..].iter().zip(["r2", "r3"]) {
        assert!(line.starts_with("tool: made_") && line.ends_with(text), "{line}");
    }
}

#[test]
fn arguments_that_were_no_json_come_back_as_an_object() {
    let mut broken = called("t1", 1, 2, "", &["c1"]);
    let mut body = broken.record.body.to_value();
    body["tool_calls"][0]["input"] = json!({});
    body["tool_calls"][0]["invalid"] = json!("{\"q\": oops");
    broken.record.body = schemas::json::Json::of(&body);
    let history = vec![said(1, None), broken, result("t1", 1, 3, "c1", "no"), spoken("t1", 2, 4), said(5, None)];
    let messages = assemble(&next(history)).request.messages;
    assert_whole(&messages);
    let call = messages.iter().flat_map(|message| &message.content).find_map(Part::as_tool_call).expect("a call");
    assert_eq!((&call.input, &call.invalid), (&json!({"INVALID_JSON": "{\"q\": oops"}), &None));
}

/// A message that joined the turn is told where it came, as a note.
#[test]
fn what_joined_the_turn_is_not_told_twice() {
    let mut history = vec![said(1, None), said(2, None), said(3, None)];
    let mut note = of("now", 4, LogKind::Note, json!({"text": "said 2", "message_id": "m2", "from": "guidance"}));
    let lines = |given: &Gathered| shown(given)[1..].to_vec();
    history.push(note.clone());
    let mut given = next(history.clone());
    given.input = said(3, None).record.body.to().unwrap();
    assert_eq!(lines(&given), ["user: said 1", "user: said 3"]);
    note.record.turn_id = Some(TurnId::parse("t1").unwrap());
    history[3] = note;
    given.history = history;
    assert_eq!(lines(&given), ["user: said 1", "user: said 2", "user: said 3"], "of another turn it is a message");
}
