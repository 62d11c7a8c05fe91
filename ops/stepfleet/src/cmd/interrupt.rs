//! `interrupt`

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::control::{self, Whom};
use crate::client::Client;
use crate::output::Output;

/// Gives a session guidance, which its next step gets once.
#[derive(Debug, Args)]
pub struct Interrupt {
    #[command(flatten)]
    whom: Whom,
    /// A JSON object, as in '{"subject":"dogs"}'
    #[arg(long, short, value_name = "JSON")]
    guidance: String,
    /// Cancel the running model call and run the step again with the guidance
    #[arg(long)]
    now: bool,
}

impl Interrupt {
    pub async fn run(self, client: &Client, out: Output) -> Result<()> {
        let mut payload = json!({ "guidance": control::parse_json(&self.guidance)? });
        if self.now {
            payload["mode"] = json!("now");
        }
        control::send(client, out, &self.whom, "interrupt", payload).await
    }
}
