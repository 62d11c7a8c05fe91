//! What the runner keeps of a step function's frames.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::harness::{Harness, assert_chain};

/// A step function over HTTP that answers each frame with `reply(frame)`; returns its address.
pub fn serve(reply: impl Fn(Value) -> Value + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let reply = std::sync::Arc::new(reply);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let reply = reply.clone();
            std::thread::spawn(move || while answer(&stream, reply.as_ref()).is_some() {});
        }
    });
    format!("http://{address}/step")
}

/// Answers one request; `None` once the connection is over.
fn answer(stream: &TcpStream, reply: &dyn Fn(Value) -> Value) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let text = reply(serde_json::from_slice(&body).ok()?).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", text.len());
    let mut writer = stream;
    writer.write_all(head.as_bytes()).ok()?;
    writer.write_all(text.as_bytes()).ok()
}

#[tokio::test]
async fn s23_tokens_are_kept_verbatim_and_form_a_chain() {
    let url = serve(|frame| {
        let step = frame["step"].as_str().unwrap_or_default().to_owned();
        let (next, done) = match step.as_str() {
            "4.2" => ("review/1", false),
            "review/1" => ("review/2", false),
            "review/2" => ("ende ü", true),
            _ => ("4.2", false),
        };
        json!({ "step": step, "next_step": next, "state": { "was": step }, "text": format!("at {step}"), "done": done })
    });
    let fleet = Harness::start().await;
    fleet.create("s23", json!({ "moniker": "http", "config": { "url": url } })).await;
    fleet.wait_status("s23", "completed").await;
    let steps = fleet.steps("s23").await;
    assert_chain(&steps);
    let tokens: Vec<&str> = steps.iter().map(|step| step["step_token"].as_str().unwrap()).collect();
    assert_eq!(tokens[1..], ["4.2", "review/1", "review/2"]);
    assert_eq!(steps.last().unwrap()["next_step_token"], "ende ü");
    assert_eq!(steps[2]["state"], json!({ "was": "review/1" }));
    assert_eq!(steps[2]["text"], "at review/1");
}

#[tokio::test]
async fn s24_done_ends_the_loop_only_if_it_is_meant_to() {
    let fleet = Harness::start().await;
    fleet.create("finite", json!({ "moniker": "count", "config": { "until": 4 } })).await;
    fleet.wait_status("finite", "completed").await;
    assert_eq!(fleet.steps("finite").await.len(), 4);
    let endless =
        json!({ "moniker": "count", "config": { "until": 4 }, "stop_on_done": false, "loop_interval_ms": 10 });
    fleet.create("endless", endless).await;
    assert_chain(&fleet.wait_steps("endless", 8).await);
    assert_eq!(fleet.status("endless").await, "running");
    fleet.create("bounded", json!({ "moniker": "count", "max_steps": 5 })).await;
    fleet.wait_status("bounded", "stopped").await;
    assert_eq!(fleet.steps("bounded").await.len(), 5);
    assert_eq!(fleet.session("bounded").await["stop_reason"], "max_steps");
}

#[tokio::test]
async fn s30_a_models_frame_lands_in_the_step_and_a_malformed_one_is_an_error_step() {
    let script = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(script.path(), SCRIPT).expect("the script");
    let fleet = Harness::start_with(&["--script", script.path().to_str().expect("text")]).await;
    fleet.create("good", json!({ "moniker": "run_step", "task": "plan the garden" })).await;
    fleet.wait_status("good", "completed").await;
    let steps = fleet.steps("good").await;
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert_eq!(steps[0]["text"], "sow in spring");
    assert_eq!(steps[0]["data"], json!({ "beds": 3 }));
    assert_eq!(steps[0]["state"], json!({ "planned": true }));
    fleet.create("bad", json!({ "moniker": "run_step", "task": "speak in riddles" })).await;
    fleet.wait_status("bad", "error").await;
    let steps = fleet.steps("bad").await;
    assert_eq!(steps.last().map(|step| step["status"].clone()), Some(json!("error")), "{steps:?}");
    assert!(!fleet.session("bad").await["last_error"].is_null());
}

/// One good frame, and text that is no frame however often it is asked for.
const SCRIPT: &str = r#"{
  "rules": [
    { "when": { "contains": "plan the garden" },
      "reply": { "frame": { "step": "start", "next_step": "end", "state": { "planned": true },
                            "text": "sow in spring", "data": { "beds": 3 }, "done": true } } },
    { "when": { "contains": "speak in riddles" }, "reply": { "text": "what walks on four legs in the morning" } }
  ]
}"#;
