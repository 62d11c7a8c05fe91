//! Programs in Deno (`ops/mcp-servers deno`).

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use domain::tool::ResolvedTool;
use schemas::limits::{CODE_MS_MAX, CODE_OUTPUT_BYTES_MAX, TOOL_RESULT_BYTES_MAX};

use super::bridge::{execution, tool};
use super::*;
use crate::action::code::{source, time_of, told};

async fn run(code: &str, timeout_ms: u64) -> Result<Value, ActionFailure> {
    with(&[], code, timeout_ms).await
}

async fn with(tools: &[ResolvedTool], code: &str, timeout_ms: u64) -> Result<Value, ActionFailure> {
    static DENO: OnceLock<PathBuf> = OnceLock::new();
    let deno = DENO.get_or_init(|| super::program("deno")).clone();
    let code_config = CodeConfig { deno: Some(deno), allow_net: Vec::new() };
    let mut asked = execution(tools, code);
    asked.timeout_ms = timeout_ms;
    actions(ActionsConfig { code: code_config, ..config(true) }).run(&asked).await
}

#[tokio::test]
async fn a_program_says_what_it_prints() {
    let answer = run("const n: number = 6; console.log(n * 7); console.error('aside')", 20_000).await.unwrap();
    assert_eq!(answer, json!({"stdout": "42\n", "stderr": "aside\n"}));
    let failed = run("console.log('so far'); throw new Error('broken')", 20_000).await.unwrap_err();
    assert_eq!((failed.error.code, failed.trouble), (ToolErrorCode::ExecutionFailed, None));
    assert!(failed.error.message.contains("broken"), "{}", failed.error.message);
}

#[tokio::test]
async fn it_sees_its_folder_and_nothing_else() {
    let probes = "const told: string[] = [];
        const attempt = async (name: string, what: () => unknown) => {
            try { await what(); told.push(name + ' yes'); } catch (e) { told.push(name + ' ' + (e as Error).name); } };
        await attempt('own', () => { Deno.writeTextFileSync('a', 'x'); return Deno.readTextFileSync('a'); });
        await attempt('file', () => Deno.readTextFileSync('/etc/passwd'));
        await attempt('env', () => Deno.env.get('PATH'));
        await attempt('run', () => new Deno.Command('ls').outputSync());
        await attempt('net', () => Deno.connect({hostname: '127.0.0.1', port: 80}));
        await attempt('import', () => import('https://example.org/x.ts'));
        console.log(told.join('\\n'));";
    let answer = run(probes, 20_000).await.unwrap();
    let told = answer["stdout"].as_str().unwrap();
    for line in ["own yes", "file NotCapable", "env NotCapable", "run NotCapable", "net NotCapable"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(!told.contains("import yes"), "{told}");
}

#[tokio::test]
async fn it_calls_the_tools_of_its_agent() {
    let code = "const found = await tools.call('search', {q: 'grüße'});
        console.log(JSON.stringify(found), import.meta.main);
        try { await tools.pay({}); } catch (e) { console.log(e instanceof Error, e.name, e.code, e.message); }
        const many = await Promise.allSettled(Array.from({length: 40}, (_, i) => tools.search({q: String(i)})));
        console.log(many.filter((one) => one.status === 'fulfilled').length);
        console.log(many.slice(23).every((one) => one.reason.code === 'TOOL_CALL_LIMIT'));";
    let tools = [tool("search", json!({})), tool("pay", json!({"effect_class": "at_most_once"}))];
    let answer = with(&tools, code, 20_000).await.unwrap();
    let stdout: Vec<&str> = answer["stdout"].as_str().unwrap().lines().collect();
    assert_eq!(stdout[0], "{\"q\":\"grüße\"} true");
    assert!(stdout[1].starts_with("true ToolError PERMISSION_DENIED pay cannot be called"), "{stdout:?}");
    // Two calls were made before.
    assert_eq!(stdout[2..], ["23", "true"]);
    let calls = answer["calls"].as_array().unwrap();
    assert_eq!((&calls[0]["tool"], &calls[0]["ok"]), (&json!("search"), &json!(true)));
    assert_eq!((&calls[1]["tool"], &calls[1]["error"]), (&json!("pay"), &json!("PERMISSION_DENIED")));
    assert_eq!(calls[25]["error"], "TOOL_CALL_LIMIT");
}

#[tokio::test]
async fn a_failure_tells_what_was_called_before_it() {
    let code = "await tools.search({q: 'x'});\nawait tools.pay({});";
    let tools = [tool("search", json!({})), tool("pay", json!({"effect_class": "at_most_once"}))];
    let message = with(&tools, code, 20_000).await.unwrap_err().error.message;
    assert!(message.starts_with("after calls of search (ok), pay (PERMISSION_DENIED): the program ended"), "{message}");
    assert!(message.contains("ToolError: pay cannot be called"), "{message}");
    // The lines of a program are its own.
    let failed = run("\nthrow new Error('second line')", 20_000).await.unwrap_err();
    assert!(failed.error.message.contains("program.ts:2"), "{}", failed.error.message);
}

#[tokio::test]
async fn time_size_and_output_have_limits() {
    let endless = run("while (true) {}", 1_500).await.unwrap_err();
    assert_eq!(endless.error.code, ToolErrorCode::Timeout);
    let loud = run("for (;;) console.log('x'.repeat(10000))", 20_000).await.unwrap_err();
    assert!(loud.error.message.contains("print less"), "{}", loud.error.message);
    let long = run(&"x".repeat(60_000), 20_000).await.unwrap_err();
    assert_eq!(long.error.code, ToolErrorCode::InvalidInput);
}

/// Arrays of bytes are no part of the heap that Deno bounds.
#[tokio::test]
async fn files_have_a_limit_however_they_are_written() {
    let large = "const mib = new Uint8Array(1 << 20);
        for (let n = 0; n < 4096; n++) {
            Deno.writeFileSync('f' + (n >> 5), mib, {append: true}); await new Promise((go) => setTimeout(go, 2)); }";
    let many =
        "for (let n = 0; n < 200_000; n++) { Deno.mkdirSync('d' + n); Deno.writeTextFileSync('d' + n + '/f', ''); }
        await new Promise((go) => setTimeout(go, 10_000));";
    let removed = "const mib = new Uint8Array(1 << 20), held = [];
        for (let n = 0; n < 4096; n++) {
            if (n % 32 === 0) { held.push(Deno.openSync('f', {create: true, write: true})); Deno.removeSync('f'); }
            held.at(-1).writeSync(mib); await new Promise((go) => setTimeout(go, 2)); }";
    for program in [large, many, removed] {
        let failed = run(program, 40_000).await.unwrap_err();
        assert_eq!(failed.error.code, ToolErrorCode::ExecutionFailed, "{}", failed.error.message);
        assert!(failed.error.message.contains("bytes of files"), "{}", failed.error.message);
    }
    // One that is faster than the look ends, too.
    let at_once = "const much = new Uint8Array(100 << 20); for (;;) Deno.writeFileSync('f', much, {append: true});";
    let failed = run(at_once, 40_000).await.unwrap_err();
    assert_eq!(failed.error.code, ToolErrorCode::ExecutionFailed, "{}", failed.error.message);
    let little = "Deno.writeFileSync('f', new Uint8Array(32 << 20)); await new Promise((go) => setTimeout(go, 500));";
    assert!(run(little, 20_000).await.is_ok(), "half of it");
}

#[tokio::test]
async fn memory_has_a_limit() {
    let code = "const all = [];\nfor (;;) all.push(new Uint8Array(50_000_000).fill(1));";
    let greedy = run(code, 60_000).await.unwrap_err();
    assert_eq!(greedy.error.code, ToolErrorCode::ExecutionFailed);
    assert!(greedy.error.message.contains("allocation failed"), "{}", greedy.error.message);
}

#[test]
fn what_does_not_fit_a_result_is_cut_and_the_calls_are_kept() {
    let calls = vec![json!({"tool": "search", "ok": true, "ms": 3}); 26];
    let answer = |stdout: &str, stderr: &str| told(Ok((stdout.to_owned(), stderr.to_owned())), calls.clone()).unwrap();
    let most = CODE_OUTPUT_BYTES_MAX / 2;
    // Some take more room within JSON, and some of several bytes must not be cut in two.
    for text in ["x", "\n", "\u{1}", "\"", "ü", "\u{fffd}"].map(|one| one.repeat(most / one.len())) {
        let answer = answer(&text, &text);
        assert!(answer.to_string().len() <= TOOL_RESULT_BYTES_MAX, "{} bytes", answer.to_string().len());
        assert_eq!(answer["calls"].as_array(), Some(&calls));
        for stream in ["stdout", "stderr"] {
            let printed = answer[stream].as_str().unwrap();
            assert!(printed.contains("more bytes were printed") && printed.starts_with(&text[..102]), "{stream}");
        }
    }
    // What one does not need is the other one's.
    let text = "x".repeat(most);
    assert_eq!(answer("few", &text), json!({"stdout": "few", "stderr": text, "calls": calls}));
    assert_eq!(told(Ok((text.clone(), String::new())), Vec::new()).unwrap(), json!({"stdout": text, "stderr": ""}));
    // All that may be printed, on one stream: more than a result has room for.
    let cut = answer(&"x".repeat(CODE_OUTPUT_BYTES_MAX), "");
    let printed = cut["stdout"].as_str().unwrap();
    assert!(printed.len() > most && printed.contains("more bytes were printed"), "{} bytes", printed.len());
}

#[test]
fn a_line_that_names_an_interpreter_is_a_comment() {
    let whole = source("#!/usr/bin/env -S deno run\nthrow 1");
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!((lines.len(), lines[1]), (2, "throw 1"));
    assert!(lines[0].ends_with(" ///usr/bin/env -S deno run"), "{}", lines[0]);
    assert!(source("throw '#!'").ends_with(" throw '#!'"), "nothing else is one");
}

#[test]
fn a_program_ends_before_its_operation() {
    let times = [(0, 1), (1, 1), (1_500, 750), (5_000, 4_000), (CODE_MS_MAX + 10_000, CODE_MS_MAX)];
    for (operation, program) in times {
        assert_eq!(time_of(operation), Duration::from_millis(program));
    }
}

#[tokio::test]
async fn without_deno_the_answer_says_so() {
    let code = CodeConfig { deno: Some("/no/such/deno".into()), allow_net: Vec::new() };
    let asked = call(ActionKind::Code, json!({}), json!({"code": "1"}));
    let failed = actions(ActionsConfig { code, ..config(true) }).run(&asked).await.unwrap_err();
    assert_eq!((failed.error.code, failed.may_have_happened), (ToolErrorCode::NotFound, false));
    assert!(failed.error.message.contains("STEPFLEET_DENO"), "{}", failed.error.message);
}
