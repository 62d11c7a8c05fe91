//! What the control commands share: whom they mean, and how they ask for it.

use anyhow::{Context, Result, bail};
use clap::Args;
use schemas::api::{AcceptedBody, BulkAnswer};
use serde_json::{Value, json};

use crate::client::Client;
use crate::output::{Output, facts, table};

/// One session, or the newest session of an agent.
#[derive(Debug, Clone, Args)]
pub struct Whom {
    /// Session id
    pub session: Option<String>,
    /// The newest session of this agent instead
    #[arg(long, value_name = "AGENT", conflicts_with = "session")]
    pub agent: Option<String>,
    /// Id of the action: sending it again changes nothing
    #[arg(long, value_name = "ID")]
    pub action_id: Option<String>,
    /// Who asks, as it is recorded
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
}

/// Every session that fits, for `pause` and `resume`.
#[derive(Debug, Clone, Args)]
pub struct Many {
    /// All sessions that fit --agent, --moniker and --status
    #[arg(long, conflicts_with = "session")]
    pub all: bool,
    #[arg(long, requires = "all")]
    pub moniker: Option<String>,
    /// Statuses, separated by commas
    #[arg(long, requires = "all", value_delimiter = ',')]
    pub status: Vec<String>,
}

/// Sends one action.
///
/// # Errors
/// Nobody is named, or the fleet refuses.
pub async fn send(client: &Client, out: Output, whom: &Whom, verb: &str, payload: Value) -> Result<()> {
    let mut body = json!({ "type": verb, "payload": payload });
    match (&whom.session, &whom.agent) {
        (Some(session), _) => body["session_id"] = json!(session),
        (None, Some(agent)) => body["agent_id"] = json!(agent),
        (None, None) => bail!("name a session, or an agent with --agent"),
    }
    if let Some(id) = &whom.action_id {
        body["action_id"] = json!(id);
    }
    if let Some(actor) = &whom.actor {
        body["actor"] = json!(actor);
    }
    let accepted: AcceptedBody = client.post("/api/actions", &body).await?;
    out.show(&accepted, accepted_table)
}

/// Sends one action to each session that fits.
///
/// # Errors
/// The fleet refuses.
pub async fn send_many(
    client: &Client,
    out: Output,
    whom: &Whom,
    many: &Many,
    verb: &str,
    payload: Value,
) -> Result<()> {
    let mut filter = json!({});
    if let Some(agent) = &whom.agent {
        filter["agent_id"] = json!(agent);
    }
    if let Some(moniker) = &many.moniker {
        filter["moniker"] = json!(moniker);
    }
    if !many.status.is_empty() {
        filter["status"] = json!(many.status);
    }
    let body = json!({ "action": verb, "filter": filter, "payload": payload });
    let answer: BulkAnswer = client.post("/api/sessions/bulk", &body).await?;
    out.show(&answer, |answer| {
        let mut rows = table(&["matched", "accepted", "refused"]);
        rows.add_row([answer.matched, answer.accepted, answer.refused.len() as u64]);
        for refusal in &answer.refused {
            rows.add_row([refusal.session_id.to_string(), refusal.code.as_str().into(), refusal.detail.clone()]);
        }
        rows
    })
}

pub fn accepted_table(accepted: &AcceptedBody) -> comfy_table::Table {
    facts([
        ("session", accepted.session_id.to_string()),
        ("action", accepted.action_id.to_string()),
        ("accepted", if accepted.accepted { "now".into() } else { "before; nothing was changed".into() }),
    ])
}

/// A JSON value from the command line.
pub fn parse_json(text: &str) -> Result<Value> {
    serde_json::from_str(text).with_context(|| format!("{text:?} is not JSON"))
}

/// `{reason}` if there is one.
pub fn reason(reason: Option<&String>) -> Value {
    reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }))
}
