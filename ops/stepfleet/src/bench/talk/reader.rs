//! A client that listens to a conversation.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::Response;
use serde_json::Value;

use super::model::Model;
use crate::client::Client;
use crate::sse::Frames;

/// A turn that takes longer is broken.
const TURN_MAX: Duration = Duration::from_secs(300);

/// What came of one turn.
#[derive(Default)]
pub struct Heard {
    /// The message of the agent, whole.
    pub message: String,
    /// The pieces it was told in, and when each came.
    pub pieces: Vec<String>,
    times: Vec<Instant>,
    /// How often the fleet said that it left pieces out.
    pub lags: usize,
}

impl Heard {
    /// How long each piece was on its way, by the times that are written in them.
    pub fn delays(&self, model: &Model) -> Result<Vec<Duration>> {
        let sent = self.pieces.iter().map(|piece| model.sent(piece));
        self.times.iter().zip(sent).map(|(came, sent)| Ok(came.duration_since(sent?))).collect()
    }
}

pub struct Reader {
    response: Response,
    frames: Frames,
    /// What has come and was not looked at.
    left: VecDeque<(Instant, String)>,
}

impl Reader {
    /// Listens from the beginning of the conversation on.
    pub async fn open(client: &Client, conversation: &str) -> Result<Self> {
        let response = client.stream(&format!("/api/conversations/{conversation}/events"), 0).await?;
        Ok(Self { response, frames: Frames::default(), left: VecDeque::new() })
    }

    /// Listens until a turn has ended: what came of it, and when its end came.
    pub async fn turn(&mut self) -> Result<(Heard, Instant)> {
        let mut heard = Heard::default();
        let whole = async {
            loop {
                while let Some((came, data)) = self.left.pop_front() {
                    if take(&mut heard, came, &data)? {
                        return Ok(came);
                    }
                }
                let Some(bytes) = self.response.chunk().await? else { bail!("the stream broke off") };
                let came = Instant::now();
                self.left.extend(self.frames.push(&bytes).into_iter().map(|data| (came, data)));
            }
        };
        let ended = tokio::time::timeout(TURN_MAX, whole).await.context("the turn does not end")??;
        Ok((heard, ended))
    }
}

/// Takes a frame; whether it is the end of a turn.
fn take(heard: &mut Heard, came: Instant, data: &str) -> Result<bool> {
    let frame: Value = serde_json::from_str(data).context("a frame")?;
    match frame["type"].as_str() {
        Some("token") if frame["kind"] == "text" => {
            heard.pieces.push(frame["text"].as_str().unwrap_or_default().to_owned());
            heard.times.push(came);
        }
        Some("message") if frame["message"]["sender_type"] != "user" => {
            heard.message = frame["message"]["text"].as_str().unwrap_or_default().to_owned();
        }
        Some("lag") => {
            heard.lags += 1;
            heard.pieces.clear();
            heard.times.clear();
        }
        Some("event") if frame["name"] == "turn.failed" => bail!("the turn failed: {data}"),
        Some("event") => return Ok(frame["name"] == "turn.completed"),
        _ => {}
    }
    Ok(false)
}
