//! A model's server in this process: replies in the streamed format of OpenAI's chat completions, at a
//! given pace. Each piece says when it was sent, and each call is noted with its times: what a turn
//! takes besides its model is told by this server, not by the fleet that is measured.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// The fleet's profile of this model.
pub const PROFILE: &str = "bench";
/// A message with this is answered with a call of a tool.
pub const LOOK: &str = "Look up which tea I like.";

/// A call of the model. What it takes to get the request there and the end of the answer back is not
/// the model's time.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// When the request was there, whole.
    pub came: Instant,
    /// When the answer was ready, its end not sent yet.
    pub answered: Instant,
}

struct Desk {
    since: Instant,
    pieces: AtomicUsize,
    gap_us: AtomicU64,
    calls: Mutex<Vec<Call>>,
}

pub struct Model {
    base: String,
    desk: Arc<Desk>,
}

impl Model {
    pub async fn start(address: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).await.with_context(|| format!("the model's address {address}"))?;
        let base = format!("http://{}/v1", listener.local_addr().context("a port")?);
        let desk = Arc::new(Desk {
            since: Instant::now(),
            pieces: AtomicUsize::new(1),
            gap_us: AtomicU64::new(0),
            calls: Mutex::default(),
        });
        let served = Arc::clone(&desk);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let desk = Arc::clone(&served);
                tokio::spawn(async move {
                    if let Err(error) = serve(stream, &desk).await {
                        eprintln!("the model's server: {error:#}");
                    }
                });
            }
        });
        Ok(Self { base, desk })
    }

    /// How many pieces each reply has from now on, and the time between two of them.
    pub fn pace(&self, pieces: usize, gap: Duration) {
        self.desk.pieces.store(pieces, Ordering::Relaxed);
        self.desk.gap_us.store(gap.as_micros() as u64, Ordering::Relaxed);
    }

    /// The configuration file of a fleet that uses it.
    pub fn settings(&self) -> String {
        format!("[models.{PROFILE}]\nprovider = \"openai\"\nmodel = \"bench\"\nbase_url = \"{}\"\n", self.base)
    }

    /// When this piece was sent.
    pub fn sent(&self, piece: &str) -> Result<Instant> {
        let micros = piece.trim().parse().with_context(|| format!("a piece {piece:?} without its time"))?;
        Ok(self.desk.since + Duration::from_micros(micros))
    }

    /// The calls since this was asked last, in the order of their ends.
    pub async fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.desk.calls.lock().await)
    }
}

/// Answers one request after the other, and keeps the connection, as servers of models do.
async fn serve(stream: TcpStream, desk: &Desk) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(body) = request(&mut stream).await? {
        answer(&mut stream, &body, desk).await?;
    }
    Ok(())
}

async fn answer(stream: &mut BufReader<TcpStream>, body: &[u8], desk: &Desk) -> Result<()> {
    let came = Instant::now();
    let asked: Value = serde_json::from_slice(body).context("the request")?;
    let looks = wants_tool(&asked);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    if looks {
        send(stream, &chunk(&desk.tool_call(), "null"), "").await?;
    } else {
        desk.tell(stream).await?;
    }
    let usage = r#"data: {"id":"b","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
    let finish = chunk("{}", if looks { r#""tool_calls""# } else { r#""stop""# });
    // Noted before the end is sent: who has the answer finds the call here.
    desk.calls.lock().await.push(Call { came, answered: Instant::now() });
    send(stream, &format!("{finish}{usage}\n\ndata: [DONE]\n\n"), "0\r\n\r\n").await
}

/// One chunk of the transfer (RFC 9112, 7.1) and what follows it.
async fn send(stream: &mut BufReader<TcpStream>, text: &str, after: &str) -> Result<()> {
    let written = format!("{:x}\r\n{text}\r\n{after}", text.len());
    Ok(stream.write_all(written.as_bytes()).await?)
}

/// The body of a request; `None` if the connection ends before one has come.
async fn request(stream: &mut BufReader<TcpStream>) -> Result<Option<Vec<u8>>> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().context("the length of the request")?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(body))
}

/// Whether the last word is the user's, and asks for a tool. A tool's result is answered with a text.
fn wants_tool(request: &Value) -> bool {
    let last = request["messages"].as_array().and_then(|messages| messages.last());
    last.is_some_and(|last| last["role"] == "user" && last["content"].to_string().contains(LOOK))
}

impl Desk {
    /// The text of a reply, piece by piece.
    async fn tell(&self, stream: &mut BufReader<TcpStream>) -> Result<()> {
        let gap = Duration::from_micros(self.gap_us.load(Ordering::Relaxed));
        let mut next = tokio::time::Instant::now();
        for _ in 0..self.pieces.load(Ordering::Relaxed) {
            if !gap.is_zero() {
                next += gap;
                tokio::time::sleep_until(next).await;
            }
            let delta = format!(r#"{{"content":"{} "}}"#, self.since.elapsed().as_micros());
            send(stream, &chunk(&delta, "null"), "").await?;
        }
        Ok(())
    }

    /// A call of a tool that every agent has, under an id of its own.
    fn tool_call(&self) -> String {
        let function = json!({"name": "memory_search", "arguments": r#"{"query":"tea"}"#});
        let id = format!("call-{}", self.since.elapsed().as_micros());
        json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": function}]}).to_string()
    }
}

fn chunk(delta: &str, finish: &str) -> String {
    let choice = format!(r#"{{"index":0,"delta":{delta},"finish_reason":{finish}}}"#);
    format!("data: {{\"id\":\"b\",\"object\":\"chat.completion.chunk\",\"choices\":[{choice}]}}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_called_once_for_what_the_user_says() {
        let user = json!({"role": "user", "content": format!("ana: {LOOK}")});
        let result = json!({"role": "tool", "tool_call_id": "call-1", "content": "[]"});
        assert!(wants_tool(&json!({"messages": [user]})));
        assert!(!wants_tool(&json!({"messages": [user, result]})));
        assert!(!wants_tool(&json!({"messages": [user, {"role": "user", "content": "Which tea?"}]})));
        assert!(!wants_tool(&json!({})));
    }
}
