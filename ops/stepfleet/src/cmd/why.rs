//! `why`

use anyhow::Result;
use clap::Args;
use schemas::api::WhyBody;

use crate::client::Client;
use crate::output::{self, Output, or_dash, table};

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
                rows.add_row(["remedy", remedy]);
            }
            rows
        })
    }
}
