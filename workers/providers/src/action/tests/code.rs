//! Programs in Deno (`ops/mcp-servers deno`).

use std::path::PathBuf;
use std::sync::OnceLock;

use super::*;

async fn run(code: &str, timeout_ms: u64) -> Result<Value, ActionFailure> {
    static DENO: OnceLock<PathBuf> = OnceLock::new();
    let deno = DENO.get_or_init(|| super::program("deno")).clone();
    let code_config = CodeConfig { deno: Some(deno), allow_net: Vec::new() };
    let mut asked = call(ActionKind::Code, json!({}), json!({ "code": code }));
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
