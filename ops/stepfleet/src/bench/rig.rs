//! A private fleet in a temporary directory, and what the measurements need of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use domain::action::{self, ParseContext};
use domain::ports::Verdict;
use host::config::{Config, Layers};
use host::metrics::Metrics;
use host::probe;
use schemas::id::{Namespace, SessionId, SessionKey};
use schemas::limits::ACCEPT_BATCH_MAX;
use schemas::session::SessionStatus;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use ulid::Ulid;

use crate::client::Client;
use crate::fleet::{Fleet, Part, Roles};
use crate::{output, tokens};

/// Between two looks at a counter.
pub const LOOK: Duration = Duration::from_millis(1);
/// A measurement that takes longer is broken.
const WAIT_MAX: Duration = Duration::from_secs(600);
const FSYNC_SAMPLES: usize = 200;

pub struct Rig {
    pub fleet: Fleet,
    pub client: Client,
    config: Config,
    metrics: Metrics,
    dir: PathBuf,
}

impl Rig {
    pub async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    /// With further settings, as flags.
    pub async fn start_with(flags: &[(&'static str, &str)]) -> Result<Self> {
        Self::start_as(flags, None).await
    }

    /// With further settings, as flags and as the text of a configuration file.
    pub async fn start_as(flags: &[(&'static str, &str)], file: Option<String>) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("stepfleet-bench-{}", Ulid::generate()));
        let file = file.map(|text| (PathBuf::from("bench.toml"), text));
        let mut layers = Layers { file, ..Layers::default() };
        layers.flags.insert("data_dir", dir.display().to_string());
        layers.flags.insert("listen", "127.0.0.1:0".into());
        layers.flags.extend(flags.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let config = Config::load(&layers)?;
        std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        let metrics = Metrics::install().context("the metrics recorder")?;
        let (fleet, client) = start(&config, &metrics).await?;
        Ok(Self { fleet, client, config, metrics, dir })
    }

    /// Stops the fleet in good order and starts it again on the same data.
    pub async fn restart(self) -> Result<Self> {
        let Self { fleet, config, metrics, dir, .. } = self;
        fleet.stop().await;
        let (fleet, client) = start(&config, &metrics).await?;
        Ok(Self { fleet, client, config, metrics, dir })
    }

    /// Prints one line: the figures, and the floor of the disk that the fleet is on.
    pub fn report(&self, figures: Value) -> Result<()> {
        report(&self.dir, figures)
    }

    pub async fn stop(self) {
        self.fleet.stop().await;
        // What is left behind is temporary anyway.
        drop(std::fs::remove_dir_all(&self.dir));
    }

    /// Accepts actions as the gateway does, but without HTTP; all must be accepted.
    pub async fn accept(&self, bodies: impl IntoIterator<Item = Value>) -> Result<()> {
        let mut batch = Vec::with_capacity(ACCEPT_BATCH_MAX);
        let mut bodies = bodies.into_iter().peekable();
        while let Some(body) = bodies.next() {
            let parsed = action::parse(&body, context());
            batch.push(parsed.map_err(|problem| anyhow::anyhow!("{}", problem.detail))?);
            if batch.len() == ACCEPT_BATCH_MAX || bodies.peek().is_none() {
                let verdicts = self.fleet.parts.store.ledger.accept(std::mem::take(&mut batch)).await?;
                let mut accepted = Vec::with_capacity(verdicts.len());
                for verdict in verdicts {
                    match verdict {
                        Verdict::Accepted(new) => accepted.push(new.action),
                        other => bail!("not accepted: {other:?}"),
                    }
                }
                // What does not fit into the queue is found in the ledger.
                drop(self.fleet.parts.queue.publish(&accepted).await);
            }
        }
        Ok(())
    }

    /// Waits until so many sessions have the status.
    pub async fn wait_count(&self, status: SessionStatus, count: u64) -> Result<()> {
        let started = Instant::now();
        loop {
            let counts = self.fleet.parts.store.sessions.count_by_status().await?;
            if counts.iter().any(|(found, number)| *found == status && *number >= count) {
                return Ok(());
            }
            if started.elapsed() > WAIT_MAX {
                bail!("waited in vain for {count} sessions to be {}: {counts:?}", status.as_str());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Prints one line: the figures, and the floor of the disk with this directory.
pub fn report(dir: &Path, mut figures: Value) -> Result<()> {
    let floor = probe::fsync_floor(dir, FSYNC_SAMPLES).context("the disk's latency")?;
    figures["fsync_p50_us"] = json!(floor.p50.as_micros() as u64);
    figures["fsync_p99_us"] = json!(floor.p99.as_micros() as u64);
    figures["cores"] = json!(std::thread::available_parallelism().map_or(1, usize::from));
    output::print(&figures.to_string())
}

async fn start(config: &Config, metrics: &Metrics) -> Result<(Fleet, Client)> {
    let listener = TcpListener::bind(config.listen).await.context("a port")?;
    let base = format!("http://{}", listener.local_addr().context("a port")?);
    let part = Part::new(Roles::ALL, true, Some(listener));
    let mut fleet = Fleet::start(config, part, metrics.clone(), &CancellationToken::new()).await?;
    let token = tokens::of_data_dir(fleet.tokens(), &config.data_dir).await?;
    fleet.let_in();
    while fleet.parts.store.leases.shards().await?.iter().any(|shard| shard.owner.is_none()) {
        tokio::time::sleep(LOOK).await;
    }
    Ok((fleet, Client::new(&base, &token)?))
}

fn context() -> ParseContext {
    ParseContext {
        namespace: Namespace::default_ns(),
        actor: "bench".into(),
        action_id: Ulid::generate().into(),
        session_id: Ulid::generate().into(),
        agent_id: Ulid::generate().into(),
        idempotency_key: None,
    }
}

/// The key of a session by its id.
pub fn key(session: &str) -> Result<SessionKey> {
    Ok(SessionKey::new(Namespace::default_ns(), SessionId::parse(session)?))
}

/// A create action.
pub fn create(session: &str, payload: Value) -> Value {
    json!({ "type": "create", "session_id": session, "agent_id": "bench", "payload": payload })
}

/// The `percent` percentile of sorted times, in milliseconds.
pub fn percentile_ms(sorted: &[Duration], percent: usize) -> f64 {
    let at = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(at).map_or(0.0, |time| rounded(time.as_secs_f64() * 1_000.0))
}

/// Three decimals: more would be noise.
pub fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!((percentile_ms(&times, 50), percentile_ms(&times, 99)), (50.0, 99.0));
        assert_eq!(percentile_ms(&[], 50), 0.0);
    }
}
