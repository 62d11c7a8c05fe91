//! `migrate`: creates the database's schema, or brings it up to date.

use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use host::clock::SystemClock;
use host::config::Config;
use host::{signals, telemetry};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fleet::{Schema, Store, store_may_come, when_ready};
use crate::output::{Output, facts};

/// Prepares the database of a fleet; waits for it to come up.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Number of shards of a new installation [default: 32]
    #[arg(long)]
    pub shards: Option<String>,
}

impl Migrate {
    /// # Errors
    /// The database cannot be used, or was written by a newer program.
    pub async fn run(self, config: &Config, out: Output) -> Result<()> {
        if let Ok(filter) = telemetry::parse_filter(&config.log) {
            telemetry::start(filter);
        }
        let stop = CancellationToken::new();
        signals::watch(stop.clone()).context("the signal handlers")?;
        let clock = Arc::new(SystemClock);
        let store = when_ready("database", &stop, store_may_come, async || {
            Store::open(config, Schema::Migrate, clock.clone()).await
        })
        .await?;
        let shards = store.leases.shard_count().await?;
        store.close().await;
        let (place, version) = (config.database.to_string(), env!("CARGO_PKG_VERSION"));
        out.show(&json!({ "database": place, "shards": shards, "version": version }), |_| {
            facts([("database", place.clone()), ("shards", shards.to_string()), ("version", version.to_owned())])
        })
    }
}
