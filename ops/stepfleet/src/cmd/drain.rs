//! `drain`

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::client::Client;
use crate::output::{Output, facts};

/// Lets a worker end what it runs, hand over its shards, and end.
#[derive(Debug, Args)]
pub struct Drain {
    worker: String,
}

impl Drain {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let answer: Value = client.post(&format!("/api/workers/{}/drain", self.worker), &json!({})).await?;
        out.show(&answer, |_| facts([("worker", self.worker.clone()), ("draining", "yes".into())]))
    }
}
