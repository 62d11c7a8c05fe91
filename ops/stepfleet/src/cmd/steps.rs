//! `steps`

use anyhow::{Result, bail};
use clap::Args;
use schemas::api::{SessionDetail, StepPage};

use crate::client::Client;
use crate::output::{Output, cell, or_dash, table};

/// Lists steps of a session or of an agent.
#[derive(Debug, Args)]
pub struct Steps {
    /// Session id
    session: Option<String>,
    /// All sessions of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only iterations after this one
    #[arg(long, value_name = "ITERATION")]
    after: Option<u64>,
    /// Only iterations from this one on
    #[arg(long, value_name = "ITERATION")]
    min: Option<u64>,
    /// Only iterations up to this one
    #[arg(long, value_name = "ITERATION")]
    max: Option<u64>,
    /// Only steps from this time on, as in 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// ok, error or info
    #[arg(long)]
    status: Option<String>,
    /// The newest ones
    #[arg(long)]
    latest: bool,
    /// How many to show [default: 100; 20 with --latest, 500 with --after]
    #[arg(long)]
    limit: Option<u32>,
    /// asc or desc
    #[arg(long)]
    order: Option<String>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

impl Steps {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        if self.session.is_none() && self.agent.is_none() {
            bail!("name a session, or an agent with --agent");
        }
        let session = self.session.clone();
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let filters = [
            ("session_id", self.session),
            ("agent_id", self.agent),
            ("after_iteration", number(self.after)),
            ("min_iteration", number(self.min)),
            ("max_iteration", number(self.max)),
            ("since", self.since),
            ("status", self.status),
            ("latest", self.latest.then(|| "true".into())),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("order", self.order),
            ("cursor", self.cursor),
        ];
        let query: Vec<(&str, String)> = filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let page: StepPage = client.get("/api/agent-steps", &query).await?;
        // The list is empty as well if there is no such session; this says so.
        if let Some(session) = session.filter(|_| page.items.is_empty()) {
            client.get::<SessionDetail>(&format!("/api/sessions/{session}"), &[]).await?;
        }
        out.show_page(&page, page.next_cursor.as_deref(), |page| {
            // Only steps of conversations have one.
            let has_turns = page.items.iter().any(|step| step.turn_id.is_some());
            let mut columns = vec!["iteration", "step", "next", "status", "ms", "text", "guidance", "error"];
            if has_turns {
                columns.insert(1, "turn");
            }
            let mut rows = table(&columns);
            for step in &page.items {
                let mut row = vec![
                    step.iteration.to_string(),
                    step.step_token.to_string(),
                    step.next_step_token.to_string(),
                    step.status.as_str().into(),
                    step.latency_ms.to_string(),
                    cell(&or_dash(step.text.as_ref())),
                    cell(&or_dash(step.guidance.as_ref().map(|json| json.as_str()))),
                    cell(&or_dash(step.error.as_ref())),
                ];
                if has_turns {
                    row.insert(1, or_dash(step.turn_id.as_ref()));
                }
                rows.add_row(row);
            }
            rows
        })
    }
}
