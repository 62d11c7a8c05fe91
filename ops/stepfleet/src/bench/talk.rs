//! Conversations, in a private fleet or in one that runs: what a move costs besides its model, how soon a
//! piece of a reply is passed on, and a thousand replies at once.

mod model;
mod overhead;
mod place;
mod reader;
mod streams;

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::Client;
pub use overhead::overhead;
pub use place::Place;
pub use streams::streams;

const SAY: &str = "Which tea do I like?";

/// A conversation with one agent.
async fn open(client: &Client, id: &str, config: &Value) -> Result<()> {
    let payload = json!({"moniker": "converse", "conversation_id": id, "config": config});
    let body = json!({"type": "create", "session_id": id, "agent_id": id, "payload": payload});
    let _: Value = client.post("/api/actions", &body).await?;
    Ok(())
}

async fn say(client: &Client, id: &str, text: &str) -> Result<()> {
    let _: Value = client.post(&format!("/api/conversations/{id}/messages"), &json!({"text": text})).await?;
    Ok(())
}
