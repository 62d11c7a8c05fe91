//! `health`

use anyhow::{Result, bail};
use schemas::api::HealthBody;

use crate::client::Client;
use crate::output::{Output, table};

/// Shows the health of the fleet; fails unless all of it is well.
pub async fn run(client: &Client, out: Output) -> Result<()> {
    let health: HealthBody = client.get("/health", &[]).await?;
    out.show(&health, |health| {
        let mut rows = table(&["part", "well", "detail"]);
        for part in &health.components {
            rows.add_row([part.name.clone(), part.ok.to_string(), part.detail.clone()]);
        }
        rows.add_row([
            "fleet",
            &health.status,
            &format!("version {}, {}, {}", health.version, health.mode, health.provider),
        ]);
        rows.add_row(["sessions", "", &format!("{} live", health.live_sessions)]);
        rows.add_row(["queue", "", &format!("{} actions, oldest {} ms", health.pending_actions, health.queue_lag_ms)]);
        rows.add_row(["archive", "", &format!("{} rows behind", health.journal_lag_rows)]);
        rows.add_row(["shards", "", &format!("{} of {} owned", health.shards_owned, health.shards)]);
        rows
    })?;
    if health.status != "ok" {
        bail!("the fleet is {}", health.status);
    }
    Ok(())
}
