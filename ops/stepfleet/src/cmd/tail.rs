//! `tail`: follows a session's committed events, each once and in order, over any number of
//! connections.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use futures::StreamExt;
use schemas::api::{StreamEvent, StreamEventType};
use serde_json::Value;

use crate::client::Client;
use crate::output::{self, Output, cell};
use crate::sse::Frames;

/// Between two attempts to connect again.
const RETRY: Duration = Duration::from_secs(1);
const RETRIES_MAX: u32 = 60;

/// Follows the committed events of a session.
#[derive(Debug, Args)]
pub struct Tail {
    /// Session id
    session: String,
    /// Start after this offset
    #[arg(long, default_value_t = 0, value_name = "OFFSET")]
    after: u64,
}

impl Tail {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let path = format!("/api/sessions/{}/events", self.session);
        let mut cursor = self.after;
        let (mut was_connected, mut failures) = (false, 0);
        loop {
            // The first refusal counts (no such session, no permission); later ones may be a restart.
            match client.stream(&path, cursor).await {
                Ok(response) => {
                    (was_connected, failures) = (true, 0);
                    if follow(response, &mut cursor, out).await? {
                        return Ok(());
                    }
                }
                Err(error) if !was_connected || failures == RETRIES_MAX => return Err(error),
                Err(_) => failures += 1,
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Shows what one connection brings. Returns whether that was the end of the session.
async fn follow(response: reqwest::Response, cursor: &mut u64, out: Output) -> Result<bool> {
    let mut body = response.bytes_stream();
    let mut frames = Frames::default();
    while let Some(Ok(bytes)) = body.next().await {
        for data in frames.push(&bytes) {
            let event: StreamEvent = serde_json::from_str(&data)?;
            *cursor = event.offset.max(*cursor);
            print(&event, &data, out)?;
            if event.kind == StreamEventType::End {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn print(event: &StreamEvent, raw: &str, out: Output) -> Result<()> {
    if out.json {
        return output::print(raw);
    }
    let what = match (&event.step, &event.data) {
        (Some(step), _) => {
            let text = step.text.as_deref().or(step.error.as_deref()).unwrap_or_default();
            let guidance =
                step.guidance.as_ref().map(|json| format!("  guidance {}", json.as_str())).unwrap_or_default();
            format!("#{} {} → {}  {}{guidance}", step.iteration, step.step_token, step.next_step_token, cell(text))
        }
        (None, Some(data)) if event.kind == StreamEventType::ProviderCall => call(&data.to_value()),
        (None, Some(data)) => cell(data.as_str()),
        (None, None) => String::new(),
    };
    let kind =
        serde_json::to_value(event.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
    output::print(&format!("{:>6}  {}  {kind:<13} {what}", event.offset, event.at))
}

/// A call of a model in one line.
fn call(record: &Value) -> String {
    let word = |key: &str| cell(record[key].as_str().unwrap_or("?"));
    let used = |key: &str| record["usage"][key].as_u64().unwrap_or(0);
    let cost = record["cost"].as_f64().map(|cost| format!(", cost {cost}")).unwrap_or_default();
    let failed = if record["outcome"]["ok"] == false { ", no answer" } else { "" };
    let (input, output) = (used("input_tokens"), used("output_tokens"));
    format!("{} {}: {input} tokens in, {output} out{cost}{failed}", word("provider"), word("model"))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    const END: &str = r#"{"offset":4,"type":"end","session_id":"s1","at":"2026-01-31T12:00:00Z"}"#;

    /// A fleet that answers each connection in turn and then closes it; an empty answer is none.
    async fn fleet(answers: Vec<String>) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            for answer in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                let read = socket.read(&mut request).await.unwrap();
                assert!(request[..read].starts_with(b"GET /api/sessions/s1/events "));
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Client::new(&base, "sf_x").unwrap()
    }

    async fn tail(client: &Client) -> Result<()> {
        Tail { session: "s1".into(), after: 0 }.run(client, Output { json: true }).await
    }

    #[tokio::test]
    async fn a_restart_is_waited_out_even_if_nothing_was_told_before() {
        let quiet = format!("{HEAD}: nothing new\n\n");
        let client = fleet(vec![quiet, String::new(), format!("{HEAD}data: {END}\n\n")]).await;
        tail(&client).await.unwrap();
    }

    #[tokio::test]
    async fn a_fleet_that_was_never_there_is_not_waited_for() {
        let client = fleet(vec![String::new()]).await;
        assert!(tail(&client).await.is_err());
    }
}
