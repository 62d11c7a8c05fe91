//! `resume`

use anyhow::Result;
use clap::Args;

use super::control::{self, Many, Whom};
use crate::client::Client;
use crate::output::Output;

/// Lets paused or failed sessions go on.
#[derive(Debug, Args)]
pub struct Resume {
    #[command(flatten)]
    whom: Whom,
    #[command(flatten)]
    many: Many,
}

impl Resume {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let payload = serde_json::json!({});
        if self.many.all {
            control::send_many(client, out, &self.whom, &self.many, "resume", payload).await
        } else {
            control::send(client, out, &self.whom, "resume", payload).await
        }
    }
}
