//! `create`

use anyhow::Result;
use clap::Args;
use schemas::api::AcceptedBody;
use serde_json::{Map, Value, json};

use super::control;
use crate::client::Client;
use crate::output::Output;

/// Starts a session.
#[derive(Debug, Args)]
pub struct Create {
    /// What it runs: run_step, tell_a_joke, summarize, research, digest, http, count, echo, converse, bench
    moniker: String,
    /// Id of the new session [default: made by the fleet]
    #[arg(long)]
    session: Option<String>,
    /// Agent it runs for [default: a new one]
    #[arg(long)]
    agent: Option<String>,
    /// Id of the action: sending it again changes nothing
    #[arg(long)]
    action_id: Option<String>,
    /// Task text, for monikers that use a model
    #[arg(long)]
    task: Option<String>,
    /// The moniker's settings, a JSON object as in '{"paths":["docs"]}'
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// State of the first step, a JSON object
    #[arg(long, value_name = "JSON")]
    state: Option<String>,
    /// Conversation that it belongs to
    #[arg(long)]
    conversation: Option<String>,
    /// Whether a step that says it is done ends the session [default: the moniker's own]
    #[arg(long, value_name = "BOOL")]
    stop_on_done: Option<bool>,
    /// Steps after which it ends
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Time after which it ends
    #[arg(long, value_name = "SECONDS")]
    max_runtime_s: Option<u64>,
    /// Pause between steps
    #[arg(long, value_name = "MS")]
    loop_interval_ms: Option<u64>,
}

impl Create {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let accepted: AcceptedBody = client.post("/api/actions", &self.body()?).await?;
        out.show(&accepted, control::accepted_table)
    }

    fn body(&self) -> Result<Value> {
        let json_of = |text: &Option<String>| text.as_deref().map(control::parse_json).transpose();
        let payload = [
            ("moniker", Some(json!(self.moniker))),
            ("task", self.task.as_ref().map(|text| json!(text))),
            ("config", json_of(&self.config)?),
            ("state", json_of(&self.state)?),
            ("conversation_id", self.conversation.as_ref().map(|id| json!(id))),
            ("stop_on_done", self.stop_on_done.map(Value::from)),
            ("max_steps", self.max_steps.map(Value::from)),
            ("max_runtime_s", self.max_runtime_s.map(Value::from)),
            ("loop_interval_ms", self.loop_interval_ms.map(Value::from)),
        ];
        let body = [
            ("type", Some(json!("create"))),
            ("session_id", self.session.as_ref().map(|id| json!(id))),
            ("agent_id", self.agent.as_ref().map(|id| json!(id))),
            ("action_id", self.action_id.as_ref().map(|id| json!(id))),
            ("payload", Some(object(payload))),
        ];
        Ok(object(body))
    }
}

/// An object of what is present.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}
