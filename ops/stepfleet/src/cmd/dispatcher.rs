//! `dispatcher`: a gateway of a fleet. Stateless; any number of them serve the same fleet.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use host::config::Config;

use super::process;
use crate::fleet::{Part, Roles};

/// Serves HTTP for a fleet on PostgreSQL.
#[derive(Debug, Args)]
pub struct Dispatcher {
    /// Address to listen on; port 0 takes any free one [default: 127.0.0.1:7070]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Write {url, pid} to this file once ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl Dispatcher {
    /// The settings among its flags.
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        self.listen.clone().map(|listen| ("listen", listen)).into_iter().collect()
    }

    /// # Errors
    /// It cannot start, or a part of it broke down.
    pub async fn run(self, config: Config) -> Result<()> {
        process::need_shared(&config, "dispatcher")?;
        // The port first: it is what goes wrong.
        let listener = process::bind(config.listen).await?;
        let address = listener.local_addr().context("the listening address")?;
        let part = Part::new(Roles::GATEWAY, false, Some(listener));
        process::run(&config, part, |_| {
            let url = format!("http://{}", process::reachable(address));
            tracing::info!(%url, database = %config.database, history = %config.history, "dispatcher ready");
            process::tell_ready(self.ready_file.as_deref(), &serde_json::json!({ "url": url }))
        })
        .await
    }
}
