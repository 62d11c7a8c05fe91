//! `doctor`: checks an installation, beside a running fleet or without one, and changes nothing.

mod broker;
mod budgets;
mod database;
mod fleet;
mod gateway;
mod report;

use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use domain::ports::Archive;
use domain::verify::{Progress, verify_all, verify_memories, verify_transcripts};
use history::LanceArchive;
use host::config::{Config, Database, History as Place};
use host::{datadir, probe};
use indicatif::{ProgressBar, ProgressStyle};

use self::report::{Check, History, Report};
use crate::fleet::{Store, open_existing_archive, open_existing_store};
use crate::output::Output;

/// Below this, a fleet may stop for want of space at any moment.
const FREE_BYTES_MIN: u64 = 256 << 20;
const FSYNC_SAMPLES: usize = 50;
/// Findings printed in full.
const BROKEN_SHOWN_MAX: usize = 20;

/// How to say where an installation is.
const NAME_THEM: &str = "name the directory of an embedded fleet with --data-dir, or the services of another one with \
                         STEPFLEET_DATABASE_URL, STEPFLEET_AMQP_URL and STEPFLEET_HISTORY_URI";

/// Checks an installation: the directory or the services that the settings name, and the gateway at --url.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Read every session's whole history and prove that it has no gap and no duplicate
    #[arg(long)]
    verify_history: bool,
}

impl Doctor {
    /// # Errors
    /// Something is not well. The report is printed all the same: whatever is down, the rest is looked at.
    pub async fn run(self, config: &Config, url: Option<&str>, out: Output) -> Result<()> {
        let mut report = Report::default();
        report.add("program", true, format!("stepfleet {}", env!("CARGO_PKG_VERSION")));
        let is_elsewhere = url.is_some() && is_nothing_named(config);
        if let Some(url) = url {
            gateway::look(url, is_elsewhere, &mut report).await;
        }
        if is_elsewhere {
            report.push(Check::warning("services", format!("only the gateway was asked; {NAME_THEM}")));
            if self.verify_history {
                prove(None, None, &mut report).await;
            }
        } else {
            self.look(config, &mut report).await;
        }
        report.finish();
        out.show(&report, Report::table)?;
        if !report.well {
            bail!("something is wrong with: {}; the report says what", report.unwell().join(", "));
        }
        Ok(())
    }

    /// The directory and the services that the settings name.
    async fn look(&self, config: &Config, report: &mut Report) {
        let is_shared = config.database.is_shared();
        let is_held = machine(config, report);
        let store = open_existing_store(config).await;
        let mut shards = config.shards;
        match &store {
            Ok(store) => {
                // Of a shared database, its rows alone tell who serves it.
                let is_served = is_shared || is_held;
                database::look(store, is_served, report).await;
                budgets::look(store, config, report).await;
                if is_served {
                    fleet::look(store, is_shared, report).await;
                }
                shards = store.leases.shard_count().await.ok();
            }
            Err(error) => report.add("database", false, format!("{error:#}")),
        }
        if let Some(url) = &config.amqp {
            broker::look(config, url, shards, report).await;
        }
        let archive = archive(config, report).await;
        if self.verify_history {
            prove(store.as_ref().ok(), archive.as_ref(), report).await;
        }
        if let Ok(store) = &store {
            store.close().await;
        }
    }
}

/// Whether the settings lead to nothing that could be looked at.
fn is_nothing_named(config: &Config) -> bool {
    !config.database.is_shared() && config.amqp.is_none() && !config.data_dir.is_dir()
}

/// Who holds the directory, and how its disk does. Returns whether anybody holds it.
fn machine(config: &Config, report: &mut Report) -> bool {
    if let Database::Sqlite(_) = &config.database {
        return directory(config, report);
    }
    if let Place::Directory(path) = &config.history {
        disk(path, report);
    }
    false
}

fn directory(config: &Config, report: &mut Report) -> bool {
    if !config.data_dir.is_dir() {
        let detail = format!("there is no {}; {NAME_THEM}", config.data_dir.display());
        report.add("data directory", false, detail);
        return false;
    }
    let holder = datadir::holder_of(&config.data_dir);
    let who = holder.as_deref().unwrap_or("nobody");
    report.add("data directory", true, format!("{}, in use by {who}", config.data_dir.display()));
    disk(&config.data_dir, report);
    holder.is_some()
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

async fn archive(config: &Config, report: &mut Report) -> Option<LanceArchive> {
    match open_existing_archive(config).await {
        Ok(archive) => {
            let ping = archive.ping().await;
            report.note("archive", ping.map(|()| Check::new("archive", true, "the tables open")));
            Some(archive)
        }
        Err(error) => {
            report.add("archive", false, format!("{error:#}"));
            None
        }
    }
}

/// The walk over all history, if there is something to walk over.
async fn prove(store: Option<&Store>, archive: Option<&LanceArchive>, report: &mut Report) {
    let (Some(store), Some(archive)) = (store, archive) else {
        report.add("history", false, "cannot be read without the database and the archive");
        return;
    };
    match verify(store, archive).await {
        Ok(history) => report.history = Some(history),
        Err(error) => report.add("history", false, format!("cannot be read to its end: {error:#}")),
    }
}

async fn verify(store: &Store, archive: &LanceArchive) -> Result<History> {
    let counts = store.sessions.count_by_status().await?;
    let bar = ProgressBar::new(counts.iter().map(|(_, count)| count).sum());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} sessions, {eta} left") {
        bar.set_style(style);
    }
    let (sessions, journal) = (store.sessions.as_ref(), store.journal.as_ref());
    let verdict = verify_all(sessions, journal, archive, &mut |progress: &Progress| {
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
