//! The other side of the `http` moniker, and of tools that agents call: it notes every call, is slow
//! now and then, fails, or hangs up after the deed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::diary::now_ms;
use crate::seen::Call;

/// Steps until it says that it is done.
const STEPS: u64 = 12;
const BODY_MAX: usize = 1 << 20;

pub struct StepServer {
    pub port: u16,
    noted: Arc<Mutex<Noted>>,
}

#[derive(Default)]
struct Noted {
    /// Of the moniker, and of tools.
    calls: Vec<Call>,
    tools: Vec<Call>,
}

struct Request {
    tool: bool,
    once: bool,
    key: String,
    session: String,
    body: Value,
}

impl StepServer {
    /// # Errors
    /// No port can be had.
    pub async fn open(seed: u64) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a port for the step server")?;
        let port = listener.local_addr()?.port();
        let noted = Arc::new(Mutex::new(Noted::default()));
        let kept = noted.clone();
        tokio::spawn(async move {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, kept.clone(), seed));
                }
            }
        });
        Ok(Self { port, noted })
    }

    pub fn calls(&self) -> Vec<Call> {
        self.noted.lock().map(|noted| noted.calls.clone()).unwrap_or_default()
    }

    pub fn tools(&self) -> Vec<Call> {
        self.noted.lock().map(|noted| noted.tools.clone()).unwrap_or_default()
    }
}

async fn serve(stream: TcpStream, noted: Arc<Mutex<Noted>>, seed: u64) {
    let mut stream = BufReader::new(stream);
    while let Ok(Some(request)) = read(&mut stream).await {
        let fate = fate(&request.key, seed);
        // Noted first: what is answered has happened.
        let answer = note(&noted, &request, fate);
        tokio::time::sleep(Duration::from_millis(if fate % 10 == 9 { 1_500 } else { fate % 7 * 8 })).await;
        let (status, body) = match answer {
            "dropped" => return,
            "failed" => ("503 Service Unavailable", json!({"error": "as planned"})),
            _ if request.tool => ("200 OK", json!({"done": request.key})),
            _ => ("200 OK", frame(&request.body)),
        };
        let body = body.to_string();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
            return;
        }
    }
}

/// What becomes of a call. A tool that is called again is answered: a turn has few attempts.
fn note(noted: &Mutex<Noted>, request: &Request, fate: u64) -> &'static str {
    let Request { key, session, once, tool, .. } = request;
    let Ok(mut noted) = noted.lock() else { return "dropped" };
    let calls = if *tool { &mut noted.tools } else { &mut noted.calls };
    let again = *tool && calls.iter().any(|call| call.key == *key);
    let failures = if *tool { 12 } else { 4 };
    let answer = match fate / failures {
        0 if !again => "dropped",
        1 if !again => "failed",
        _ => "answered",
    };
    calls.push(Call {
        key: key.clone(),
        session: session.clone(),
        once: *once,
        answer: answer.into(),
        at_ms: now_ms(),
    });
    answer
}

/// 0 to 199, the same for the same key: a repeat is answered alike, but for the first kinds of
/// failure, which would never end.
fn fate(key: &str, seed: u64) -> u64 {
    let mut hash = seed ^ 0xCBF2_9CE4_8422_2325;
    for byte in key.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    (hash >> 20) % 200
}

fn frame(given: &Value) -> Value {
    let done = given["state"]["k"].as_u64().unwrap_or(0) + 1;
    json!({"step": given["step"], "next_step": format!("k/{done}"), "state": {"k": done}, "text": format!("{done}"),
           "done": done >= STEPS})
}

/// The next request of a connection; none at its end.
async fn read(stream: &mut BufReader<TcpStream>) -> Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let (tool, once) = (line.contains("/tool/"), line.contains("/once"));
    let (mut key, mut session, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "idempotency-key" => key = value.trim().to_owned(),
            "x-stepfleet-session" => session = value.trim().to_owned(),
            "content-length" => length = value.trim().parse().context("content-length")?,
            _ => {}
        }
    }
    anyhow::ensure!(length <= BODY_MAX, "a body of {length} bytes");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Request { tool, once, key, session, body: serde_json::from_slice(&body)? }))
}
