//! `get`: definitions as the fleet has them, in a form that `apply` takes.

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use domain::action::fields::not_one_of;
use schemas::api::{AgentPage, DefinitionPage, DefinitionView};
use schemas::definition::DefinitionKind;
use schemas::id::DefinitionId;
use serde_json::{Value, json};

use super::apply::yaml;
use crate::client::Client;
use crate::output::{Output, cell, drawn, print, table};

/// Shows definitions.
#[derive(Debug, Args)]
// `--version` asks for one of a definition here.
#[command(disable_version_flag = true)]
pub struct Get {
    /// library, project, model_profile, persona, tool, agent, task, action_def or prompt_spec
    kind: String,
    /// One of them; all if not given
    id: Option<String>,
    /// This version of it [default: the newest]
    #[arg(long, requires = "id")]
    version: Option<u64>,
    /// Print whole documents, as `apply` takes them
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Yaml,
}

impl Get {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let names = DefinitionKind::ALL.map(DefinitionKind::as_str);
        let kind =
            DefinitionKind::meant(&self.kind).ok_or_else(|| anyhow!("kind {}", not_one_of(&self.kind, &names)))?;
        let views = match &self.id {
            Some(id) => vec![one(client, kind, id, self.version).await?],
            None => all(client, kind).await?,
        };
        let format = match (self.output, out.json) {
            (Some(format), _) => Some(format),
            (None, true) => Some(Format::Json),
            (None, false) => self.id.is_some().then_some(Format::Yaml),
        };
        let documents: Vec<Value> = views.iter().map(document).collect();
        match format {
            None => print(&drawn(rows(&views))),
            Some(Format::Yaml) => print(&yaml::write(&documents)?),
            Some(Format::Json) if self.id.is_some() => print(&serde_json::to_string_pretty(&documents[0])?),
            Some(Format::Json) => print(&serde_json::to_string_pretty(&documents)?),
        }
    }
}

async fn one(client: &Client, kind: DefinitionKind, id: &str, version: Option<u64>) -> Result<DefinitionView> {
    let id = DefinitionId::parse(id).map_err(|error| anyhow!("id {id:?} {error}"))?;
    let path = format!("/api/{}/{id}", kind.plural());
    match version {
        Some(version) => client.get(&format!("{path}/versions/{version}"), &[]).await,
        None => client.get(&path, &[]).await,
    }
}

async fn all(client: &Client, kind: DefinitionKind) -> Result<Vec<DefinitionView>> {
    let path = format!("/api/{}", kind.plural());
    let (mut views, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let query: Vec<(&str, String)> = cursor.into_iter().map(|cursor| ("cursor", cursor)).collect();
        let next = if kind == DefinitionKind::Agent {
            // This list has agents that nobody defined, too.
            let page: AgentPage = client.get(&path, &query).await?;
            views.extend(page.items.into_iter().filter_map(|agent| agent.definition));
            page.next_cursor
        } else {
            let page: DefinitionPage = client.get(&path, &query).await?;
            views.extend(page.items);
            page.next_cursor
        };
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(views),
        }
    }
}

fn document(view: &DefinitionView) -> Value {
    json!({ "kind": view.kind, "definition": view.definition })
}

fn rows(views: &[DefinitionView]) -> comfy_table::Table {
    let mut rows = table(&["id", "name", "version", "owner", "updated"]);
    for view in views {
        let content = view.definition.to_value();
        let text = |name: &str| content[name].as_str().unwrap_or_default().to_owned();
        let owner = [text("library_id"), text("project_id")].concat();
        let owner = if owner.is_empty() { "-".to_owned() } else { owner };
        rows.add_row([
            view.id.to_string(),
            cell(&text("name")),
            view.version.to_string(),
            owner,
            view.updated_at.clone(),
        ]);
    }
    rows
}
