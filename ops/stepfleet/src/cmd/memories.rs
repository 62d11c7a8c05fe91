//! `memories`: what an agent remembers, to look at, to search and to read.

use anyhow::Result;
use clap::Args;
use schemas::memory::{MemoryPage, MemoryView};

use crate::client::Client;
use crate::output::{Output, cell, facts, or_dash, print, table};

/// What an agent remembers, the latest changed first; or what of it fits a question, the best first.
#[derive(Debug, Args)]
pub struct Memories {
    agent: String,
    /// One of them, with all of its content
    #[arg(conflicts_with_all = ["search", "min_relevance", "tier", "limit", "cursor"])]
    memory: Option<String>,
    /// What to search for, by meaning and by words, as the agent itself does
    #[arg(long, short, value_name = "TEXT", conflicts_with = "cursor")]
    search: Option<String>,
    /// Of what is searched for: 0 to 1
    #[arg(long, requires = "search")]
    min_relevance: Option<f64>,
    /// core, working or archival
    #[arg(long)]
    tier: Option<String>,
    /// How many to show [default: 50; of a search 10]
    #[arg(long)]
    limit: Option<u32>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

impl Memories {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let path = format!("/api/agents/{}/memories", self.agent);
        if let Some(id) = &self.memory {
            let memory: MemoryView = client.get(&format!("{path}/{id}"), &[]).await?;
            out.show(&memory, told)?;
            // Below its table, as it is: it may be long, and have lines.
            return if out.json { Ok(()) } else { print(&memory.memory.content) };
        }
        let filters = [
            ("query", self.search),
            ("min_relevance", self.min_relevance.map(|least| least.to_string())),
            ("tier", self.tier),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("cursor", self.cursor),
        ];
        let query: Vec<(&str, String)> = filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let page: MemoryPage = client.get(&path, &query).await?;
        out.show_page(&page, page.next_cursor.as_deref(), |page| {
            let mut rows = table(&["memory", "label", "tier", "type", "fits", "significance", "updated", "content"]);
            for memory in &page.items {
                rows.add_row(row(memory));
            }
            if page.incomplete {
                rows.add_row(["there are so many that only the newest were searched"]);
            }
            rows
        })
    }
}

fn row(view: &MemoryView) -> [String; 8] {
    let memory = &view.memory;
    let content = match &memory.content_ref {
        Some(_) => "(large)".to_owned(),
        None => cell(&memory.content),
    };
    [
        memory.id.to_string(),
        cell(&or_dash(memory.label.as_ref())),
        memory.tier.as_str().into(),
        memory.kind.clone(),
        or_dash(view.relevance.map(hundredths)),
        hundredths(memory.significance),
        view.updated_at.clone(),
        content,
    ]
}

fn told(view: &MemoryView) -> comfy_table::Table {
    let memory = &view.memory;
    facts([
        ("memory", memory.id.to_string()),
        ("agent", memory.agent_id.to_string()),
        ("label", or_dash(memory.label.as_ref())),
        ("tier", memory.tier.as_str().to_owned()),
        ("type", memory.kind.clone()),
        ("significance", hundredths(memory.significance)),
        ("metadata", serde_json::Value::Object(memory.metadata.clone()).to_string()),
        ("version", memory.version.to_string()),
        ("created", view.created_at.clone()),
        ("updated", view.updated_at.clone()),
    ])
}

fn hundredths(value: f64) -> String {
    format!("{value:.2}")
}
