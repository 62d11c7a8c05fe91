//! `approvals`, `approve`, `deny`: what agents ask people for.

use anyhow::{Result, anyhow};
use clap::Args;
use schemas::conversation::ApprovalAnswer;
use serde_json::{Value, json};

use crate::client::Client;
use crate::output::{Output, cell, facts, table};

/// What waits for a person: tool, arguments, and until when.
pub async fn run(client: &Client, out: Output) -> Result<()> {
    let page = pending(client).await?;
    out.show(&page, |page| {
        let mut rows = table(&["operation", "conversation", "tool", "asks for", "until"]);
        for one in page["items"].as_array().into_iter().flatten() {
            let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let input = one["request"]["input"].to_string();
            rows.add_row([text("operation_id"), text("conversation_id"), text("tool"), cell(&input), text("until")]);
        }
        rows
    })
}

async fn pending(client: &Client) -> Result<Value> {
    let query = [("state", "pending".to_owned()), ("kind", "approval".to_owned()), ("limit", "1000".to_owned())];
    client.get("/api/operations", &query).await
}

/// Answers what an agent asks.
#[derive(Debug, Args)]
pub struct Decide {
    operation: String,
    /// Why, as the agent is told
    #[arg(long)]
    reason: Option<String>,
    /// Hash of the arguments that were looked at [default: that of what waits now]
    #[arg(long, value_name = "HASH")]
    arguments_hash: Option<String>,
}

impl Decide {
    pub async fn run(self, client: &Client, out: Output, verb: &'static str) -> Result<()> {
        let hash = match self.arguments_hash {
            Some(hash) => hash,
            None => find(&pending(client).await?, &self.operation)?,
        };
        let body = json!({ "arguments_hash": hash, "reason": self.reason });
        let answer: ApprovalAnswer = client.post(&format!("/api/operations/{}/{verb}", self.operation), &body).await?;
        out.show(&answer, |answer| {
            facts([
                ("operation", answer.operation_id.to_string()),
                ("answer", if answer.approved { "approved".into() } else { "denied".into() }),
                ("by", answer.by.clone()),
                ("accepted", if answer.accepted { "now".into() } else { "before; nothing was changed".into() }),
            ])
        })
    }
}

fn find(page: &Value, operation: &str) -> Result<String> {
    let found = page["items"].as_array().into_iter().flatten().find(|one| one["operation_id"] == operation);
    let hash = found.and_then(|one| one["approval"]["arguments_hash"].as_str()).map(str::to_owned);
    hash.ok_or_else(|| anyhow!("{operation} waits for no person; `stepfleet approvals` lists those that do"))
}
