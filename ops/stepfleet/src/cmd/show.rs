//! `show`

use anyhow::Result;
use clap::Args;
use schemas::api::SessionDetail;

use crate::client::Client;
use crate::output::{Output, cause, cell, facts, or_dash};

/// Shows one session.
#[derive(Debug, Args)]
pub struct Show {
    /// Session id
    session: String,
}

impl Show {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let detail: SessionDetail = client.get(&format!("/api/sessions/{}", self.session), &[]).await?;
        out.show(&detail, |detail| facts(rows(detail)))
    }
}

/// What is of any length is cut like any cell; an error is bounded, and what one looks for here.
fn rows(detail: &SessionDetail) -> [(&'static str, String); 17] {
    let view = &detail.session;
    [
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
        ("result", cell(&or_dash(detail.result.as_ref().map(|json| json.as_str())))),
        ("state", cell(detail.state.as_str())),
        ("settings", cell(&serde_json::to_string(&detail.spec).unwrap_or_default())),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_long_is_cut() {
        let long = "x".repeat(5_000);
        let detail = json!({
            "session": {
                "session_id": "s1", "agent_id": "a1", "moniker": "count", "status": "completed", "iteration": 0,
                "step_token": "start", "next_step_token": "n/1", "cause": {"kind": "ended"}, "wake_at": null,
                "last_error": null, "stop_reason": "done", "conversation_id": null, "parent": null, "shard": 17,
                "created_at": "2026-01-31T12:00:00.000Z", "started_at": null,
                "updated_at": "2026-01-31T12:00:01.000Z", "last_offset": 4
            },
            "spec": {"moniker": "count", "task": long, "config": {}, "stop_on_done": true, "loop_interval_ms": 0},
            "state": {"notes": long},
            "result": long,
            "pending_actions": 0
        });
        let detail: SessionDetail = serde_json::from_str(&detail.to_string()).unwrap();
        for (name, value) in rows(&detail) {
            assert!(value.chars().count() <= 80, "{name}: {value}");
        }
        let text = facts(rows(&detail)).to_string();
        assert!(text.contains("{\"notes\":\"xxx") && text.contains('…'), "{text}");
    }
}
