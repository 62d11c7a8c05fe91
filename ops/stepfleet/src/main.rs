//! The `stepfleet` binary: the embedded fleet, the processes of a shared one, and the operator's commands.

mod banner;
mod bench;
mod cli;
mod client;
mod cmd;
mod datadir_files;
mod fleet;
mod output;
mod sse;
mod tokens;

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command, Settings, Target};
use client::Client;
use host::config::{Config, Layers, Problems};
use output::Output;

/// A burst of sessions leaves little behind: what is freed goes back to the system within moments.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code for a wrong command line or configuration; clap uses it too.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::note(&format!("stepfleet: the system gives no threads: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(run(cli));
    // Blocking reads that hang (a stuck disk) must not hold up the end of the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads the answer has seen enough of it.
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|it| it.kind() == io::ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            output::note(&format!("stepfleet: {error:#}"));
            let usage = error.is::<Problems>() || error.is::<UsageError>();
            if usage { ExitCode::from(EXIT_USAGE) } else { ExitCode::FAILURE }
        }
    }
}

/// A configuration file that cannot be read.
#[derive(Debug)]
struct UsageError(String);

impl std::error::Error for UsageError {}

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    host::open_files::raise();
    let out = Output { json: cli.json };
    let settings = &cli.settings;
    match cli.command {
        Command::Up(up) => {
            let config = load(settings, with(settings, up.flags()))?;
            up.run(config).await
        }
        Command::Migrate(migrate) => {
            let shards = migrate.shards.clone().map(|shards| ("shards", shards));
            let config = load(settings, with(settings, shards.into_iter().collect()))?;
            migrate.run(&config, out).await
        }
        Command::Dispatcher(dispatcher) => {
            let config = load(settings, with(settings, dispatcher.flags()))?;
            dispatcher.run(config).await
        }
        Command::Worker(worker) => {
            let config = load(settings, with(settings, worker.flags()))?;
            worker.run(config).await
        }
        Command::Doctor(doctor) => doctor.run(&load(settings, settings.flags())?, settings.url.as_deref(), out).await,
        Command::Token(token) => token.run(&load(settings, settings.flags())?, out).await,
        Command::Import(import) => import.run(&load(settings, settings.flags())?, out).await,
        Command::Bench(bench) => bench.run(load(settings, settings.flags())?, &target(settings)?).await,
        command => {
            let client = Client::find(&target(settings)?)?;
            operate(command, &client, out).await
        }
    }
}

/// The commands that speak to a fleet over HTTP.
async fn operate(command: Command, client: &Client, out: Output) -> anyhow::Result<()> {
    match command {
        Command::Create(create) => create.run(client, out).await,
        Command::Sessions(sessions) => sessions.run(client, out).await,
        Command::Show(show) => show.run(client, out).await,
        Command::Steps(steps) => steps.run(client, out).await,
        Command::Tail(tail) => tail.run(client, out).await,
        Command::Why(why) => why.run(client, out).await,
        Command::Pause(pause) => pause.run(client, out).await,
        Command::Resume(resume) => resume.run(client, out).await,
        Command::Interrupt(interrupt) => interrupt.run(client, out).await,
        Command::Input(input) => input.run(client, out).await,
        Command::Destroy(destroy) => destroy.run(client, out).await,
        Command::Conversations(conversations) => conversations.run(client, out).await,
        Command::Say(say) => say.run(client, out).await,
        Command::Memories(memories) => memories.run(client, out).await,
        Command::Approvals(approvals) => approvals.run(client, out).await,
        Command::Approve(approve) => approve.run(client, out).await,
        Command::Deny(deny) => deny.run(client, out).await,
        Command::Spending => cmd::spending::run(client, out).await,
        Command::Action(action) => action.run(client, out).await,
        Command::Apply(apply) => apply.run(client, out).await,
        Command::Get(get) => get.run(client, out).await,
        Command::Shards => cmd::shards::run(client, out).await,
        Command::Workers => cmd::workers::run(client, out).await,
        Command::Drain(drain) => drain.run(client, out).await,
        Command::Dead(dead) => dead.run(client, out).await,
        Command::Health => cmd::health::run(client, out).await,
        Command::Up(_)
        | Command::Migrate(_)
        | Command::Dispatcher(_)
        | Command::Worker(_)
        | Command::Doctor(_)
        | Command::Token(_)
        | Command::Import(_)
        | Command::Bench(_) => unreachable!("handled by the caller"),
    }
}

/// The settings among the flags of a command, over those that every command understands.
fn with(settings: &Settings, own: BTreeMap<&'static str, String>) -> BTreeMap<&'static str, String> {
    let mut flags = settings.flags();
    flags.extend(own);
    flags
}

fn load(settings: &Settings, flags: BTreeMap<&'static str, String>) -> anyhow::Result<Config> {
    let layers = Layers::of_process(settings.config_file.as_deref(), flags)
        .map_err(|problem| UsageError(problem.to_string()))?;
    Ok(Config::load(&layers)?)
}

/// Whom the HTTP commands talk to; the settings count here too, so that a `stepfleet.toml` with a
/// data directory is found by all commands.
fn target(settings: &Settings) -> anyhow::Result<Target> {
    let config = load(settings, settings.flags())?;
    let token = config.token.as_ref().map(|token| token.expose().to_owned());
    Ok(Target { url: settings.url.clone(), token, data_dir: config.data_dir })
}
