//! A model's server in this process: replies in the streamed format of OpenAI's chat completions, at a
//! given pace. Each piece says when it was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
struct Pace {
    since: Instant,
    pieces: Arc<AtomicUsize>,
    gap_us: Arc<AtomicU64>,
}

pub struct Model {
    base: String,
    pace: Pace,
}

impl Model {
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a port")?;
        let base = format!("http://{}/v1", listener.local_addr().context("a port")?);
        let pace = Pace { since: Instant::now(), pieces: Arc::default(), gap_us: Arc::default() };
        let served = pace.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let pace = served.clone();
                tokio::spawn(async move {
                    if let Err(error) = serve(stream, &pace).await {
                        eprintln!("the model's server: {error:#}");
                    }
                });
            }
        });
        Ok(Self { base, pace })
    }

    /// How many pieces each reply has from now on, and the time between two of them.
    pub fn pace(&self, pieces: usize, gap: Duration) {
        self.pace.pieces.store(pieces, Ordering::Relaxed);
        self.pace.gap_us.store(gap.as_micros() as u64, Ordering::Relaxed);
    }

    /// The configuration file of a fleet that uses it, as the profile `bench`.
    pub fn settings(&self) -> String {
        format!("[models.bench]\nprovider = \"openai\"\nmodel = \"bench\"\nbase_url = \"{}\"\n", self.base)
    }

    /// When this piece was sent.
    pub fn sent(&self, piece: &str) -> Result<Instant> {
        let micros = piece.trim().parse().with_context(|| format!("a piece {piece:?} without its time"))?;
        Ok(self.pace.since + Duration::from_micros(micros))
    }
}

/// Answers one request and closes: how connections are kept is not what is measured.
async fn serve(stream: TcpStream, pace: &Pace) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
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
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let mut next = tokio::time::Instant::now();
    for _ in 0..pace.pieces.load(Ordering::Relaxed) {
        next += Duration::from_micros(pace.gap_us.load(Ordering::Relaxed));
        tokio::time::sleep_until(next).await;
        let delta = format!(r#"{{"content":"{} "}}"#, pace.since.elapsed().as_micros());
        stream.write_all(chunk(&delta, "null").as_bytes()).await?;
    }
    stream.write_all(chunk("{}", r#""stop""#).as_bytes()).await?;
    let usage = r#"data: {"id":"b","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
    stream.write_all(format!("{usage}\n\ndata: [DONE]\n\n").as_bytes()).await?;
    stream.shutdown().await?;
    Ok(())
}

fn chunk(delta: &str, finish: &str) -> String {
    let choice = format!(r#"{{"index":0,"delta":{delta},"finish_reason":{finish}}}"#);
    format!("data: {{\"id\":\"b\",\"object\":\"chat.completion.chunk\",\"choices\":[{choice}]}}\n\n")
}
