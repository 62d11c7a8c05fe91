//! What programs call, spoken here as their prelude speaks; `code` has it with Deno.

use std::sync::Mutex;
use std::time::Duration;

use domain::tool::{Builtin, ResolvedTool, Target, Toolbox, resolve};
use schemas::definition::{ActionDef, AgentConstraints, Task, Tool};
use schemas::limits::{CODE_CALL_BYTES_MAX, CODE_CALLS_MAX, CODE_OUTPUT_BYTES_MAX};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex, split};

use super::*;
use crate::action::code::bridge::Bridge;
use crate::action::code::take;

const MARK: &str = "stepfleet-tools 0a1b";

fn merged(mut base: Value, more: Value) -> Value {
    base.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    base
}

/// An idempotent tool of kind `mock`, which answers its input.
pub fn tool(name: &str, more: Value) -> ResolvedTool {
    let least = json!({"id": name, "name": name, "description": "d", "target_type": "task", "target_id": "find",
        "effect_class": "idempotent",
        "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}});
    let tool: Tool = serde_json::from_value(merged(least, more)).expect("a tool");
    let steps = json!([{"ref": "a", "action_def_id": "lookup"}]);
    let task: Task = serde_json::from_value(json!({"id": "find", "name": "Find", "steps": steps})).expect("a task");
    let action = json!({"id": "lookup", "name": "Look up", "kind": "mock", "operation": "return"});
    let action: ActionDef = serde_json::from_value(action).expect("an action");
    resolve(tool, 1, Target::Task { task: &task, version: 1, action: Some((&action, 1)) })
}

/// The call that runs a program with these tools.
pub fn execution(tools: &[ResolvedTool], code: &str) -> ActionCall {
    let mut execution = call(ActionKind::Code, json!({}), json!({ "code": code }));
    execution.request.context.toolbox = Some(Toolbox::of(tools, &AgentConstraints::default()));
    execution
}

/// Keeps what it is asked, and answers with the key of the call. `never` does not answer, `late` does at
/// its second attempt, `slow` after 100 ms.
#[derive(Default)]
struct Heard(Mutex<Vec<ActionCall>>);

impl Heard {
    fn calls(&self) -> Vec<ActionCall> {
        self.0.lock().expect("unpoisoned").clone()
    }
}

#[async_trait]
impl ActionRunner for Heard {
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure> {
        self.0.lock().expect("unpoisoned").push(call.clone());
        match call.tool.as_str() {
            "never" => std::future::pending().await,
            "late" if call.attempt == 1 => Err(ActionFailure::trouble(Trouble::Network, "the line is down", true)),
            "slow" => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(json!({}))
            }
            _ => Ok(json!({"key": call.operation_id, "input": call.request.input})),
        }
    }
}

fn asks(id: usize, tool: &str, input: Value) -> String {
    format!("{MARK}{}\n", json!({"id": id, "tool": tool, "input": input}))
}

/// A program that prints this, waits for so many answers, and ends. What it printed of its own, and the
/// answers in the order of the calls.
async fn spoken(bridge: &Bridge<'_>, says: &str, answers: usize) -> (Result<String, ActionFailure>, Vec<Value>) {
    let (host, program) = duplex(1 << 16);
    let (output, input) = split(host);
    let (hears, mut speaks) = split(program);
    let talk = async move {
        let said = format!("{MARK}\n{says}");
        // A host that has heard enough does not listen to the end.
        _ = speaks.write_all(said.as_bytes()).await;
        let (mut lines, mut got) = (BufReader::new(hears).lines(), Vec::new());
        for _ in 0..answers {
            let line = lines.next_line().await.expect("readable").expect("an answer");
            got.push(serde_json::from_str::<Value>(&line).expect("JSON"));
        }
        _ = speaks.shutdown().await;
        got.sort_by_key(|answer| answer["id"].as_u64());
        got
    };
    let both = async { tokio::join!(bridge.serve(input, output), talk) };
    tokio::time::timeout(Duration::from_secs(60), both).await.expect("it ends")
}

#[tokio::test]
async fn a_call_is_carried_out_under_a_key_of_its_own() {
    let (heard, execution) = (Heard::default(), execution(&[tool("search", json!({}))], "x"));
    let bridge = Bridge::new(&heard, &execution);
    let says = asks(7, "search", json!({"q": "cats"})) + &asks(8, "search", json!({"q": "dogs"}));
    let (printed, answers) = spoken(&bridge, &says, 2).await;
    assert_eq!(printed.unwrap(), "");
    assert_eq!(answers[0], json!({"id": 7, "result": {"key": "t1.1.0.call.0", "input": {"q": "cats"}}}));
    assert_eq!(answers[1]["result"]["key"], "t1.1.0.call.1");
    let heard = heard.calls();
    assert_eq!((heard[0].effect_class, heard[0].attempt), (EffectClass::Idempotent, 1));
    assert_eq!(heard[0].request.context.agent_id, execution.request.context.agent_id);
    assert_eq!(heard[0].request.context.toolbox, None);
    let calls = bridge.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!((&calls[0]["tool"], &calls[0]["ok"]), (&json!("search"), &json!(true)));
    assert!(calls[0]["ms"].is_u64(), "{calls:?}");
}

#[tokio::test]
async fn what_a_program_may_not_call_is_refused_and_reaches_nobody() {
    let agent: Tool = serde_json::from_value(json!({"id": "ask", "name": "ask", "description": "d",
        "target_type": "agent", "target_id": "ben", "input_schema": {"type": "object"}}))
    .expect("a tool");
    let mut tools = vec![
        tool("gated", json!({"requires_approval": {"expires_s": 60}})),
        tool("background", json!({"async": true})),
        tool("pay", json!({"effect_class": "at_most_once"})),
        tool("search", json!({})),
        resolve(agent, 1, Target::Agent { version: 1 }),
    ];
    tools.extend([Builtin::ExecuteCode.resolved(), Builtin::CompactContext.resolved()]);
    let (heard, execution) = (Heard::default(), execution(&tools, "x"));
    let bridge = Bridge::new(&heard, &execution);
    let refused = ["gated", "background", "pay", "ask", "execute_code", "compact_context"];
    let mut says: String = refused.iter().enumerate().map(|(id, name)| asks(id, name, json!({}))).collect();
    says += &asks(6, "serch", json!({}));
    says += &asks(7, "search", json!({"q": 7}));
    says += &asks(8, "search", json!("cats"));
    let (_, answers) = spoken(&bridge, &says, 9).await;
    for (name, answer) in refused.iter().zip(&answers) {
        assert_eq!(answer["error"]["code"], "PERMISSION_DENIED", "{answer}");
        let message = answer["error"]["message"].as_str().expect("words");
        assert!(message.starts_with(&format!("{name} cannot be called by a program")), "{message}");
    }
    assert_eq!(answers[6]["error"]["code"], "NOT_FOUND");
    assert!(answers[6]["error"]["message"].as_str().expect("words").contains("\"search\""), "{}", answers[6]);
    assert_eq!(
        (&answers[7]["error"]["code"], &answers[8]["error"]["code"]),
        (&json!("INVALID_INPUT"), &json!("INVALID_INPUT"))
    );
    assert!(heard.calls().is_empty());
    assert_eq!(bridge.calls()[6]["error"], "NOT_FOUND");
}

#[tokio::test]
async fn without_tools_every_call_is_refused() {
    let (heard, execution) = (Heard::default(), call(ActionKind::Code, json!({}), json!({"code": "x"})));
    let (_, answers) = spoken(&Bridge::new(&heard, &execution), &asks(1, "search", json!({})), 1).await;
    assert_eq!(answers[0]["error"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn calls_beyond_the_limit_are_refused() {
    let (heard, execution) = (Heard::default(), execution(&[tool("search", json!({}))], "x"));
    let bridge = Bridge::new(&heard, &execution);
    let count = CODE_CALLS_MAX + 300;
    let says: String = (0..count).map(|id| asks(id, "search", json!({"q": "x"}))).collect();
    let (_, answers) = spoken(&bridge, &says, count).await;
    let (made, beyond) = answers.split_at(CODE_CALLS_MAX);
    assert!(made.iter().all(|answer| answer.get("result").is_some()), "{made:?}");
    assert!(beyond.iter().all(|answer| answer["error"]["code"] == "TOOL_CALL_LIMIT"), "{beyond:?}");
    assert_eq!(heard.calls().len(), CODE_CALLS_MAX);
    assert_eq!(bridge.calls().len(), CODE_CALLS_MAX + 1, "the list has an end, too");
}

#[tokio::test]
async fn what_is_printed_is_kept_apart_from_calls() {
    let (heard, execution) = (Heard::default(), execution(&[tool("search", json!({}))], "x"));
    let bridge = Bridge::new(&heard, &execution);
    // A mark alone makes no call, and neither does the mark of somebody else.
    let foreign = "stepfleet-tools ffff{\"id\":1,\"tool\":\"search\",\"input\":{}}\n";
    let says = format!("one, {}two\n{MARK} is no call\n{foreign}grüße", asks(1, "search", json!({})));
    let (printed, answers) = spoken(&bridge, &says, 1).await;
    assert_eq!(printed.unwrap(), format!("one, two\n{MARK} is no call\n{foreign}grüße"));
    assert_eq!((answers.len(), heard.calls().len()), (1, 1));
    let loud = "x".repeat(CODE_OUTPUT_BYTES_MAX);
    let failed = spoken(&bridge, &loud, 0).await.0.unwrap_err();
    assert!(failed.error.message.contains("print less"), "{}", failed.error.message);
}

#[tokio::test]
async fn what_is_printed_has_one_limit_for_both_streams() {
    let (heard, execution) = (Heard::default(), execution(&[], "x"));
    let told = |much: usize| "x".repeat(much);
    let bridge = Bridge::new(&heard, &execution);
    let (most, half) = (CODE_OUTPUT_BYTES_MAX, CODE_OUTPUT_BYTES_MAX / 2);
    let (printed, _) = spoken(&bridge, &told(most), 0).await;
    assert_eq!(printed.map(|text| text.len()).ok(), Some(most), "one may have all of it");
    let bridge = Bridge::new(&heard, &execution);
    let (printed, _) = spoken(&bridge, &told(half), 0).await;
    assert!(printed.is_ok());
    let aside = told(most - half);
    assert_eq!(take(aside.as_bytes(), &bridge).await.map(|text| text.len()).ok(), Some(most - half));
    let beyond = take(&b"x"[..], &bridge).await.unwrap_err();
    assert!(beyond.error.message.contains(&format!("more than {most} bytes")), "{}", beyond.error.message);
    let failed = spoken(&Bridge::new(&heard, &execution), &told(most + 1), 0).await.0.unwrap_err();
    assert!(failed.error.message.contains("print less"), "{}", failed.error.message);
}

#[tokio::test]
async fn inputs_have_a_size() {
    let (heard, execution) = (Heard::default(), execution(&[tool("search", json!({}))], "x"));
    let bridge = Bridge::new(&heard, &execution);
    // The last one is deeper than JSON is read at all.
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let nested =
        |id: usize, levels| format!("{MARK}{{\"id\":{id},\"tool\":\"search\",\"input\":{{\"a\":{}}}}}\n", deep(levels));
    let says = asks(0, "search", json!({"q": "x".repeat(CODE_CALL_BYTES_MAX)})) + &nested(1, 100) + &nested(2, 200);
    let (_, answers) = spoken(&bridge, &says, 3).await;
    assert!(answers.iter().all(|answer| answer["error"]["code"] == "INVALID_INPUT"), "{answers:?}");
    assert!(heard.calls().is_empty());
}

#[tokio::test]
async fn an_input_that_is_too_large_counts_as_a_call() {
    let (heard, execution) = (Heard::default(), execution(&[tool("search", json!({}))], "x"));
    let bridge = Bridge::new(&heard, &execution);
    let large = json!({"q": "x".repeat(CODE_CALL_BYTES_MAX)});
    let says = asks(0, "search", large) + &asks(1, "search", json!({"q": "x"}));
    let (_, answers) = spoken(&bridge, &says, 2).await;
    assert_eq!(answers[0]["error"]["code"], "INVALID_INPUT");
    assert_eq!(answers[1]["result"]["key"], "t1.1.0.call.1");
    assert_eq!((&bridge.calls()[0]["error"], heard.calls().len()), (&json!("INVALID_INPUT"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_reads_no_answers_holds_up_nothing_it_has_called() {
    let (heard, execution) = (Heard::default(), execution(&[tool("search", json!({})), tool("slow", json!({}))], "x"));
    let bridge = Bridge::new(&heard, &execution);
    // The first answer fills what the program does not read.
    let (host, mut program) = duplex(1 << 10);
    let (output, input) = split(host);
    let said = format!("{MARK}\n{}", asks(1, "search", json!({"q": "x".repeat(4_000)})) + &asks(2, "slow", json!({})));
    let talk = async {
        program.write_all(said.as_bytes()).await.expect("somebody listens");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let calls = bridge.calls();
        program.shutdown().await.expect("somebody listens");
        calls
    };
    let both = async { tokio::join!(bridge.serve(input, output), talk) };
    let (printed, calls) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("it ends");
    assert_eq!(printed.unwrap(), "");
    assert!(calls.len() == 2 && calls.iter().all(|call| call["ok"] == true), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn eight_calls_are_carried_out_at_a_time() {
    let (heard, execution) = (Heard::default(), execution(&[tool("slow", json!({}))], "x"));
    let bridge = Bridge::new(&heard, &execution);
    let says: String = (0..20).map(|id| asks(id, "slow", json!({}))).collect();
    let (_, answers) = spoken(&bridge, &says, 20).await;
    assert!(answers.iter().all(|answer| answer.get("result").is_some()), "{answers:?}");
    let took: Vec<_> = bridge.calls().iter().map(|call| call["ms"].as_u64().expect("a time")).collect();
    let rounds = |number: u64| took.iter().filter(|ms| **ms / 100 == number).count();
    assert_eq!([rounds(1), rounds(2), rounds(3)], [8, 8, 4], "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn attempts_and_times_are_those_of_the_tool() {
    let retry = json!({"retry": {"max_attempts": 2, "backoff_ms": 100, "timeout_ms": 1_000}});
    let once = json!({"retry": {"max_attempts": 1, "backoff_ms": 100, "timeout_ms": 1_000}});
    let tools = [tool("late", retry), tool("never", once)];
    let (heard, execution) = (Heard::default(), execution(&tools, "x"));
    let bridge = Bridge::new(&heard, &execution);
    let says = asks(1, "late", json!({})) + &asks(2, "never", json!({}));
    let (_, answers) = spoken(&bridge, &says, 2).await;
    assert_eq!(answers[0]["result"]["key"], "t1.1.0.call.0");
    assert_eq!((&answers[1]["error"]["code"], &answers[1]["error"]["retriable"]), (&json!("TIMEOUT"), &json!(true)));
    let mut made: Vec<_> = heard.calls().iter().map(|call| (call.operation_id.to_string(), call.attempt)).collect();
    made.sort();
    let expected = [("t1.1.0.call.0", 1), ("t1.1.0.call.0", 2), ("t1.1.0.call.1", 1)];
    assert_eq!(made, expected.map(|(key, attempt)| (key.to_owned(), attempt)));
    let took: Vec<_> = bridge.calls().iter().map(|call| call["ms"].as_u64().expect("a time")).collect();
    assert!((100..110).contains(&took[0]) && (1_000..1_010).contains(&took[1]), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_ends_waits_for_nothing() {
    let (heard, execution) = (Heard::default(), execution(&[tool("never", json!({}))], "x"));
    let bridge = Bridge::new(&heard, &execution);
    let (printed, _) = spoken(&bridge, &(asks(1, "never", json!({})) + "done\n"), 0).await;
    assert_eq!(printed.unwrap(), "done\n");
    assert_eq!(bridge.calls(), [json!({"tool": "never", "error": "ABANDONED", "ms": 0})]);
}
