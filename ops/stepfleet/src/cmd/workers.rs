//! `workers`

use anyhow::Result;
use schemas::api::WorkerView;

use super::items;
use crate::client::Client;
use crate::output::{Output, table};

/// Shows each worker and the shards it owns.
pub async fn run(client: &Client, out: Output) -> Result<()> {
    let workers: Vec<WorkerView> = items(client.get("/api/workers", &[]).await?)?;
    out.show(&workers, |workers| {
        let mut rows = table(&["worker", "host", "version", "roles", "draining", "heartbeat ms", "shards"]);
        for worker in workers {
            rows.add_row([
                worker.worker_id.clone(),
                worker.host.clone(),
                worker.version.clone(),
                worker.roles.join(","),
                worker.draining.to_string(),
                worker.heartbeat_age_ms.to_string(),
                worker.shards.len().to_string(),
            ]);
        }
        rows
    })
}
