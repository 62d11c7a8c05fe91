//! Tools of the protocol's reference server (`ops/mcp-servers`), over both transports, and servers
//! that misbehave.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};

use super::*;
use crate::fake_server::{FakeServer, Say};

/// What happens does so well before.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The reference server's program.
fn everything() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| super::program("everything"))
}

fn with(server: McpServer) -> Actions {
    actions(ActionsConfig { mcp: BTreeMap::from([("there".to_owned(), server)]), ..config(true) })
}

fn stdio(command: &Path, args: &[&str]) -> McpServer {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    McpServer { command: Some(command.to_owned()), args, ..McpServer::default() }
}

fn shell(script: &str) -> McpServer {
    stdio(Path::new("/bin/sh"), &["-c", script])
}

fn tool(name: &str, input: Value) -> ActionCall {
    call(ActionKind::Mcp, json!({"server": "there", "tool": name}), input)
}

async fn speaks(actions: &Actions) {
    let tools = actions.servers().tools("there").await.expect("a list");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"echo") && names.contains(&"get-sum"), "{names:?}");
    let said = actions.run(&tool("echo", json!({"message": "grüße"}))).await.expect("an answer");
    assert_eq!(said, json!("Echo: grüße"));
    // Many at a time over one connection, each with its own answer.
    let sums = (0..20).map(|n| async move {
        let answer = actions.run(&tool("get-sum", json!({"a": n, "b": 1}))).await.expect("an answer");
        assert!(answer.as_str().expect("a text").contains(&format!("{}", n + 1)), "{answer}");
    });
    futures::future::join_all(sums).await;
    let wrong = actions.run(&tool("get-sum", json!({"a": "x"}))).await.unwrap_err();
    assert_eq!(wrong.trouble, None, "{}", wrong.error.message);
    let unknown = actions.run(&tool("no-such-tool", json!({}))).await.unwrap_err();
    assert_eq!(unknown.trouble, None, "{}", unknown.error.message);
}

#[tokio::test]
async fn the_reference_server_is_spoken_with_over_its_streams() {
    let actions = with(stdio(everything(), &["stdio"]));
    speaks(&actions).await;
    // It gets nothing of our environment but what it needs.
    let env = actions.run(&tool("get-env", json!({}))).await.expect("an answer");
    let env = env.as_str().expect("a text");
    assert!(env.contains("PATH") && !env.contains("CARGO_MANIFEST_DIR"), "{env}");
}

#[tokio::test]
async fn the_reference_server_is_spoken_with_over_http() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let mut command = tokio::process::Command::new(everything());
    command.arg("streamableHttp").env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = crate::action::group::Group::start(&mut command).expect("a server");
    let mut said = BufReader::new(server.child.stderr.take().expect("it is piped")).lines();
    let listens = async {
        while let Some(line) = said.next_line().await.expect("its words") {
            if line.contains("listening") {
                return;
            }
        }
        panic!("it ended");
    };
    tokio::time::timeout(WAIT_MAX, listens).await.expect("it listens");
    let url = Some(format!("http://127.0.0.1:{port}/mcp"));
    speaks(&with(McpServer { url, ..McpServer::default() })).await;
}

#[tokio::test]
async fn a_server_that_cannot_start_or_ends_is_trouble_and_tried_anew() {
    let failed = with(stdio(Path::new("/no/such/program"), &[])).run(&tool("x", json!({}))).await.unwrap_err();
    assert_eq!((failed.trouble, failed.may_have_happened), (Some(Trouble::Network), false));
    assert!(failed.error.message.contains("cannot be started"), "{}", failed.error.message);
    // It answers the greeting and ends at the first call; every connection is made anew.
    let greets = "read a; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; read b; read c; exit 3";
    let actions = with(shell(greets));
    for _ in 0..2 {
        let failed = actions.run(&tool("x", json!({}))).await.unwrap_err();
        assert_eq!((failed.trouble, failed.may_have_happened), (Some(Trouble::Network), true));
        assert!(failed.error.message.contains("it ended"), "{}", failed.error.message);
    }
}

#[tokio::test]
async fn noise_is_passed_over_and_floods_end_the_connection() {
    let noisy = "read a; echo starting up; echo '{\"method\":\"notifications/x\"}'; \
                 echo '{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"ping\"}'; \
                 echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; read b; read c; read d; \
                 echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]}}'; read e";
    assert_eq!(with(shell(noisy)).run(&tool("x", json!({}))).await.unwrap(), json!("fine"));
    let flood = "read a; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; read b; read c; yes x | tr -d '\\n'";
    let failed = with(shell(flood)).run(&tool("x", json!({}))).await.unwrap_err();
    assert!(failed.error.message.contains("bytes"), "{}", failed.error.message);
}

#[tokio::test]
async fn lists_of_tools_are_read_to_their_end_and_no_further() {
    let greets = "read a; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; read b; ";
    let page = |id: u64, result: Value| {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        format!("read c; case \"$c\" in *tools/list*) echo '{answer}';; esac; ")
    };
    let first = page(2, json!({"tools": [{"name": "a"}, {"name": "b"}], "nextCursor": "more"}));
    let last = "read c; case \"$c\" in *'\"cursor\":\"more\"'*) echo \
                '{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[{\"name\":\"c\"}]}}';; esac; read d";
    let actions = with(shell(&format!("{greets}{first}{last}")));
    let tools = actions.servers().tools("there").await.expect("a list");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let told = async |result: &str| {
        let endless = format!(
            "{greets}n=1; while read c; do n=$((n+1)); \
             echo \"{{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$n,\\\"result\\\":{result}}}\"; done"
        );
        with(shell(&endless)).servers().tools("there").await.unwrap_err().to_string()
    };
    let endless = told("{\\\"tools\\\":[],\\\"nextCursor\\\":\\\"x\\\"}").await;
    assert!(endless.contains("had not ended"), "{endless}");
    let many = format!("{{\\\"tools\\\":[{}{{}}],\\\"nextCursor\\\":\\\"x\\\"}}", "{},".repeat(99));
    let many = told(&many).await;
    assert!(many.contains("more than 1000 tools"), "{many}");
}

#[tokio::test]
async fn the_whole_family_of_a_server_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    // A grandchild that would go on for ever, and holds the pipe for as long as it lives.
    let script = format!(
        "sleep 1000000 > {} & read a; \
         echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}'; read b; read c; wait",
        pipe.display()
    );
    let actions = with(shell(&script));
    let opened = tokio::task::spawn_blocking(move || std::fs::File::open(pipe));
    let call = tool("x", json!({}));
    let mut held = tokio::select! {
        answer = actions.run(&call) => panic!("it does not answer: {answer:?}"),
        opened = tokio::time::timeout(WAIT_MAX, opened) => opened.expect("the grandchild runs").unwrap().expect("a pipe"),
    };
    drop(actions);
    let ended = tokio::task::spawn_blocking(move || std::io::Read::read(&mut held, &mut [0]));
    let read = tokio::time::timeout(WAIT_MAX, ended).await.expect("the grandchild ends").unwrap();
    assert_eq!(read.expect("a pipe"), 0, "nobody holds it any more");
}

#[tokio::test]
async fn a_forgotten_session_is_opened_again() {
    let greeting = || {
        Say::Answer(
            200,
            "content-type: application/json\r\nmcp-session-id: one\r\n",
            json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}}).to_string(),
        )
    };
    let accepted = || Say::Answer(202, "", String::new());
    let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "again"}]}});
    let server = FakeServer::start(vec![
        greeting(),
        accepted(),
        Say::Answer(404, "", String::new()),
        greeting(),
        accepted(),
        Say::Stream(vec![(0, ": hello\n\n".into()), (0, format!("event: message\ndata: {answer}\n\n"))], true),
    ])
    .await;
    let actions = with(McpServer { url: Some(format!("{}/mcp", server.url)), ..McpServer::default() });
    assert_eq!(actions.run(&tool("x", json!({}))).await.unwrap(), json!("again"));
    let got = server.requests();
    assert!(got[2].head.contains("mcp-session-id: one") && got[2].head.contains("mcp-protocol-version: 2025-06-18"));
    assert!(got[2].body.contains("default:t1.1.0"), "{}", got[2].body);
}

#[test]
fn settings_are_one_way_or_the_other() {
    let both = McpServer { url: Some("https://x.org".into()), ..shell("true") };
    for (server, told) in [
        (McpServer::default(), "give command"),
        (both, "stands beside"),
        (McpServer { url: Some("ftp://x".into()), ..McpServer::default() }, "must begin"),
        (McpServer { token_env: Some("T".into()), ..shell("true") }, "token_env"),
    ] {
        assert!(server.transport().unwrap_err().contains(told), "{server:?}");
    }
    assert!(shell("true").transport().is_ok());
}

#[tokio::test]
async fn unknown_servers_are_named() {
    let failed = actions(config(true)).run(&tool("x", json!({}))).await.unwrap_err();
    assert_eq!((failed.error.code, failed.may_have_happened), (ToolErrorCode::NotFound, false));
    assert!(failed.error.message.contains("none is configured"), "{}", failed.error.message);
}
