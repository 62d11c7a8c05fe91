//! Who takes part in a conversation: `conversations participants`, `join`, `leave`.

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::text;
use crate::client::Client;
use crate::output::{Output, table};

#[derive(Debug, Args)]
pub struct Join {
    conversation: String,
    /// An agent; it gets a session of its own
    #[arg(required_unless_present = "user", conflicts_with = "user")]
    agent: Option<String>,
    /// A user instead
    #[arg(long)]
    user: Option<String>,
    /// A session of the agent that was created for this conversation, instead of a new one
    #[arg(long, conflicts_with = "user")]
    session: Option<String>,
    /// owner, responder (what agents are) or observer (what users are)
    #[arg(long)]
    role: Option<String>,
    /// Id of the seat: taking it again changes nothing
    #[arg(long)]
    id: Option<String>,
}

#[derive(Debug, Args)]
pub struct Leave {
    conversation: String,
    /// Id of a seat, or the agent or the user who sits there
    who: String,
}

fn path(conversation: &str) -> String {
    format!("/api/conversations/{conversation}/participants")
}

pub(super) async fn list(client: &Client, out: Output, conversation: &str) -> Result<()> {
    let page: Value = client.get(&path(conversation), &[]).await?;
    show(out, &page, |page| page["items"].as_array().cloned().unwrap_or_default())
}

impl Join {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let body = json!({
            "participant_id": self.id,
            "agent_id": self.agent,
            "user_id": self.user,
            "session_id": self.session,
            "role": self.role,
        });
        let joined: Value = client.post(&path(&self.conversation), &body).await?;
        show(out, &joined, |joined| vec![joined["participant"].clone()])
    }
}

impl Leave {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let path = path(&self.conversation);
        let page: Value = client.get(&path, &[]).await?;
        let seat = seat(&page, &self.who)?;
        let left: Value = client.delete(&format!("{path}/{seat}")).await?;
        show(out, &left, |left| vec![left.clone()])
    }
}

/// The seat that is meant. An unknown one is left to the gateway, which says what to do.
fn seat(page: &Value, who: &str) -> Result<String> {
    let all: Vec<&Value> = page["items"].as_array().into_iter().flatten().collect();
    if all.iter().any(|one| one["participant_id"] == who) {
        return Ok(who.to_owned());
    }
    let here = all.iter().filter(|one| one["left_at"].is_null() && (one["agent_id"] == who || one["user_id"] == who));
    let seats: Vec<String> = here.map(|one| text(one, "participant_id")).collect();
    match seats.as_slice() {
        [] => Ok(who.to_owned()),
        [seat] => Ok(seat.clone()),
        several => bail!("{who} takes part {} times; name one of the seats {}", several.len(), several.join(", ")),
    }
}

fn show(out: Output, answer: &Value, seats: impl FnOnce(&Value) -> Vec<Value>) -> Result<()> {
    out.show(answer, |answer| {
        let mut rows = table(&["seat", "type", "who", "session", "role", "joined", "left"]);
        for one in seats(answer) {
            rows.add_row([
                text(&one, "participant_id"),
                text(&one, "type"),
                [text(&one, "user_id"), text(&one, "agent_id")].concat(),
                text(&one, "session_id"),
                text(&one, "role"),
                text(&one, "joined_at"),
                text(&one, "left_at"),
            ]);
        }
        rows
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_found_by_whoever_sits_there() {
        let page = json!({"items": [
            {"participant_id": "p1", "agent_id": "ben"},
            {"participant_id": "p2", "user_id": "ana"},
            {"participant_id": "p3", "agent_id": "eve"},
            {"participant_id": "p4", "agent_id": "eve"},
            {"participant_id": "p5", "agent_id": "ben", "left_at": "2026-01-31T12:00:00Z"},
        ]});
        let found = |who: &str| seat(&page, who).map_err(|error| error.to_string());
        assert_eq!(found("ben").as_deref(), Ok("p1"), "who has left sits nowhere");
        assert_eq!(found("ana").as_deref(), Ok("p2"));
        assert_eq!(found("p5").as_deref(), Ok("p5"));
        assert_eq!(found("nobody").as_deref(), Ok("nobody"), "the gateway says what is wrong");
        assert!(found("eve").is_err_and(|error| error.contains("p3, p4")));
    }
}
