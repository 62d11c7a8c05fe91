//! `shards`

use anyhow::Result;
use schemas::api::ShardView;

use super::items;
use crate::client::Client;
use crate::output::{Output, or_dash, table};

/// Shows each shard: owner, epoch, lease, backlog, rows to archive.
pub async fn run(client: &Client, out: Output) -> Result<()> {
    let shards: Vec<ShardView> = items(client.get("/api/shards", &[]).await?)?;
    out.show(&shards, |shards| {
        let mut rows = table(&["shard", "owner", "epoch", "lease ms", "backlog", "journal rows"]);
        for shard in shards {
            rows.add_row([
                shard.shard.to_string(),
                or_dash(shard.owner.as_ref()),
                shard.epoch.to_string(),
                shard.lease_ms_left.to_string(),
                shard.backlog.to_string(),
                shard.journal_rows.to_string(),
            ]);
        }
        rows
    })
}
