//! `destroy`

use anyhow::Result;
use clap::Args;

use super::control::{self, Whom};
use crate::client::Client;
use crate::output::Output;

/// Ends a session for good.
#[derive(Debug, Args)]
pub struct Destroy {
    #[command(flatten)]
    whom: Whom,
    /// Why, as it is recorded and shown
    #[arg(long)]
    reason: Option<String>,
}

impl Destroy {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        control::send(client, out, &self.whom, "destroy", control::reason(self.reason.as_ref())).await
    }
}
