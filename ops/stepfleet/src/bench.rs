//! `bench`: what this build does on this machine. One JSON line per metric, each with the disk's
//! fsync floor measured beside it, since that bounds every durable figure.

mod archive;
mod latency;
mod memory;
mod pause;
mod resume;
mod rig;
mod steps;
mod talk;

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use host::config::Config;
use host::telemetry;
use talk::Place;

use crate::cli::Target;
use crate::client::Client;

/// Measures this build on this machine.
#[derive(Debug, Args)]
pub struct Bench {
    /// What to measure
    #[arg(value_enum, default_value_t = Metric::All)]
    metric: Metric,
    /// Smaller sizes: seconds instead of minutes
    #[arg(long)]
    quick: bool,
    /// Measure the running fleet that --url names (talk and streams); its model profile `bench` leads to this address,
    /// where the model of the measurement answers meanwhile
    #[arg(long, value_name = "MODEL_ADDRESS")]
    fleet: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Metric {
    All,
    /// One session of 5,000 tiny steps, alone
    Lone,
    /// 64 sessions of 50 steps, with about 500 B of state and 200 B of text each
    Steps64,
    /// 512 of them
    Steps512,
    /// From a create request over HTTP to its first committed step
    FirstStep,
    /// Pause of a session whose shard works on a backlog of 100,000 inputs
    Pause,
    /// First step after a restart, with 100 and with 100,000 steps of history
    Resume,
    /// Rows archived per second, and the point query of one session among 1 M steps
    Archive,
    /// Memory with 100,000 idle sessions against none
    Memory,
    /// What a move of a conversation costs besides its model
    Talk,
    /// How soon a piece of a model's reply is passed on: of one, and of 1,000 at once
    Streams,
}

impl Bench {
    pub async fn run(self, config: Config, target: &Target) -> Result<()> {
        if self.fleet.is_some() && !matches!(self.metric, Metric::Talk | Metric::Streams) {
            bail!("only talk and streams measure a fleet that runs; leave out --fleet, and the others start their own");
        }
        if self.metric == Metric::All {
            return self.run_all().await;
        }
        // Logs would be measured too, unless they are asked for.
        if let (false, Ok(filter)) = (config.log.is_empty(), telemetry::parse_filter(&config.log)) {
            telemetry::start(filter);
        }
        let quick = self.quick;
        match self.metric {
            Metric::All => Ok(()),
            Metric::Lone => steps::lone().await,
            Metric::Steps64 => steps::many(64).await,
            Metric::Steps512 => steps::many(512).await,
            Metric::FirstStep => latency::first_step(if quick { 50 } else { 300 }).await,
            Metric::Pause => pause::under_backlog(if quick { 10_000 } else { 100_000 }).await,
            Metric::Resume => resume::after_restart(&[100, if quick { 5_000 } else { 100_000 }]).await,
            Metric::Archive => archive::rows_and_query(if quick { 50_000 } else { 1_000_000 }).await,
            Metric::Memory => memory::idle_sessions(if quick { 5_000 } else { 100_000 }).await,
            Metric::Talk => talk::overhead(self.place(target).await?, if quick { 20 } else { 200 }).await,
            Metric::Streams => talk::streams(self.place(target).await?, if quick { 50 } else { 1_000 }).await,
        }
    }

    /// Where conversations are measured.
    async fn place(&self, target: &Target) -> Result<Place> {
        match self.fleet {
            Some(model) => Place::running(Client::find(target)?, model).await,
            None => Place::private().await,
        }
    }

    /// Each metric in a process of its own, so that none pays for the one before.
    async fn run_all(&self) -> Result<()> {
        let program = std::env::current_exe().context("the path of this program")?;
        for metric in Metric::value_variants().iter().filter(|metric| **metric != Metric::All) {
            let name = metric.to_possible_value().context("a hidden metric")?;
            let mut command = tokio::process::Command::new(&program);
            command.arg("bench").arg(name.get_name());
            if self.quick {
                command.arg("--quick");
            }
            let status = command.status().await.context("a process for the metric")?;
            if !status.success() {
                bail!("{} failed", name.get_name());
            }
        }
        Ok(())
    }
}
