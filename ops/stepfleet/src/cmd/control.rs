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
    /// Those that run this
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
/// A flag is given that is for one action, or the fleet refuses.
pub async fn send_many(
    client: &Client,
    out: Output,
    whom: &Whom,
    many: &Many,
    verb: &str,
    payload: Value,
) -> Result<()> {
    // Each of many actions is recorded as that of the token.
    if whom.actor.is_some() {
        bail!("--actor is for one session and does not go with --all; leave one of the two out");
    }
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
    let answer: BulkAnswer = client.post_under("/api/sessions/bulk", whom.action_id.as_deref(), &body).await?;
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn whom(action_id: Option<&str>, actor: Option<&str>) -> Whom {
        let text = |given: Option<&str>| given.map(str::to_owned);
        Whom { session: None, agent: Some("ana".into()), action_id: text(action_id), actor: text(actor) }
    }

    async fn pause_all(base: &str, whom: &Whom) -> Result<()> {
        let many = Many { all: true, moniker: None, status: Vec::new() };
        let client = Client::new(base, "sf_x").unwrap();
        send_many(&client, Output { json: true }, whom, &many, "pause", json!({})).await
    }

    #[tokio::test]
    async fn the_id_is_the_key_of_the_whole_and_the_actor_is_refused() {
        let told = pause_all("http://127.0.0.1:9", &whom(None, Some("ben"))).await.unwrap_err().to_string();
        assert!(told.contains("--actor") && told.contains("--all"), "{told}");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let heard = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let read = socket.read(&mut request).await.unwrap();
            let body = r#"{"matched":0,"accepted":0,"refused":[]}"#;
            let length = body.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            socket.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&request[..read]).to_ascii_lowercase()
        });
        pause_all(&base, &whom(Some("deploy-7"), None)).await.unwrap();
        assert!(heard.await.unwrap().contains("\r\nidempotency-key: deploy-7\r\n"));
    }
}
