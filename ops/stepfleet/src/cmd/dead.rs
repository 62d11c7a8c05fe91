//! `dead`: messages that could not be taken.

mod sweep;

use anyhow::Result;
use clap::{ArgGroup, Args, Subcommand};
use schemas::api::DeadLetterView;
use serde_json::{Value, json};

use self::sweep::Sweep;
use super::items;
use crate::client::Client;
use crate::output::{Output, facts, table};

/// Of a body, in a table; JSON has all of it.
const BODY_CHARS_MAX: usize = 4_000;

/// Lists, shows, sends again and throws away dead letters.
#[derive(Debug, Args)]
pub struct Dead {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List them, the oldest first
    List {
        /// How many to show
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show one with its body
    Show { id: String },
    /// Send one back to where it came from, or all of them
    Redrive(Which),
    /// Throw one away, or all of them
    Drop(Which),
}

#[derive(Debug, Args)]
// As a group, so that whoever gives neither is told of both.
#[command(group = ArgGroup::new("which").required(true).args(["id", "all"]))]
struct Which {
    id: Option<String>,
    /// All that lie there now
    #[arg(long)]
    all: bool,
    /// Only those whose reason has this text in it
    #[arg(long, value_name = "TEXT", requires = "all", conflicts_with = "id")]
    reason: Option<String>,
}

impl Dead {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        match self.verb {
            Verb::List { limit } => list(client, out, limit).await,
            Verb::Show { id } => {
                let letter: DeadLetterView = client.get(&format!("/api/dead/{id}"), &[]).await?;
                out.show(&letter, |letter| {
                    facts([
                        ("id", letter.id.clone()),
                        ("died", letter.died_at.clone()),
                        ("in", letter.origin.clone()),
                        ("why", letter.reason.clone()),
                        ("body", excerpt(&letter.body)),
                    ])
                })
            }
            Verb::Redrive(which) => which.attend(client, out, "redrive").await,
            Verb::Drop(which) => which.attend(client, out, "drop").await,
        }
    }
}

impl Which {
    async fn attend(self, client: &Client, out: Output, verb: &'static str) -> Result<()> {
        match self.id.filter(|_| !self.all) {
            Some(id) => act(client, out, &id, verb).await,
            None => Sweep { verb, reason: self.reason }.run(client, out).await,
        }
    }
}

async fn list(client: &Client, out: Output, limit: usize) -> Result<()> {
    let answer: Value = client.get("/api/dead", &[("limit", limit.to_string())]).await?;
    let letters: Vec<DeadLetterView> = items(answer)?;
    out.show(&letters, |letters| {
        let mut rows = table(&["id", "died", "in", "bytes", "why"]);
        for letter in letters {
            rows.add_row([
                letter.id.clone(),
                letter.died_at.clone(),
                letter.origin.clone(),
                letter.bytes.to_string(),
                letter.reason.clone(),
            ]);
        }
        rows
    })
}

async fn act(client: &Client, out: Output, id: &str, verb: &'static str) -> Result<()> {
    let answer: Value = client.post(&format!("/api/dead/{id}/{verb}"), &json!({})).await?;
    out.show(&answer, |_| facts([("id", id.to_owned()), ("done", verb.to_owned())]))
}

/// What of a body a person looks at: a message may be dead because it is too large.
fn excerpt(body: &str) -> String {
    let mut shown: String = body.chars().take(BODY_CHARS_MAX).collect();
    if shown.len() < body.len() {
        shown.push_str(&format!("… ({} bytes; --json prints all of them)", body.len()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn parsed(args: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["stepfleet", "dead"].iter().chain(args))
    }

    #[test]
    fn whoever_names_no_letter_is_told_of_both_ways() {
        for verb in ["drop", "redrive"] {
            let told = parsed(&[verb]).unwrap_err().to_string();
            assert!(told.contains("<ID|--all>"), "{told}");
            assert!(parsed(&[verb, "l1"]).is_ok() && parsed(&[verb, "--all", "--reason", "x"]).is_ok());
            assert!(parsed(&[verb, "l1", "--all"]).is_err() && parsed(&[verb, "--reason", "x"]).is_err());
        }
    }

    #[test]
    fn of_a_large_body_the_beginning_is_shown() {
        assert_eq!(excerpt("{\"type\": 1}"), "{\"type\": 1}");
        let shown = excerpt(&"é".repeat(3_000_000));
        assert!(shown.starts_with('é') && shown.ends_with("(6000000 bytes; --json prints all of them)"), "{shown}");
        assert!(shown.chars().count() < BODY_CHARS_MAX + 100);
    }
}
