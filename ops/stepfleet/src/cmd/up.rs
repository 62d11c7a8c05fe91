//! `up`: the whole fleet in this process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use host::config::Config;
use host::datadir::DataDir;
use host::metrics::Metrics;
use host::{signals, telemetry};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::banner::Banner;
use crate::datadir_files::{ADDRESS_FILE, TOKEN_FILE, write_private};
use crate::fleet::Fleet;
use crate::tokens;

/// Runs the embedded fleet.
#[derive(Debug, Args)]
pub struct Up {
    /// Address to listen on; port 0 takes any free one [default: 127.0.0.1:7070]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Replies of the scripted model provider
    #[arg(long, value_name = "FILE")]
    script: Option<String>,
    /// Model for run_step, as provider/model
    #[arg(long)]
    model: Option<String>,
    /// Whether outbound calls may go to loopback and private addresses [default: true]
    #[arg(long, value_name = "BOOL")]
    allow_private: Option<String>,
    /// Number of shards of a new installation [default: 32]
    #[arg(long)]
    shards: Option<String>,
    /// Write {url, token_file, pid} to this file once ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl Up {
    /// The settings among its flags.
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        let given = [
            ("listen", &self.listen),
            ("script", &self.script),
            ("model", &self.model),
            ("allow_private", &self.allow_private),
            ("shards", &self.shards),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// # Errors
    /// The fleet cannot start, or a part of it broke down.
    pub async fn run(self, config: Config) -> Result<()> {
        if let Ok(filter) = telemetry::parse_filter(&config.log) {
            telemetry::start(filter);
        }
        let metrics = Metrics::install().context("the metrics recorder")?;
        let stop = CancellationToken::new();
        signals::watch(stop.clone()).context("the signal handlers")?;
        // Port and directory first: they are what goes wrong, and nothing is touched before.
        let dir = DataDir::lock(&config.data_dir)?;
        let listener = bind(config.listen).await?;
        let address = listener.local_addr().context("the listening address")?;
        let fleet = Fleet::start(&config, listener, metrics).await?;
        let token = tokens::of_data_dir(fleet.tokens(), dir.path()).await?;
        let base = format!("http://{}", reachable(address));
        write_private(dir.path(), ADDRESS_FILE, &base).context("the address file")?;
        let token_file = dir.path().join(TOKEN_FILE);
        let banner = Banner {
            base: &base,
            token: &token,
            token_file: &token_file,
            data_dir: dir.path(),
            provider: &fleet.provider(),
        };
        println!("{}", banner.text());
        if let Some(path) = &self.ready_file {
            tell_ready(path, &base, &token_file)?;
        }
        tracing::info!(%address, data_dir = %dir.path().display(), "ready");
        let failed = fleet.failed();
        tokio::select! {
            () = stop.cancelled() => {}
            () = failed.cancelled() => {}
        }
        fleet.stop().await;
        if failed.is_cancelled() {
            bail!(
                "a part of the fleet broke down; the log says which. Nothing that was accepted is lost: start it again"
            );
        }
        Ok(())
    }
}

/// Writes the ready file whole: who waits for it never reads half of it.
fn tell_ready(path: &std::path::Path, base: &str, token_file: &std::path::Path) -> Result<()> {
    let text = json!({ "url": base, "token_file": token_file, "pid": std::process::id() }).to_string();
    let scratch = path.with_extension("new");
    std::fs::write(&scratch, text)
        .and_then(|()| std::fs::rename(&scratch, path))
        .with_context(|| path.display().to_string())
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow::anyhow!("{address} is in use by another program; stop that one, or choose another address with --listen (port 0 takes any free one)")
        }
        _ => anyhow::anyhow!("cannot listen on {address}: {error}; choose another address with --listen"),
    })
}

/// The address to put into a link: one that listens on all addresses is reached on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let local = if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
        return SocketAddr::new(local, address.port());
    }
    address
}
