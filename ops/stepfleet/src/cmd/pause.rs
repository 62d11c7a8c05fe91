//! `pause`

use anyhow::Result;
use clap::Args;

use super::control::{self, Many, Whom};
use crate::client::Client;
use crate::output::Output;

/// Stops sessions at their next step boundary.
#[derive(Debug, Args)]
pub struct Pause {
    #[command(flatten)]
    whom: Whom,
    #[command(flatten)]
    many: Many,
    /// Why, as it is recorded and shown
    #[arg(long)]
    reason: Option<String>,
}

impl Pause {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let payload = control::reason(self.reason.as_ref());
        if self.many.all {
            control::send_many(client, out, &self.whom, &self.many, "pause", payload).await
        } else {
            control::send(client, out, &self.whom, "pause", payload).await
        }
    }
}
