//! `sessions`

use anyhow::Result;
use clap::Args;
use schemas::api::{SessionPage, SessionView};

use crate::client::Client;
use crate::output::{Output, cause, cell, or_dash, table};

/// Lists sessions, newest first.
#[derive(Debug, Args)]
pub struct Sessions {
    /// Statuses, separated by commas
    #[arg(long)]
    status: Option<String>,
    /// Those of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Those that run this
    #[arg(long)]
    moniker: Option<String>,
    /// Those that belong to this conversation
    #[arg(long)]
    conversation: Option<String>,
    /// Start of a session or agent id
    #[arg(long)]
    prefix: Option<String>,
    /// How many to show
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

impl Sessions {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let filters = [
            ("status", self.status),
            ("agent_id", self.agent),
            ("moniker", self.moniker),
            ("conversation_id", self.conversation),
            ("q", self.prefix),
            ("cursor", self.cursor),
            ("limit", Some(self.limit.to_string())),
        ];
        let query: Vec<(&str, String)> = filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let page: SessionPage = client.get("/api/sessions", &query).await?;
        out.show_page(&page, page.next_cursor.as_deref(), |page| {
            let mut rows = table(&["session", "agent", "moniker", "status", "steps", "cause", "updated", "error"]);
            for session in &page.items {
                rows.add_row(row(session));
            }
            rows
        })
    }
}

fn row(session: &SessionView) -> [String; 8] {
    [
        session.session_id.to_string(),
        session.agent_id.to_string(),
        session.moniker.clone(),
        session.status.as_str().into(),
        session.iteration.map_or(0, |last| last + 1).to_string(),
        cause(&session.cause),
        session.updated_at.clone(),
        cell(&or_dash(session.last_error.as_ref())),
    ]
}
