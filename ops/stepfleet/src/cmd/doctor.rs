//! `doctor`: checks an installation, beside a running fleet or without one, and changes nothing.

mod broker;
mod fleet;
mod report;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use domain::ports::{Archive, Clock};
use domain::verify::{Progress, verify_all, verify_memories, verify_transcripts};
use history::LanceArchive;
use host::clock::SystemClock;
use host::config::{Config, Database, History as Place};
use host::{datadir, probe};
use indicatif::{ProgressBar, ProgressStyle};
use schemas::id::Namespace;

use self::report::{Check, History, Report};
use crate::fleet::{Store, open_existing_archive, open_existing_store};
use crate::output::Output;

/// Below this, a fleet may stop for want of space at any moment.
const FREE_BYTES_MIN: u64 = 256 << 20;
const FSYNC_SAMPLES: usize = 50;
/// Findings printed in full.
const BROKEN_SHOWN_MAX: usize = 20;

/// Checks an installation.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Read every session's whole history and prove that it has no gap and no duplicate
    #[arg(long)]
    verify_history: bool,
}

impl Doctor {
    pub async fn run(self, config: &Config, out: Output) -> Result<()> {
        let mut report = Report::default();
        machine(config, &mut report);
        let store = open_existing_store(config).await?;
        database(&store, &mut report).await;
        if config.database.is_shared() {
            fleet::look(&store, &mut report).await;
        }
        if let Some(url) = &config.amqp {
            broker::look(url, &store, &mut report).await;
        }
        match open_existing_archive(config).await {
            Ok(archive) => {
                let ping = archive.ping().await;
                report.add(
                    "archive",
                    ping.is_ok(),
                    ping.map_or_else(|error| error.to_string(), |()| "the tables open".into()),
                );
                if self.verify_history {
                    report.history = Some(verify(&store, &archive).await?);
                }
            }
            Err(error) => report.add("archive", false, format!("{error:#}")),
        }
        store.close().await;
        report.finish();
        out.show(&report, Report::table)?;
        if !report.well {
            bail!("something is wrong; see above");
        }
        Ok(())
    }
}

/// Who holds the directory, and how its disk does.
fn machine(config: &Config, report: &mut Report) {
    report.add("program", true, format!("stepfleet {}", env!("CARGO_PKG_VERSION")));
    if let Database::Sqlite(_) = &config.database {
        directory(config, report);
    } else if let Place::Directory(path) = &config.history {
        disk(path, report);
    }
}

fn directory(config: &Config, report: &mut Report) {
    let holder = datadir::holder_of(&config.data_dir).unwrap_or_else(|| "nobody".into());
    report.add("data directory", true, format!("{}, in use by {holder}", config.data_dir.display()));
    disk(&config.data_dir, report);
}

fn disk(path: &Path, report: &mut Report) {
    match probe::free_bytes(path) {
        Ok(free) => report.add("disk space", free >= FREE_BYTES_MIN, format!("{} MiB free", free >> 20)),
        Err(error) => report.add("disk space", false, error.to_string()),
    }
    match probe::fsync_floor(path, FSYNC_SAMPLES) {
        Ok(floor) => report.add("disk latency", true, format!("fsync p50 {:?}, p99 {:?}", floor.p50, floor.p99)),
        Err(error) => report.add("disk latency", false, format!("cannot write: {error}")),
    }
}

async fn database(store: &Store, report: &mut Report) {
    let started = Instant::now();
    let Check { well, detail, .. } = match store.check().await {
        Ok(()) => Check::new("", true, format!("sound, {} ms", started.elapsed().as_millis())),
        Err(error) => Check::new("", false, error.to_string()),
    };
    report.add("database", well, detail);
    match store.ledger.stats().await {
        Ok(stats) => {
            // The rows bear the database's time.
            let now_ms = SystemClock.now_ms() + store.clock_offset_ms().await.unwrap_or(0);
            let oldest = stats.oldest_ms.map_or(0, |oldest| (now_ms - oldest).max(0));
            report.add("queue", true, format!("{} actions wait, the oldest {oldest} ms", stats.pending));
        }
        Err(error) => report.add("queue", false, error.to_string()),
    }
    match store.journal.lag().await {
        Ok(lags) => {
            let waiting: u64 = lags.iter().map(|lag| lag.seq.saturating_sub(lag.archived_seq)).sum();
            report.add("journal", true, format!("{waiting} rows wait for the archive"));
        }
        Err(error) => report.add("journal", false, error.to_string()),
    }
}

async fn verify(store: &Store, archive: &LanceArchive) -> Result<History> {
    let mut namespaces = vec![Namespace::default_ns()];
    namespaces.extend(store.tokens.all().await?.into_iter().map(|token| token.namespace));
    namespaces.sort();
    namespaces.dedup();
    let counts = store.sessions.count_by_status().await?;
    let bar = ProgressBar::new(counts.iter().map(|(_, count)| count).sum());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} sessions, {eta} left") {
        bar.set_style(style);
    }
    let (sessions, journal) = (store.sessions.as_ref(), store.journal.as_ref());
    let verdict = verify_all(sessions, journal, archive, &namespaces, &mut |progress: &Progress| {
        bar.set_position(progress.sessions);
    })
    .await?;
    bar.finish_and_clear();
    let memories = verify_memories(store.tail.as_ref(), archive).await?;
    let transcripts = verify_transcripts(store.transcripts.as_ref(), store.conversations.as_ref(), archive).await?;
    let broken = verdict.broken.iter().map(ToString::to_string);
    let broken = broken.chain(memories.findings).chain(transcripts.findings);
    let shown = broken.take(BROKEN_SHOWN_MAX).collect();
    Ok(History {
        sessions: verdict.seen.sessions,
        steps: verdict.seen.steps,
        memories: memories.seen,
        records: transcripts.seen,
        broken: verdict.seen.broken + memories.broken + transcripts.broken,
        findings: shown,
    })
}
