//! The chaos suite: a whole fleet on real services, thousands of sessions, faults drawn from a
//! seed, and a checker that judges from outside.

mod api;
mod check;
mod diary;
mod finish;
mod fleet;
mod foreign;
mod gather;
mod inject;
mod journal;
mod load;
mod logs;
mod plan;
mod proxy;
mod report;
mod run;
mod seen;
mod sse;
mod step_server;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::check::sabotage::Break;
use crate::fleet::services::Broker;
use crate::plan::{History, Plan, Shape};

/// Attacks a fleet of its own and proves that nothing was lost or repeated.
#[derive(Debug, Parser)]
#[command(name = "chaos", max_term_width = 100)]
pub struct Cli {
    /// How long faults happen; checking comes on top
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Repeats the choices of another run [default: any]
    #[arg(long)]
    seed: Option<u64>,
    #[arg(long, default_value_t = 3)]
    workers: usize,
    #[arg(long, default_value_t = 2)]
    dispatchers: usize,
    #[arg(long, default_value_t = 2_000)]
    sessions: usize,
    /// Conversations beside them [default: a tenth of the sessions]
    #[arg(long)]
    conversations: Option<usize>,
    /// Draw only from these kinds of faults, as in "kill worker,net"
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Every kind of fault once, as briefly as still says something; about two minutes, so --minutes 2
    #[arg(long)]
    brief: bool,
    /// Where the fleet has its history
    #[arg(long, value_enum, default_value_t = History::Directory)]
    history: History,
    /// The RabbitMQ that carries the fleet's actions
    #[arg(long, value_enum, default_value_t = Broker::System)]
    broker: Broker,
    /// Where services, logs and the report go [default: a new directory below /var/tmp]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The binary under test
    #[arg(long, env = "STEPFLEET_BIN")]
    binary: Option<PathBuf>,
    /// The directory of `ops/services`
    #[arg(long, default_value = "ops")]
    ops: PathBuf,
    /// Print what the seed chooses, and do nothing
    #[arg(long)]
    plan: bool,
    /// Judge the observed.json of an earlier run again
    #[arg(long, value_name = "FILE")]
    recheck: Option<PathBuf>,
    /// Break what was seen before judging it; it must be noticed
    #[arg(long = "break", value_name = "WHAT")]
    sabotage: Option<Break>,
}

impl Cli {
    fn shape(&self) -> Result<Shape> {
        if !(0.1..=10_000.0).contains(&self.minutes) {
            bail!("--minutes takes a number from 0.1 to 10000, not {}", self.minutes);
        }
        if !(1..=50).contains(&self.workers) || !(1..=20).contains(&self.dispatchers) {
            bail!("--workers takes 1 to 50 and --dispatchers 1 to 20");
        }
        let conversations = self.conversations.unwrap_or(self.sessions / 10);
        if self.sessions > 200_000 || conversations > 20_000 {
            bail!("--sessions takes at most 200000 and --conversations at most 20000");
        }
        let known = |kind: &String| plan::faults::kinds(self.history).any(|known| known == kind);
        if let Some(strange) = self.only.iter().find(|kind| !known(kind)) {
            let kinds: Vec<&str> = plan::faults::kinds(self.history).collect();
            bail!("--only does not know {strange:?}; there are {}", kinds.join(", "));
        }
        Ok(Shape {
            seed: self.seed.unwrap_or_else(|| rand::random_range(0..1_000_000)),
            seconds: (self.minutes * 60.0) as u64,
            workers: self.workers,
            dispatchers: self.dispatchers,
            sessions: self.sessions,
            conversations,
            only: self.only.clone(),
            brief: self.brief,
            history: self.history,
        })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match act(Cli::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all is well.
async fn act(cli: Cli) -> Result<bool> {
    if let Some(file) = &cli.recheck {
        let text = std::fs::read(file).with_context(|| file.display().to_string())?;
        let seen =
            serde_json::from_slice(&text).with_context(|| format!("{} is no record of a run", file.display()))?;
        return run::judge(seen, cli.sabotage).map(|(_, findings)| findings.is_empty());
    }
    let shape = cli.shape()?;
    let plan = Plan::draw(shape);
    if cli.plan {
        println!("{}", serde_json::to_string_pretty(&plan)?);
        return Ok(true);
    }
    // Whatever it has started ends with it.
    tokio::select! {
        well = run::run(&cli, plan) => well,
        _ = tokio::signal::ctrl_c() => bail!("interrupted; everything is stopped"),
    }
}
