//! `conversations`: list, show, create, complete, and who takes part.

mod seats;

use anyhow::Result;
use clap::{Args, Subcommand};
use comfy_table::Table;
use serde_json::{Value, json};

use crate::client::Client;
use crate::output::{Output, cell, facts, table};

/// Lists, shows, creates and completes conversations, and says who takes part.
#[derive(Debug, Args)]
pub struct Conversations {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List them, newest first
    List {
        /// active (those that wait, too), completed or failed
        #[arg(long)]
        status: Option<String>,
        /// Those that this agent takes part in
        #[arg(long)]
        agent: Option<String>,
        /// Those with this tag
        #[arg(long)]
        tag: Option<String>,
        /// How many to show
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Where the page before ended
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show one: who takes part, what is under way, what was said last
    Show {
        conversation: String,
        /// How many messages to show
        #[arg(long, default_value_t = 20)]
        messages: u32,
    },
    /// Create one with these agents
    Create {
        /// Agents that take part, each with a session of its own
        agents: Vec<String>,
        /// What people are shown as its name
        #[arg(long)]
        title: Option<String>,
        /// Id of the conversation: creating it again changes nothing
        #[arg(long)]
        id: Option<String>,
    },
    /// List who takes part, and after them who has left
    Participants { conversation: String },
    /// Bring in an agent or a user
    Join(seats::Join),
    /// Take somebody out; turns that are under way go on
    Leave(seats::Leave),
    /// Complete one, for good: nothing is said in it any more
    Complete { conversation: String },
}

impl Conversations {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        match self.verb {
            None => list(client, out, &[("limit", "50".to_owned())]).await,
            Some(Verb::List { status, agent, tag, limit, cursor }) => {
                let filters = [
                    ("status", status),
                    ("agent_id", agent),
                    ("tag", tag),
                    ("cursor", cursor),
                    ("limit", Some(limit.to_string())),
                ];
                let query: Vec<(&str, String)> =
                    filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                list(client, out, &query).await
            }
            Some(Verb::Show { conversation, messages }) => show(client, out, &conversation, messages).await,
            Some(Verb::Participants { conversation }) => seats::list(client, out, &conversation).await,
            Some(Verb::Join(join)) => join.run(client, out).await,
            Some(Verb::Leave(leave)) => leave.run(client, out).await,
            Some(Verb::Complete { conversation }) => {
                let path = format!("/api/conversations/{conversation}");
                let completed: Value = client.patch(&path, &json!({ "status": "completed" })).await?;
                out.show(&completed, |completed| overview([completed]))
            }
            Some(Verb::Create { agents, title, id }) => {
                let seats: Vec<Value> = agents.iter().map(|agent| json!({ "agent_id": agent })).collect();
                let body = json!({ "conversation_id": id, "title": title, "agents": seats });
                let made: Value = client.post("/api/conversations", &body).await?;
                out.show(&made, |made| {
                    let mut rows = table(&["conversation", "agent", "session"]);
                    let id = text(&made["conversation"], "conversation_id");
                    rows.add_row([id.clone()]);
                    for one in made["started"].as_array().into_iter().flatten() {
                        rows.add_row([id.clone(), text(one, "agent_id"), text(one, "session_id")]);
                    }
                    rows
                })
            }
        }
    }
}

async fn list(client: &Client, out: Output, query: &[(&str, String)]) -> Result<()> {
    let page: Value = client.get("/api/conversations", query).await?;
    out.show_page(&page, page["next_cursor"].as_str(), |page| overview(page["items"].as_array().into_iter().flatten()))
}

fn overview<'v>(conversations: impl IntoIterator<Item = &'v Value>) -> Table {
    let mut rows = table(&["conversation", "status", "agent", "title", "records", "updated"]);
    for one in conversations {
        rows.add_row([
            text(one, "conversation_id"),
            text(one, "status"),
            text(one, "primary_agent_id"),
            cell(&text(one, "title")),
            one["last_offset"].to_string(),
            text(one, "updated_at"),
        ]);
    }
    rows
}

async fn show(client: &Client, out: Output, id: &str, messages: u32) -> Result<()> {
    let detail: Value = client.get(&format!("/api/conversations/{id}"), &[]).await?;
    let query = [("order", "desc".to_owned()), ("limit", messages.max(1).to_string())];
    let said: Value = client.get(&format!("/api/conversations/{id}/messages"), &query).await?;
    let whole = json!({ "detail": detail, "messages": said["items"] });
    out.show(&whole, |whole| {
        let (one, mut rows) = (&whole["detail"]["conversation"], facts([]));
        for name in ["conversation_id", "title", "status", "created_by", "created_at", "updated_at"] {
            rows.add_row([name.to_owned(), text(one, name)]);
        }
        if let Some(branch) = one["branch_context"]["branch"].as_str() {
            rows.add_row(["branch".to_owned(), cell(branch)]);
        }
        for who in whole["detail"]["participants"].as_array().into_iter().flatten() {
            let name = [text(who, "user_id"), text(who, "agent_id")].concat();
            let left = who["left_at"].as_str().map(|at| format!(", left {at}")).unwrap_or_default();
            rows.add_row([text(who, "role"), format!("{name} {}{left}", text(who, "session_id"))]);
        }
        for turn in whole["detail"]["active_turns"].as_array().into_iter().flatten() {
            rows.add_row([
                "turn".to_owned(),
                format!("{} of {}: {}", text(turn, "turn_id"), text(turn, "agent_id"), text(turn, "phase")),
            ]);
        }
        for message in whole["messages"].as_array().into_iter().flatten().rev() {
            let name = [text(message, "user_id"), text(message, "agent_id")].concat();
            rows.add_row([name, cell(&text(message, "text"))]);
        }
        rows
    })
}

/// A text in an answer; empty where there is none.
fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
