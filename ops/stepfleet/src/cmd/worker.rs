//! `worker`: owns shards and runs their sessions, and archives history.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use host::config::Config;

use super::process;
use crate::fleet::{Part, Roles};

/// Works for a fleet on PostgreSQL; shards spread over all workers by themselves.
#[derive(Debug, Args)]
pub struct Worker {
    /// What it does: runner, executor, archivist; separated by commas
    #[arg(long, default_value = "runner,executor,archivist", value_delimiter = ',')]
    roles: Vec<String>,
    /// Address for /health and /metrics [default: none]
    #[arg(long, value_name = "HOST:PORT")]
    worker_listen: Option<String>,
    /// Replies of the scripted model provider
    #[arg(long, value_name = "FILE")]
    script: Option<String>,
    /// Model for steps and conversations that name none, as provider/model
    #[arg(long)]
    model: Option<String>,
    /// Whether outbound calls may go to loopback and private addresses [default: false]
    #[arg(long, value_name = "BOOL")]
    allow_private: Option<String>,
    /// Write {worker_id, pid} to this file once ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl Worker {
    /// The settings among its flags.
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        let given = [
            ("worker_listen", &self.worker_listen),
            ("script", &self.script),
            ("model", &self.model),
            ("allow_private", &self.allow_private),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// # Errors
    /// It cannot start, or a part of it broke down.
    pub async fn run(self, config: Config) -> Result<()> {
        process::need_shared(&config, "worker")?;
        let roles = Roles::of_worker(&self.roles)?;
        let listener = match config.worker_listen {
            Some(address) => Some(process::bind(address).await?),
            None => None,
        };
        let part = Part::new(roles, false, listener);
        process::run(&config, part, |fleet| {
            let worker = fleet.worker().to_string();
            tracing::info!(%worker, roles = roles.names().join(","), database = %config.database, "worker ready");
            process::tell_ready(self.ready_file.as_deref(), &serde_json::json!({ "worker_id": worker }))
        })
        .await
    }
}
