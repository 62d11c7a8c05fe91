//! Programs in Deno (`ops/mcp-servers deno`).

use std::path::PathBuf;
use std::sync::OnceLock;

use domain::tool::ResolvedTool;

use super::bridge::{execution, tool};
use super::*;

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

#[tokio::test]
async fn without_deno_the_answer_says_so() {
    let code = CodeConfig { deno: Some("/no/such/deno".into()), allow_net: Vec::new() };
    let asked = call(ActionKind::Code, json!({}), json!({"code": "1"}));
    let failed = actions(ActionsConfig { code, ..config(true) }).run(&asked).await.unwrap_err();
    assert_eq!((failed.error.code, failed.may_have_happened), (ToolErrorCode::NotFound, false));
    assert!(failed.error.message.contains("STEPFLEET_DENO"), "{}", failed.error.message);
}
