//! `show`

use anyhow::Result;
use clap::Args;
use schemas::api::SessionDetail;

use crate::client::Client;
use crate::output::{Output, cause, facts, or_dash};

/// Shows one session.
#[derive(Debug, Args)]
pub struct Show {
    session: String,
}

impl Show {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let detail: SessionDetail = client.get(&format!("/api/sessions/{}", self.session), &[]).await?;
        out.show(&detail, |detail| {
            let view = &detail.session;
            facts([
                ("session", view.session_id.to_string()),
                ("agent", view.agent_id.to_string()),
                ("moniker", view.moniker.clone()),
                ("status", view.status.as_str().into()),
                ("cause", cause(&view.cause)),
                ("last iteration", or_dash(view.iteration)),
                ("step", or_dash(view.step_token.as_ref())),
                ("next step", view.next_step_token.to_string()),
                ("pending actions", detail.pending_actions.to_string()),
                ("shard", view.shard.to_string()),
                ("created", view.created_at.clone()),
                ("updated", view.updated_at.clone()),
                ("wakes", or_dash(view.wake_at.as_ref())),
                ("error", or_dash(view.last_error.as_ref())),
                ("result", or_dash(detail.result.as_ref().map(|json| json.as_str()))),
                ("state", detail.state.as_str().to_owned()),
                ("settings", serde_json::to_string(&detail.spec).unwrap_or_default()),
            ])
        })
    }
}
