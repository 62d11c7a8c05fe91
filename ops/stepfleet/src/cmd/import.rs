//! `import`: definitions of what others offer, in a form that `apply` takes.

use anyhow::{Context, Result, anyhow, bail};
use clap::{ArgGroup, Args, Subcommand};
use domain::definition::mcp::{Offer, Owner, Wish, definitions};
use host::config::Config;
use providers::McpServers;
use schemas::id::DefinitionId;
use schemas::limits::DEFINITIONS_MAX;

use super::apply::yaml;
use super::approvals::visible;
use crate::fleet::mcp_servers;
use crate::output::{Output, note, print};

/// Prints definitions of what others offer; nothing is written to the fleet.
#[derive(Debug, Args)]
pub struct Import {
    #[command(subcommand)]
    from: Source,
}

#[derive(Debug, Subcommand)]
enum Source {
    /// The tools of an MCP server of stepfleet.toml, as YAML for `apply`
    Mcp(Mcp),
}

/// Starts or calls the server from here, asks what it offers, and prints an action, a task and a tool for each.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("owner").required(true).args(["library", "project"]))]
struct Mcp {
    /// Name of the server, as in [mcp.<name>]
    server: String,
    /// Library that the definitions will belong to
    #[arg(long, value_name = "ID")]
    library: Option<String>,
    /// Project that they will belong to, instead
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// These tools alone, separated by commas [default: all]
    #[arg(long = "tool", value_delimiter = ',', value_name = "NAMES")]
    tools: Vec<String>,
    /// What the names of the tools begin with here [default: the name of the server and _]
    #[arg(long)]
    prefix: Option<String>,
    /// Let agents call tools that may do harm without asking a person
    #[arg(long)]
    no_approval: bool,
}

impl Import {
    pub async fn run(self, config: &Config, out: Output) -> Result<()> {
        let Source::Mcp(mcp) = self.from;
        let offer = mcp.offer(config).await?;
        // They name what a stranger has named.
        for told in &offer.notes {
            note(&visible(told));
        }
        if offer.documents.is_empty() {
            bail!("{} offers nothing that can be defined here", mcp.server);
        }
        if offer.documents.len() > DEFINITIONS_MAX {
            note(&format!(
                "{} definitions are more than the {DEFINITIONS_MAX} that `apply` writes at once; import some with --tool",
                offer.documents.len()
            ));
        }
        // An agent has them once its persona names them.
        note(&format!("for a persona: tool_ids: [{}]", offer.tools.join(", ")));
        match out.json {
            true => print(&serde_json::to_string_pretty(&offer.documents)?),
            false => print(&yaml::write(&offer.documents)?),
        }
    }
}

impl Mcp {
    async fn offer(&self, config: &Config) -> Result<Offer> {
        let owner = match (&self.library, &self.project) {
            (Some(library), _) => Owner::Library(id("library", library)?),
            (None, Some(project)) => Owner::Project(id("project", project)?),
            (None, None) => bail!("whose they will be is missing: --library or --project"),
        };
        let servers = McpServers::to_ask(mcp_servers(config)).map_err(anyhow::Error::msg)?;
        let listed = servers.tools(&self.server).await.with_context(|| format!("the MCP server {}", self.server))?;
        let prefix = self.prefix.clone().unwrap_or_else(|| format!("{}_", self.server));
        let wish = Wish { server: &self.server, owner, prefix: &prefix, only: &self.tools, ask: !self.no_approval };
        Ok(definitions(&listed, &wish))
    }
}

fn id(what: &str, text: &str) -> Result<DefinitionId> {
    DefinitionId::parse(text).map_err(|error| anyhow!("{what} {text:?} {error}"))
}
