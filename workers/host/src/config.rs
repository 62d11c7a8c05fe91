//! Configuration: `stepfleet.toml`, then `STEPFLEET_*`, then flags; the later wins. Everything that
//! is wrong is reported at once, before anything starts.

mod layers;
mod parse;
mod place;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use domain::chat::{Parameters, Prices};
pub use layers::Layers;
pub use place::{Database, History, without_password};
use schemas::definition::NamespaceBudget;
use schemas::id::Namespace;
use serde::Deserialize;

use crate::secret::Secret;

/// What a process of a fleet needs to know, whatever its roles.
#[derive(Debug, Clone)]
pub struct Config {
    pub data_dir: PathBuf,
    /// Ledger, journal and registry.
    pub database: Database,
    /// The broker; without one, actions travel in this process or through the ledger.
    pub amqp: Option<Secret>,
    /// The LanceDB tables.
    pub history: History,
    /// Where the gateway listens.
    pub listen: SocketAddr,
    /// Where a worker answers probes and scrapes; nowhere if not given.
    pub worker_listen: Option<SocketAddr>,
    /// An admin token of the default namespace, besides the stored ones.
    pub token: Option<Secret>,
    /// The scripted provider's file.
    pub script: Option<PathBuf>,
    /// Whether outbound calls may go to loopback and private addresses. If nobody says: yes for
    /// `up`, no for the processes of a fleet.
    pub allow_private: Option<bool>,
    /// Number of shards of a new installation; an existing one keeps its own.
    pub shards: Option<u16>,
    /// A filter as of `tracing_subscriber::EnvFilter`.
    pub log: String,
    /// `provider/model` that `run_step` uses, or `scripted`.
    pub model: Option<String>,
    pub models: BTreeMap<String, ModelProfile>,
    /// What makes the vectors of memory search; the model that is compiled in if not given.
    pub embedding: Option<Embedding>,
    /// A file that gets a line for every execution of a step, for measurements.
    pub step_log: Option<PathBuf>,
    /// MCP servers by the names that definitions use.
    pub mcp: BTreeMap<String, McpServer>,
    /// What namespaces may use, by their names.
    pub budgets: BTreeMap<Namespace, NamespaceBudget>,
    /// Pools of workers of others whose tasks go to the broker: `pool`, or `namespace:pool`.
    pub task_pools: Vec<String>,
    /// The Deno program that runs code of models; looked for on the path if not given.
    pub deno: Option<PathBuf>,
    /// Hosts, with or without a port, that such code may call.
    pub code_hosts: Vec<String>,
    /// Variables of executors that headers of `http` actions may have, each with a host that it may be sent to.
    pub http_env: Vec<(String, String)>,
}

/// An MCP server, `[mcp.<name>]` in `stepfleet.toml`: either a command or a url.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// A program that speaks MCP on its standard input and output.
    #[serde(default)]
    pub command: Option<PathBuf>,
    #[serde(default)]
    pub args: Vec<String>,
    /// Names of variables that the program gets from our environment.
    #[serde(default)]
    pub env: Vec<String>,
    /// Where it runs; our own directory if absent.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// The address of a server that speaks streamable HTTP.
    #[serde(default)]
    pub url: Option<String>,
    /// Variable that holds its token.
    #[serde(default)]
    pub token_env: Option<String>,
}

/// A named choice of model, `[models.<name>]` in `stepfleet.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelProfile {
    /// `anthropic`, `openai`, `openai_responses`, `gemini` or `scripted`.
    pub provider: String,
    pub model: String,
    #[serde(default)]
    pub base_url: Option<String>,
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// Variable that holds the key, if not the provider's usual one, which goes to the provider's own address alone.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// File that holds the key, if no variable does.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// What requests leave open; further fields of the provider's body, too.
    #[serde(default)]
    pub parameters: Parameters,
    /// What the model costs, for the cost of each call.
    #[serde(default)]
    pub prices: Prices,
}

/// The embedder, `[embedding]` in `stepfleet.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// `static`, which needs no network, or `openai`.
    #[serde(default)]
    pub provider: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub base_url: Option<String>,
    /// Variable that holds the key, if not the provider's usual one, which goes to the provider's own address alone.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// File that holds the key, if no variable does.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Shorter vectors than the model's own.
    #[serde(default)]
    pub dimensions: Option<u32>,
    /// Whether memories with vectors of another model get new ones, by and by.
    #[serde(default)]
    pub renew: bool,
}

/// One thing that is wrong: where it was said, what was said, what to say instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub origin: String,
    pub value: String,
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}: {}", self.origin, self.remedy)
        } else {
            write!(f, "{} = {:?}: {}", self.origin, self.value, self.remedy)
        }
    }
}

/// All that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "{count} problem{} in the configuration", if count == 1 { "" } else { "s" })?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl Config {
    /// Reads the layers.
    ///
    /// # Errors
    /// Every problem there is, not just the first.
    pub fn load(layers: &Layers) -> Result<Self, Problems> {
        parse::config(layers)
    }
}
