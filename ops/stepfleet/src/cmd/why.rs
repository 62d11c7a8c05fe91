//! `why`

use anyhow::Result;
use clap::Args;
use schemas::api::WhyBody;

use crate::client::Client;
use crate::output::{self, Output, or_dash, table};

/// How the gateway names what waits for a person.
const OPERATION: &str = "GET /api/operations/";

/// Says why a session stands where it stands: the chain of causes, through the sessions that it waits for.
#[derive(Debug, Args)]
pub struct Why {
    /// Session id
    session: String,
}

impl Why {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let why: WhyBody = client.get(&format!("/api/sessions/{}/why", self.session), &[]).await?;
        if !out.json {
            output::print(&why.summary)?;
        }
        out.show(&why, |why| {
            let mut rows = table(&["what", "detail", "since", "until"]);
            for link in &why.chain {
                let (since, until) = (or_dash(link.since.as_ref()), or_dash(link.until.as_ref()));
                rows.add_row([link.what.clone(), link.detail.clone(), since, until]);
            }
            if let Some(remedy) = &why.remedy {
                rows.add_row(["remedy", &with_command(remedy)]);
            }
            rows
        })
    }
}

/// A remedy with the command that does what its request does.
fn with_command(remedy: &str) -> String {
    let Some((before, after)) = remedy.split_once(OPERATION) else { return remedy.to_owned() };
    let (id, rest) = after.split_at(after.find(' ').unwrap_or(after.len()));
    format!("{before}`stepfleet approvals {id}` ({OPERATION}{id}){rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_a_person_is_told_with_its_command() {
        let told = with_command("Of session s1: Answer it: GET /api/operations/o1.ask shows what is asked.");
        let answer = "`stepfleet approvals o1.ask` (GET /api/operations/o1.ask) shows what is asked.";
        assert_eq!(told, format!("Of session s1: Answer it: {answer}"));
        assert_eq!(with_command("Resume it."), "Resume it.");
    }
}
