//! The command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::{bench, cmd};

/// A durable fleet for AI agents.
#[derive(Debug, Parser)]
#[command(name = "stepfleet", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub settings: Settings,
    /// Print JSON instead of tables
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// Settings that every command understands; each also has a variable and a key in stepfleet.toml.
#[derive(Debug, Clone, Default, Args)]
pub struct Settings {
    /// Configuration file [default: stepfleet.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// Directory of the embedded fleet [default: stepfleet-data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Address of the fleet to talk to [default: the one running on the data directory]
    #[arg(long, global = true, env = "STEPFLEET_URL")]
    pub url: Option<String>,
    /// Token to use, or for `up` an admin token to accept besides the stored ones
    #[arg(long, global = true, hide_env_values = true)]
    pub token: Option<String>,
    /// What to log, as in info,worker=debug
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,
}

impl Settings {
    /// The flags that were given, by setting name.
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        let given = [("data_dir", &self.data_dir), ("token", &self.token), ("log", &self.log)];
        given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }
}

/// Whom a command talks to.
#[derive(Debug, Clone)]
pub struct Target {
    pub url: Option<String>,
    pub token: Option<String>,
    pub data_dir: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the whole fleet in this process: no other service is needed
    Up(cmd::up::Up),
    /// Prepare the database of a fleet: create its schema, or bring it up to date
    Migrate(cmd::migrate::Migrate),
    /// Run a gateway of a fleet: HTTP, streams, console, ingress
    Dispatcher(cmd::dispatcher::Dispatcher),
    /// Run a worker of a fleet: runner, executor, archivist
    Worker(cmd::worker::Worker),
    /// Start a session
    Create(cmd::create::Create),
    /// List sessions, newest first
    Sessions(cmd::sessions::Sessions),
    /// One session: standing, settings, result, state; --json has the long ones whole
    Show(cmd::show::Show),
    /// Steps of a session or of an agent
    Steps(cmd::steps::Steps),
    /// Follow the committed events of a session until it ends
    Tail(cmd::tail::Tail),
    /// Why a session stands where it stands
    Why(cmd::why::Why),
    /// Stop sessions at the next step boundary, until they are resumed
    Pause(cmd::pause::Pause),
    /// Let paused (or failed) sessions go on
    Resume(cmd::resume::Resume),
    /// Give a session guidance for its next step
    Interrupt(cmd::interrupt::Interrupt),
    /// Hand a session an input
    Input(cmd::input::Input),
    /// End a session
    Destroy(cmd::destroy::Destroy),
    /// Conversations: list, show, create, join, leave, complete
    Conversations(cmd::conversations::Conversations),
    /// Say something in a conversation and print the answer as it is told
    Say(cmd::say::Say),
    /// What an agent remembers: list, search, read
    Memories(cmd::memories::Memories),
    /// What agents ask people for
    Approvals(cmd::approvals::Approvals),
    /// Let an agent do what it asks to do
    Approve(cmd::approvals::Approve),
    /// Do not let an agent do what it asks to do
    Deny(cmd::approvals::Deny),
    /// What the calls of models have used, and may use
    Spending,
    /// What became of an action
    #[command(visible_alias = "actions")]
    Action(cmd::action::Action),
    /// Write definitions of agents, tools and so on from files
    Apply(cmd::apply::Apply),
    /// Show definitions
    Get(cmd::get::Get),
    /// Make definitions of what others offer, as the tools of an MCP server
    Import(cmd::import::Import),
    /// Shards: owner, epoch, backlog
    Shards,
    /// Workers and the shards they own
    Workers,
    /// Let a worker end what it runs, hand over its shards, and end (with an admin's token)
    Drain(cmd::drain::Drain),
    /// Messages that could not be taken: list, show, redrive, drop
    Dead(cmd::dead::Dead),
    /// Health of the fleet and its parts
    Health,
    /// Check an installation, also while a fleet runs on it
    Doctor(cmd::doctor::Doctor),
    /// Make, list and revoke API tokens
    Token(cmd::token::Token),
    /// Measure this build on this machine, one JSON line per metric
    Bench(bench::Bench),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
