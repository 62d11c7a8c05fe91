//! `input`

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::control::{self, Whom};
use crate::client::Client;
use crate::output::Output;

/// Hands a session an input.
#[derive(Debug, Args)]
pub struct Input {
    #[command(flatten)]
    whom: Whom,
    /// The input as text
    #[arg(long, short, conflicts_with = "payload", required_unless_present = "payload")]
    text: Option<String>,
    /// The input as a JSON object
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
}

impl Input {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let payload = match (&self.text, &self.payload) {
            (Some(text), _) => json!({ "text": text }),
            (None, Some(payload)) => control::parse_json(payload)?,
            (None, None) => json!({}),
        };
        control::send(client, out, &self.whom, "input", payload).await
    }
}
