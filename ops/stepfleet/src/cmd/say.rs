//! `say`: a message, and the answer as it is told.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Result, bail};
use clap::Args;
use futures::StreamExt;
use schemas::conversation::{PostAnswer, PostOutcome, TurnPhase};
use serde_json::{Value, json};

use crate::client::Client;
use crate::output::{self, Output};
use crate::sse::Frames;

/// Says something in a conversation and prints what is answered.
#[derive(Debug, Args)]
pub struct Say {
    /// Id of the conversation
    conversation: String,
    /// What to say
    text: String,
    /// Begin the conversation with these agents, separated by commas; one that is there already goes on
    #[arg(long, value_delimiter = ',', value_name = "AGENTS")]
    with: Vec<String>,
    /// Agents that should answer, separated by commas
    #[arg(long, value_delimiter = ',')]
    to: Vec<String>,
    /// What becomes of it at an agent that is at work: enqueue, steer, interrupt or reject
    #[arg(long)]
    busy: Option<String>,
    /// Id of the message: saying it again changes nothing
    #[arg(long)]
    message_id: Option<String>,
    /// Do not wait for the answer
    #[arg(long)]
    no_wait: bool,
}

impl Say {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        if !self.with.is_empty() {
            begin(client, &self.conversation, &self.with).await?;
        }
        let path = format!("/api/conversations/{}", self.conversation);
        let detail: Value = client.get(&path, &[]).await?;
        let last = detail["conversation"]["last_offset"].as_u64().unwrap_or_default();
        // Opened before the message is sent: nothing of the answer is missed.
        let stream = client.stream(&format!("{path}/events"), last).await?;
        let mut body = json!({ "text": self.text, "busy": self.busy, "message_id": self.message_id });
        if !self.to.is_empty() {
            body["to"] = json!(self.to);
        }
        let answer: PostAnswer = client.post(&format!("{path}/messages"), &body).await?;
        if out.json {
            output::print(&serde_json::to_string(&answer)?)?;
        }
        for one in answer.responders.iter().filter(|one| one.outcome != PostOutcome::Turn) {
            let why = match one.outcome {
                PostOutcome::Delivered => format!(
                    "as an input; it has no turns to wait for. What it says: stepfleet conversations show {}",
                    self.conversation
                ),
                _ => one.detail.clone().unwrap_or_default(),
            };
            let outcome = json!(one.outcome);
            output::note(&format!("{}: {} {why}", one.agent_id, outcome.as_str().unwrap_or_default()));
        }
        let turns = answer.responders.iter().filter_map(|one| one.turn_id.as_ref().map(ToString::to_string)).collect();
        if self.no_wait {
            return Ok(());
        }
        Answer { turns, telling: None, json: out.json, failed: false, asking: BTreeSet::new() }.follow(stream).await
    }
}

/// Creates the conversation; if it is there already, with these agents, nothing changes.
async fn begin(client: &Client, id: &str, agents: &[String]) -> Result<()> {
    let seats: Vec<Value> = agents.iter().map(|agent| json!({ "agent_id": agent })).collect();
    let body = json!({ "conversation_id": id, "agents": seats });
    client.post::<Value>("/api/conversations", &body).await.map(drop)
}

/// The answer as far as it is told.
struct Answer {
    /// Turns that are still to end.
    turns: BTreeSet<String>,
    /// The message whose pieces were printed last.
    telling: Option<String>,
    json: bool,
    failed: bool,
    /// Turns that wait for a person.
    asking: BTreeSet<String>,
}

impl Answer {
    async fn follow(mut self, response: reqwest::Response) -> Result<()> {
        // Of several voices at once only whole messages can be read.
        let piecewise = self.turns.len() == 1;
        let (mut body, mut frames) = (response.bytes_stream(), Frames::default());
        while !self.turns.is_empty() {
            let Some(bytes) = body.next().await else { bail!("the stream broke off; the answer goes on without us") };
            for data in frames.push(&bytes?) {
                self.tell(&data, piecewise)?;
            }
        }
        if self.failed { bail!("no answer came") } else { Ok(()) }
    }

    fn tell(&mut self, data: &str, piecewise: bool) -> Result<()> {
        let frame: Value = serde_json::from_str(data)?;
        if self.json {
            output::print(data)?;
        }
        let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match frame["type"].as_str().unwrap_or_default() {
            "token" if piecewise && !self.json && frame["kind"] == "text" && self.is_ours(&frame["turn_id"]) => {
                piece(frame["text"].as_str().unwrap_or_default())?;
                self.telling = Some(id(&frame["message_id"]));
            }
            "retract" | "lag" if self.telling.take().is_some() => output::print(" […]")?,
            "message" if self.is_ours(&frame["message"]["turn_id"]) && !self.json => {
                let message = &frame["message"];
                // Its pieces are on the screen: what is left is the end of the line.
                let told = self.telling.take().is_some_and(|telling| telling == id(&message["message_id"]));
                let text = if told { "" } else { message["text"].as_str().unwrap_or_default() };
                match message["name"].as_str().or(message["agent_id"].as_str()) {
                    // Of several voices each says whose it is.
                    Some(name) if !piecewise => output::print(&format!("{name}: {text}"))?,
                    _ => output::print(text)?,
                }
            }
            "turn" if self.is_ours(&frame["turn"]["turn_id"]) && frame["turn"]["status"] == "active" => {
                self.tell_of_wait(&frame["turn"]);
            }
            "turn" if self.is_ours(&frame["turn"]["turn_id"]) => {
                let turn = &frame["turn"];
                if turn["status"] == "failed" {
                    let why = turn["error"]["message"].as_str().unwrap_or("cancelled");
                    output::note(&format!("{}: {why}", id(&turn["agent_id"])));
                    self.failed = true;
                }
                self.turns.remove(&id(&turn["turn_id"]));
            }
            "end" => self.turns.clear(),
            _ => {}
        }
        Ok(())
    }

    /// Nothing would be seen of a turn that waits for a person, as long as it does.
    fn tell_of_wait(&mut self, turn: &Value) {
        let id = turn["turn_id"].as_str().unwrap_or_default().to_owned();
        if turn["phase"] != json!(TurnPhase::WaitingApproval) {
            self.asking.remove(&id);
        } else if self.asking.insert(id) {
            let agent = turn["agent_id"].as_str().unwrap_or("the agent");
            output::note(&format!("{agent} waits for somebody's yes: stepfleet approvals shows what is asked"));
        }
    }

    fn is_ours(&self, turn: &Value) -> bool {
        turn.as_str().is_some_and(|turn| self.turns.contains(turn))
    }
}

/// Prints a piece at once, without a line's end.
fn piece(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
