//! PostgreSQL and RabbitMQ, by way of `ops/services`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// No command of `ops/services` may take longer.
const COMMAND_MAX: Duration = Duration::from_secs(300);

/// The kernel forgets half-closed connections after a minute.
const PORT_MAX: Duration = Duration::from_secs(75);

/// Which RabbitMQ the fleet has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Broker {
    /// Debian's, or what FLEET_RABBITMQ names
    System,
    /// RabbitMQ 4, which `ops/rabbitmq4` unpacks beside Debian's
    #[value(name = "4")]
    Four,
}

impl Broker {
    /// Where its programs are, if that must be said; they are fetched when they are not there yet.
    ///
    /// # Errors
    /// They cannot be fetched.
    pub async fn tree(self, ops: &Path) -> Result<Option<PathBuf>> {
        if self == Self::System {
            return Ok(None);
        }
        let mut command = Command::new(ops.join("rabbitmq4"));
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(COMMAND_MAX, command.output())
            .await
            .with_context(|| format!("ops/rabbitmq4 takes longer than {COMMAND_MAX:?}"))?
            .context("ops/rabbitmq4 cannot be run")?;
        if !output.status.success() {
            bail!("RabbitMQ 4 cannot be had: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let tree = String::from_utf8_lossy(&output.stdout).lines().last().map(PathBuf::from);
        Ok(Some(tree.context("ops/rabbitmq4 names no directory")?))
    }
}

pub struct Services {
    script: PathBuf,
    dir: PathBuf,
    /// A RabbitMQ that is not the system's.
    rabbitmq: Option<PathBuf>,
}

impl Services {
    pub fn new(ops: &Path, dir: &Path, rabbitmq: Option<PathBuf>) -> Self {
        Self { script: ops.join("services"), dir: dir.to_owned(), rabbitmq }
    }

    /// Starts both; they go down when this process has gone.
    ///
    /// # Errors
    /// They do not start.
    pub async fn up(&self) -> Result<BTreeMap<String, String>> {
        self.run("up", &["--parent", &std::process::id().to_string()]).await?;
        let env = std::fs::read_to_string(self.dir.join("env")).context("the addresses of the services")?;
        Ok(env.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// Starts a killed service on its port, as soon as what is left of its connections is gone.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start_again(&self, service: &str) -> Result<()> {
        let started = std::time::Instant::now();
        loop {
            match self.run("start", &[service]).await {
                Err(error) if started.elapsed() > PORT_MAX => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
                Ok(()) => return Ok(()),
            }
        }
    }

    /// # Errors
    /// The command failed or took too long.
    pub async fn run(&self, verb: &str, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.script);
        command.arg(verb).arg(&self.dir).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        command.envs(self.rabbitmq.iter().map(|tree| ("FLEET_RABBITMQ", tree)));
        let output = tokio::time::timeout(COMMAND_MAX, command.output())
            .await
            .with_context(|| format!("ops/services {verb} takes longer than {COMMAND_MAX:?}"))?
            .with_context(|| format!("{} cannot be run", self.script.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("ops/services {verb} {} failed: {}", arguments.join(" "), said.trim());
        }
        Ok(())
    }
}

/// A URL, the address in it, and the same URL with another port of this machine.
pub struct Address {
    pub url: String,
    pub at: SocketAddr,
}

impl Address {
    /// # Errors
    /// There is no numeric address in it.
    pub fn of(url: &str) -> Result<Self> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let host = host.split('/').next().unwrap_or(host);
        let at = host.parse().with_context(|| format!("{host} is no address with a port"))?;
        Ok(Self { url: url.to_owned(), at })
    }

    pub fn through(&self, port: u16) -> String {
        self.url.replacen(&self.at.to_string(), &format!("127.0.0.1:{port}"), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_replaced_and_nothing_else() {
        let address = Address::of("amqp://me:secret@127.0.0.1:5672/%2f").unwrap();
        assert_eq!(address.at.port(), 5672);
        assert_eq!(address.through(9), "amqp://me:secret@127.0.0.1:9/%2f");
        assert_eq!(Address::of("http://127.0.0.1:9000").unwrap().through(9), "http://127.0.0.1:9");
        assert!(Address::of("sqlite://file.db").is_err());
    }
}
