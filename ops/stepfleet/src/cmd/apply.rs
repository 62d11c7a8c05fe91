//! `apply`: definitions of files into the fleet, all of them or none.

mod files;
pub mod yaml;

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use domain::definition::check;
use domain::definition::plan::{order, placed, tell};
use schemas::api::{DefinitionChange, DefinitionsAnswer};
use schemas::limits::DEFINITIONS_MAX;
use schemas::problem::Problem;
use serde_json::Value;

use super::confirm;
use crate::client::{Client, Refusal};
use crate::output::{Output, print};
use files::Document;

/// Writes the definitions of files: says what changes, asks, and writes them in one step.
#[derive(Debug, Args)]
pub struct Apply {
    /// YAML or JSON file, or folder of such files; may be given more than once
    #[arg(short, long = "file", required = true, value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Say what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Apply {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let documents = in_order(files::read(&self.files)?);
        check_count(documents.len())?;
        check_all(&documents)?;
        let body = Value::Array(documents.iter().map(|document| document.item.body()).collect());
        let planned = send(client, "/api/definitions?dry_run=true", &body, &documents).await?;
        let is_news = planned.items.iter().any(|item| item.change != DefinitionChange::Unchanged);
        if out.json && (self.dry_run || !is_news) {
            return print(&serde_json::to_string_pretty(&planned)?);
        }
        if !out.json {
            for line in planned.items.iter().flat_map(tell) {
                print(&line)?;
            }
        }
        if !is_news {
            return print("nothing to do: the fleet has all of this");
        }
        if self.dry_run || !(self.yes || is_confirmed()?) {
            return if out.json { Ok(()) } else { print("nothing was written") };
        }
        let written = send(client, "/api/definitions", &body, &documents).await?;
        if out.json {
            return print(&serde_json::to_string_pretty(&written)?);
        }
        let count = |change| written.items.iter().filter(|item| item.change == change).count();
        print(&format!(
            "written: {} created, {} updated, {} unchanged",
            count(DefinitionChange::Created),
            count(DefinitionChange::Updated),
            count(DefinitionChange::Unchanged)
        ))
    }
}

fn in_order(documents: Vec<Document>) -> Vec<Document> {
    let items: Vec<_> = documents.iter().map(|document| document.item.clone()).collect();
    let mut documents: Vec<Option<Document>> = documents.into_iter().map(Some).collect();
    order(&items).into_iter().filter_map(|index| documents[index].take()).collect()
}

/// All of them are one write, so that all are written or none, and that has a bound.
fn check_count(count: usize) -> Result<()> {
    if count <= DEFINITIONS_MAX {
        return Ok(());
    }
    bail!(
        "nothing was written: these are {count} definitions, and one call writes at most {DEFINITIONS_MAX}, all of \
         them or none. Apply them in parts, as files or smaller folders, what others refer to first: libraries, model \
         profiles and projects, then prompt specs, action defs and tasks, then tools, personas and agents"
    )
}

/// What is wrong with the files themselves is told before anything is sent.
fn check_all(documents: &[Document]) -> Result<()> {
    let mut lines = Vec::new();
    for document in documents {
        for problem in check(document.item.kind, &document.item.definition).err().into_iter().flatten() {
            let field = if problem.field.is_empty() { String::new() } else { format!(" {}", problem.field) };
            lines.push(format!("  {}:{field} {}", document.place(), problem.message));
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    bail!("nothing was written; mend these first:\n{}", lines.join("\n"))
}

async fn send(client: &Client, path: &str, body: &Value, documents: &[Document]) -> Result<DefinitionsAnswer> {
    client.post(path, body).await.map_err(|error| match error.downcast::<Refusal>() {
        Ok(Refusal(problem)) => Refusal(located(problem, documents)).into(),
        Err(other) => other,
    })
}

/// Names files instead of places of the list.
fn located(mut problem: Problem, documents: &[Document]) -> Problem {
    let places: Vec<String> = documents.iter().map(Document::place).collect();
    for error in &mut problem.errors {
        error.field = placed(&error.field, &places);
    }
    problem
}

/// Asks on a terminal; elsewhere nobody could answer, and who calls us there has decided.
fn is_confirmed() -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(true);
    }
    confirm::is_yes("write this?")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Nobody listens at the address of this client.
    #[tokio::test]
    async fn more_than_one_write_takes_is_told_before_anything_is_sent() {
        assert!(check_count(DEFINITIONS_MAX).is_ok());
        let file = std::env::temp_dir().join(format!("stepfleet-many-{}.json", std::process::id()));
        let library = |n: usize| json!({"kind": "library", "id": format!("l{n}"), "name": "L"});
        let many: Vec<Value> = (0..=DEFINITIONS_MAX).map(library).collect();
        std::fs::write(&file, json!(many).to_string()).expect("a file");
        let client = Client::new("http://127.0.0.1:9", "sf_x").expect("a client");
        let apply = Apply { files: vec![file.clone()], dry_run: true, yes: true };
        let told = apply.run(&client, Output { json: true }).await.expect_err("too many").to_string();
        std::fs::remove_file(&file).expect("removed");
        for part in ["these are 201 definitions", "at most 200", "Apply them in parts", "what others refer to first"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
