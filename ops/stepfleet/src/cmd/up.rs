//! `up`: the whole fleet in this process.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use host::config::Config;
use host::datadir::DataDir;
use host::metrics::Metrics;
use host::{signals, telemetry};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::process;
use crate::banner::{self, Banner};
use crate::datadir_files::{ADDRESS_FILE, TOKEN_FILE, write_private};
use crate::fleet::{Fleet, Part, Roles};
use crate::{output, tokens};

/// Runs the embedded fleet.
#[derive(Debug, Args)]
pub struct Up {
    /// Address to listen on; port 0 takes any free one [default: 127.0.0.1:7070]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Replies of the scripted model provider
    #[arg(long, value_name = "FILE")]
    script: Option<String>,
    /// Model for steps and conversations that name none, as provider/model
    #[arg(long)]
    model: Option<String>,
    /// Whether outbound calls may go to loopback and private addresses [default: true]
    #[arg(long, value_name = "BOOL")]
    allow_private: Option<String>,
    /// Number of shards of a new installation [default: 32]
    #[arg(long)]
    shards: Option<String>,
    /// Write {url, token_file, pid} to this file once ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl Up {
    /// The settings among its flags.
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        let given = [
            ("listen", &self.listen),
            ("script", &self.script),
            ("model", &self.model),
            ("allow_private", &self.allow_private),
            ("shards", &self.shards),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// # Errors
    /// The fleet cannot start, or a part of it broke down.
    pub async fn run(self, config: Config) -> Result<()> {
        if let Ok(filter) = telemetry::parse_filter(&config.log) {
            telemetry::start(filter);
        }
        let metrics = Metrics::install().context("the metrics recorder")?;
        let stop = CancellationToken::new();
        signals::watch(stop.clone()).context("the signal handlers")?;
        // Port and directory first: they are what goes wrong, and nothing is touched before.
        let dir = DataDir::lock(&config.data_dir)?;
        let listener = process::bind(config.listen).await?;
        let address = listener.local_addr().context("the listening address")?;
        let part = Part::new(Roles::ALL, true, Some(listener));
        part.trace()?;
        let mut fleet = Fleet::start(&config, part, metrics, &stop).await?;
        let token = tokens::of_data_dir(fleet.tokens(), dir.path()).await?;
        let base = format!("http://{}", process::reachable(address));
        write_private(dir.path(), ADDRESS_FILE, &base).context("the address file")?;
        // Whoever finds it well finds its token, too.
        fleet.let_in();
        let token_file = dir.path().join(TOKEN_FILE);
        let banner = Banner {
            base: &base,
            token: &token,
            token_file: &token_file,
            data_dir: dir.path(),
            program: &banner::program(),
            provider: &fleet.provider(),
            guide: fleet.guide().await,
        };
        // It runs for its clients, whether anybody reads this or not (`… | head`).
        if let Err(error) = output::print(&banner.text()) {
            tracing::info!(%error, "the banner cannot be printed");
        }
        process::tell_ready(self.ready_file.as_deref(), &json!({ "url": base, "token_file": token_file }))?;
        tracing::info!(%address, data_dir = %dir.path().display(), "ready");
        process::until_done(fleet, stop).await
    }
}
