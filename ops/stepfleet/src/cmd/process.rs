//! The life of a process of a fleet: start, serve until told to stop, stop in order.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use host::config::Config;
use host::metrics::Metrics;
use host::{signals, telemetry, trace};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::fleet::{Fleet, Part};

/// Runs a process with its roles until a signal, or until a part of it breaks down.
///
/// # Errors
/// It cannot start, or a part of it broke down.
pub async fn run(config: &Config, part: Part, ready: impl FnOnce(&Fleet) -> Result<()>) -> Result<()> {
    if let Ok(filter) = telemetry::parse_filter(&config.log) {
        telemetry::start(filter);
    }
    part.trace()?;
    let metrics = Metrics::install().context("the metrics recorder")?;
    let stop = CancellationToken::new();
    signals::watch(stop.clone()).context("the signal handlers")?;
    let mut fleet = Fleet::start(config, part, metrics, &stop).await?;
    fleet.let_in();
    ready(&fleet)?;
    until_done(fleet, stop).await
}

/// Waits for the end (a signal, a breakdown, or a drain by command) and stops in order.
///
/// # Errors
/// A part of the process broke down.
pub async fn until_done(fleet: Fleet, stop: CancellationToken) -> Result<()> {
    let (failed, drained) = (fleet.failed(), fleet.drained());
    tokio::select! {
        () = stop.cancelled() => {}
        () = failed.cancelled() => {}
        () = until_drained(drained) => tracing::info!("drained by command; this process ends"),
    }
    fleet.stop().await;
    trace::flush().await;
    if failed.is_cancelled() {
        bail!("a part of the fleet broke down; the log says which. Nothing that was accepted is lost: start it again");
    }
    Ok(())
}

async fn until_drained(drained: Option<CancellationToken>) {
    match drained {
        Some(drained) => drained.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Several processes cannot share the file of one.
///
/// # Errors
/// The database is a file.
pub fn need_shared(config: &Config, command: &str) -> Result<()> {
    if config.database.is_shared() {
        return Ok(());
    }
    bail!(
        "{command} is a process of a fleet and needs a shared database: set STEPFLEET_DATABASE_URL to postgres://…; \
         for everything in one process on a file there is `stepfleet up`"
    )
}

/// # Errors
/// The address cannot be listened on; the text names the remedy.
pub async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow::anyhow!("{address} is in use by another program; stop that one, or choose another address with --listen (port 0 takes any free one)")
        }
        _ => anyhow::anyhow!("cannot listen on {address}: {error}; choose another address with --listen"),
    })
}

/// The address to put into a link: one that listens on all addresses is reached on this machine.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let local = if address.ip().is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
        return SocketAddr::new(local, address.port());
    }
    address
}

/// Writes the ready file whole, with the process's id: who waits for it never reads half of it.
///
/// # Errors
/// The file cannot be written.
pub fn tell_ready(path: Option<&Path>, facts: &Value) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let mut facts = facts.clone();
    facts["pid"] = json!(std::process::id());
    let scratch = path.with_extension("new");
    std::fs::write(&scratch, facts.to_string())
        .and_then(|()| std::fs::rename(&scratch, path))
        .with_context(|| path.display().to_string())
}
