//! `doctor`: checks a data directory, beside a running fleet or without one, and changes nothing.

mod report;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use domain::ports::{Archive, Clock, Journal, Ledger, Sessions, Tokens};
use domain::verify::{Progress, verify_all};
use host::clock::SystemClock;
use host::config::Config;
use host::{datadir, probe};
use indicatif::{ProgressBar, ProgressStyle};
use schemas::id::Namespace;
use store::SqliteStore;

use self::report::{Check, History, Report};
use crate::fleet::{open_existing_archive, open_existing_store};
use crate::output::Output;

/// Below this, a fleet may stop for want of space at any moment.
const FREE_BYTES_MIN: u64 = 256 << 20;
const FSYNC_SAMPLES: usize = 50;
/// Findings printed in full.
const BROKEN_SHOWN_MAX: usize = 20;

/// Checks a data directory.
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
    let holder = datadir::holder_of(&config.data_dir).unwrap_or_else(|| "nobody".into());
    report.add("data directory", true, format!("{}, in use by {holder}", config.data_dir.display()));
    match probe::free_bytes(&config.data_dir) {
        Ok(free) => report.add("disk space", free >= FREE_BYTES_MIN, format!("{} MiB free", free >> 20)),
        Err(error) => report.add("disk space", false, error.to_string()),
    }
    match probe::fsync_floor(&config.data_dir, FSYNC_SAMPLES) {
        Ok(floor) => report.add("disk latency", true, format!("fsync p50 {:?}, p99 {:?}", floor.p50, floor.p99)),
        Err(error) => report.add("disk latency", false, format!("cannot write: {error}")),
    }
    report.add("program", true, format!("stepfleet {}", env!("CARGO_PKG_VERSION")));
}

async fn database(store: &SqliteStore, report: &mut Report) {
    let started = Instant::now();
    let Check { well, detail, .. } = match store.quick_check().await {
        Ok(()) => Check::new("", true, format!("sound, {} ms", started.elapsed().as_millis())),
        Err(error) => Check::new("", false, error.to_string()),
    };
    report.add("database", well, detail);
    match store.stats().await {
        Ok(stats) => {
            let oldest = stats.oldest_ms.map_or(0, |oldest| (SystemClock.now_ms() - oldest).max(0));
            report.add("queue", true, format!("{} actions wait, the oldest {oldest} ms", stats.pending));
        }
        Err(error) => report.add("queue", false, error.to_string()),
    }
    match store.lag().await {
        Ok(lags) => {
            let waiting: u64 = lags.iter().map(|lag| lag.seq.saturating_sub(lag.archived_seq)).sum();
            report.add("journal", true, format!("{waiting} rows wait for the archive"));
        }
        Err(error) => report.add("journal", false, error.to_string()),
    }
}

async fn verify(store: &SqliteStore, archive: &dyn Archive) -> Result<History> {
    let mut namespaces = vec![Namespace::default_ns()];
    namespaces.extend(store.all().await?.into_iter().map(|token| token.namespace));
    namespaces.sort();
    namespaces.dedup();
    let counts = Sessions::count_by_status(store).await?;
    let bar = ProgressBar::new(counts.iter().map(|(_, count)| count).sum());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} sessions, {eta} left") {
        bar.set_style(style);
    }
    let journal: &dyn Journal = store;
    let verdict = verify_all(store, journal, archive, &namespaces, &mut |progress: &Progress| {
        bar.set_position(progress.sessions);
    })
    .await?;
    bar.finish_and_clear();
    let shown = verdict.broken.iter().take(BROKEN_SHOWN_MAX).map(ToString::to_string).collect();
    Ok(History {
        sessions: verdict.seen.sessions,
        steps: verdict.seen.steps,
        broken: verdict.seen.broken,
        findings: shown,
    })
}
