//! A bucket for the history, on a private server of the S3 protocol, by way of `ops/s3`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use super::services::Address;

/// The first start installs the server.
const COMMAND_MAX: Duration = Duration::from_secs(600);

pub struct Bucket {
    script: PathBuf,
    dir: PathBuf,
    /// What a process needs to know to have its history there.
    pub env: BTreeMap<String, String>,
    /// Of the server, without a proxy.
    pub address: Address,
}

impl Bucket {
    /// Starts the server, which ends when this process has gone.
    ///
    /// # Errors
    /// It does not start.
    pub async fn up(ops: &Path, dir: &Path) -> Result<Self> {
        let (script, dir) = (ops.join("s3"), dir.to_owned());
        command(&script, &dir, "up", &["--parent", &std::process::id().to_string()]).await?;
        let text = std::fs::read_to_string(dir.join("s3.env")).context("the settings of the S3 server")?;
        let env = settings(&text);
        let address = Address::of(env.get("AWS_ENDPOINT_URL").context("s3.env has no AWS_ENDPOINT_URL")?)?;
        Ok(Self { script, dir, env, address })
    }

    /// # Errors
    /// The command failed or took too long.
    pub async fn run(&self, verb: &str, arguments: &[&str]) -> Result<()> {
        command(&self.script, &self.dir, verb, arguments).await
    }
}

async fn command(script: &Path, dir: &Path, verb: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(script);
    command.arg(verb).arg(dir).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(COMMAND_MAX, command.output())
        .await
        .with_context(|| format!("ops/s3 {verb} takes longer than {COMMAND_MAX:?}"))?
        .with_context(|| format!("{} cannot be run", script.display()))?;
    if !output.status.success() {
        bail!("ops/s3 {verb} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn settings(text: &str) -> BTreeMap<String, String> {
    let setting = |line: &str| {
        let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_are_written() {
        let found = settings("export STEPFLEET_HISTORY_URI=s3://b/history\nexport AWS_REGION=us-east-1\nelse\n");
        assert_eq!(found.len(), 2);
        assert_eq!(found["STEPFLEET_HISTORY_URI"], "s3://b/history");
    }
}
