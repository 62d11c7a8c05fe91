//! `action`

use anyhow::Result;
use clap::Args;
use schemas::action::ActionView;

use crate::client::Client;
use crate::output::{Output, cell, facts, or_dash};

/// Shows what became of an action.
#[derive(Debug, Args)]
pub struct Action {
    action_id: String,
}

impl Action {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let action: ActionView = client.get(&format!("/api/actions/{}", self.action_id), &[]).await?;
        out.show(&action, |action| {
            facts([
                ("action", action.action_id.to_string()),
                ("type", action.kind.as_str().into()),
                ("session", or_dash(action.session_id.as_ref())),
                ("agent", or_dash(action.agent_id.as_ref())),
                ("actor", action.actor.clone()),
                ("urgency", action.urgency.as_str().into()),
                ("place", format!("{} {}", action.lane.as_str(), or_dash(action.session_seq))),
                ("accepted", action.created_at.clone()),
                ("processed", or_dash(action.processed_at.as_ref())),
                ("outcome", or_dash(action.outcome.map(|outcome| outcome.as_str()))),
                ("error", or_dash(action.error.as_ref())),
                ("payload", cell(action.payload.as_str())),
            ])
        })
    }
}
