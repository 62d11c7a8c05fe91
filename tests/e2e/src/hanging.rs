//! A step function that never answers: `destroy` ends its session all the same, and soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Harness, assert_chain, wait};
use crate::outside;

/// A session that is told to stop has a grace of five seconds; the rest is for a busy machine.
const STOPPED_MAX: Duration = Duration::from_secs(15);
/// Calls that get an answer; the next one hangs.
const ANSWERED: usize = 3;

/// What the server of the step function has seen.
#[derive(Default)]
struct Seen {
    /// Calls that never get an answer.
    hanging: AtomicUsize,
    /// Those of them whose caller has hung up.
    given_up: AtomicUsize,
}

#[tokio::test]
async fn destroy_ends_a_session_whose_step_function_hangs() {
    let (url, seen) = serve().await;
    // One shard, so that the session beside it has the same owner.
    let mut fleet = Harness::start_with(&["--shards", "1"]).await;
    fleet.create("beside", json!({ "moniker": "count", "loop_interval_ms": 20 })).await;
    fleet.create("hangs", json!({ "moniker": "http", "config": { "url": url } })).await;
    wait("a call hangs", || async { (seen.hanging.load(Ordering::SeqCst) == 1).then_some(()) }).await;
    let beside = fleet.wait_steps("beside", 1).await.len();
    let asked = Instant::now();
    fleet.tell("hangs", "destroy", json!({ "reason": "it hangs" })).await;
    fleet.wait_status("hangs", "stopping").await;
    fleet.wait_status("hangs", "stopped").await;
    let took = asked.elapsed();
    assert!(took < STOPPED_MAX, "stopped after {took:?}");
    let meanwhile = fleet.steps("beside").await.len() - beside;
    assert!(meanwhile >= 5, "the session beside it made {meanwhile} steps in {took:?}");
    wait("the call is cut off", || async { (seen.given_up.load(Ordering::SeqCst) == 1).then_some(()) }).await;
    assert_eq!(seen.hanging.load(Ordering::SeqCst), 1, "the call was made once");
    check_history(&fleet).await;
    // It stays ended.
    assert!(fleet.stop().await.success(), "{}", fleet.log());
    fleet.up().await;
    assert_eq!(fleet.status("hangs").await, "stopped");
    assert_eq!(fleet.steps("hangs").await.len(), ANSWERED);
}

/// What was committed before the call that hangs is all there is, in the API as in LanceDB.
async fn check_history(fleet: &Harness) {
    let session = fleet.session("hangs").await;
    assert_eq!(session["stop_reason"], "destroyed", "{session}");
    let steps = fleet.steps("hangs").await;
    assert_chain(&steps);
    assert_eq!(steps.len(), ANSWERED, "the call that hangs is no step: {steps:?}");
    assert!(steps.iter().all(|step| step["status"] == "ok"), "{steps:?}");
    let (ok, out, err) = fleet.cli(&["tail", "hangs", "--json"]).await;
    assert!(ok, "{err}");
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<&str> = events
        .iter()
        .map(|event| event["data"]["status"].as_str().or(event["type"].as_str()).expect("a type"))
        .collect();
    assert_eq!(told, ["created", "running", "step", "step", "step", "stopping", "stopped", "end"], "{out}");
    let offsets: Vec<u64> = events.iter().map(|event| event["offset"].as_u64().expect("an offset")).collect();
    assert_eq!(offsets, [1, 2, 3, 4, 5, 6, 7, 7], "{out}");
    fleet.tell("beside", "destroy", json!({})).await;
    fleet.wait_status("beside", "stopped").await;
    fleet.wait_archived().await;
    let (ok, out, err) = fleet.cli(&["doctor", "--verify-history"]).await;
    assert!(ok, "{out}{err}");
    let committed = outside::committed(fleet, &["hangs", "beside"]).await;
    assert_eq!(committed["hangs"], ANSWERED as u64);
    outside::assert_gapless(&fleet.data_dir.join("history"), &committed).await;
}

/// A step function over HTTP that answers the first calls and accepts the others without a word.
async fn serve() -> (String, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/step", listener.local_addr().expect("an address"));
    let seen = Arc::new(Seen::default());
    let noted = seen.clone();
    tokio::spawn(async move {
        let mut calls = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            calls += 1;
            if calls <= ANSWERED {
                answer(&mut stream, calls).await.expect("a caller who listens");
                continue;
            }
            noted.hanging.fetch_add(1, Ordering::SeqCst);
            let noted = noted.clone();
            tokio::spawn(async move {
                // Ends when the caller hangs up.
                drop(stream.read_to_end(&mut Vec::new()).await);
                noted.given_up.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    (url, seen)
}

/// Takes one frame and sends the next one, on a connection that ends with it.
async fn answer(stream: &mut TcpStream, number: usize) -> std::io::Result<()> {
    let frame = read_frame(stream).await?;
    let next = format!("call/{number}");
    let out = json!({ "step": frame["step"], "next_step": next, "state": { "calls": number }, "done": false });
    let text = out.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    stream.write_all(format!("{head}content-length: {}\r\n\r\n{text}", text.len()).as_bytes()).await
}

async fn read_frame(stream: &mut TcpStream) -> std::io::Result<Value> {
    let mut request = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while line != "\r\n" {
        line.clear();
        if request.read_line(&mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    request.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body).expect("a frame"))
}
