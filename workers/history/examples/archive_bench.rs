//! Measures the archive on this machine and prints one JSON line per metric:
//! `cargo run -p history -p stepfleet --example archive_bench -- [--quick] [DIRECTORY]`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use domain::ports::{Archive, ArchiveBatch, StepQuery};
use history::{LanceArchive, OpenOptions};
use schemas::id::SessionKey;
use schemas::json::Json;
use schemas::record::JournalRow;
use testkit::contract::archive::Author;
use testkit::contract::build::key;

type Failed = Box<dyn std::error::Error>;

/// Rows of one append, as the archivist makes it under load.
const BATCH: u64 = 10_000;
const STEPS_PER_SESSION: u64 = 20;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let (mut quick, mut directory) = (false, None);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => quick = true,
            path => directory = Some(path.to_owned()),
        }
    }
    let scratch = match directory {
        Some(path) => tempfile::tempdir_in(path)?,
        None => tempfile::tempdir()?,
    };
    let path = scratch.path().join("history");
    let archive = LanceArchive::open(path.to_str().ok_or("the path is no text")?, OpenOptions::default()).await?;
    report("fsync_floor_ms", "ms", fsyncs(scratch.path())?);
    let rows = if quick { 100_000 } else { 1_000_000 };
    let mut author = Author::new(0);
    appends(&archive, &mut author, rows).await?;
    point_reads(&archive, rows).await?;
    merges(&archive, &mut author, if quick { 10_000 } else { 100_000 }).await?;
    long_session(&archive, &mut author, if quick { 10_000 } else { 100_000 }).await
}

/// Processor time of this process, in milliseconds: tells work from waiting on a busy machine.
fn cpu_ms() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(f64::NAN);
    // utime and stime, counted from behind the name (proc(5)).
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND * 1_000.0
}

fn report(metric: &str, unit: &str, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    let at = |part: f64| samples[((samples.len() - 1) as f64 * part) as usize];
    let line = serde_json::json!({
        "metric": metric, "unit": unit, "n": samples.len(), "value": round(at(0.5)), "p50": round(at(0.5)),
        "p99": round(at(0.99)), "max": round(at(1.0)), "optimised": !cfg!(debug_assertions),
    });
    println!("{line}");
}

fn round(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

/// What the disk allows at best.
fn fsyncs(directory: &Path) -> Result<Vec<f64>, Failed> {
    let mut samples = Vec::new();
    for n in 0..50 {
        let started = Instant::now();
        let mut file = File::create(directory.join(format!("probe{n}")))?;
        file.write_all(&[0; 4096])?;
        file.sync_all()?;
        File::open(directory)?.sync_all()?;
        samples.push(ms(started));
    }
    Ok(samples)
}

/// A row of one step of about 1 KB.
fn row(author: &mut Author, key: &SessionKey) -> JournalRow {
    let mut row = author.commit(key, 1);
    for step in &mut row.entry.steps {
        let n = step.iteration;
        let prose = format!("step {n} found that the quick brown fox jumps over the lazy dog; ");
        step.text = Some(prose.repeat(8));
        step.state = Json::of(&serde_json::json!({"n": n, "notes": prose.repeat(6)}));
    }
    row
}

async fn append(archive: &LanceArchive, rows: Vec<JournalRow>) -> Result<f64, Failed> {
    let batch = ArchiveBatch { rows };
    let started = Instant::now();
    archive.append(&batch).await?;
    Ok(ms(started))
}

async fn appends(archive: &LanceArchive, author: &mut Author, rows: u64) -> Result<(), Failed> {
    let (mut appended, mut maintained) = (Vec::new(), Vec::new());
    let before = cpu_ms();
    let started = Instant::now();
    for batch in 0..rows / BATCH {
        let sessions = BATCH / STEPS_PER_SESSION;
        let keys: Vec<SessionKey> = (0..sessions).map(|n| key(&format!("s{}", batch * sessions + n))).collect();
        let rows = (0..STEPS_PER_SESSION).flat_map(|_| &keys).map(|key| row(author, key)).collect();
        appended.push(append(archive, rows).await?);
        let upkeep = Instant::now();
        archive.maintain().await?;
        maintained.push(ms(upkeep));
    }
    let seconds = started.elapsed().as_secs_f64();
    let total: f64 = appended.iter().sum();
    report("append_and_maintain_cpu_ms_per_10k_rows", "ms", vec![(cpu_ms() - before) / (rows / BATCH) as f64]);
    report("append_rows_per_s", "rows/s", appended.iter().map(|ms| BATCH as f64 / ms * 1_000.0).collect());
    report("append_10k_rows_ms", "ms", appended);
    report("maintain_ms", "ms", maintained);
    report("append_and_maintain_rows_per_s", "rows/s", vec![rows as f64 / seconds]);
    report("append_share_of_time", "1", vec![total / 1_000.0 / seconds]);
    Ok(())
}

async fn point_reads(archive: &LanceArchive, rows: u64) -> Result<(), Failed> {
    let sessions = rows / STEPS_PER_SESSION;
    let (mut steps, mut snapshots, mut streams) = (Vec::new(), Vec::new(), Vec::new());
    let before = cpu_ms();
    for n in 0..220 {
        let key = key(&format!("s{}", n * 7_919 % sessions));
        let query = StepQuery {
            namespace: Some(key.namespace.clone()),
            session: Some(key.clone()),
            limit: 100,
            ..StepQuery::default()
        };
        let started = Instant::now();
        let found = archive.steps(&query).await?.len() as u64;
        steps.push(ms(started));
        if found != STEPS_PER_SESSION {
            return Err(format!("{key} has {found} steps").into());
        }
        let started = Instant::now();
        archive.snapshot(&key).await?.ok_or("no snapshot")?;
        snapshots.push(ms(started));
        let started = Instant::now();
        archive.steps_after_offset(&key, 10, 100).await?;
        archive.events(&key, 10, 100).await?;
        streams.push(ms(started));
    }
    // Four reads a turn.
    report("cpu_per_read_ms", "ms", vec![(cpu_ms() - before) / (220.0 * 4.0)]);
    // The first reads fill the caches.
    for (metric, samples) in [("point_query_ms", steps), ("snapshot_ms", snapshots), ("stream_page_ms", streams)] {
        report(&format!("{metric}_first"), "ms", samples[..1].to_vec());
        report(&format!("{metric}_of_{rows}_steps"), "ms", samples[20..].to_vec());
    }
    Ok(())
}

/// Snapshots of 1,000 sessions merged into those of many.
async fn merges(archive: &LanceArchive, author: &mut Author, sessions: u64) -> Result<(), Failed> {
    let keys: Vec<SessionKey> = (0..sessions).map(|n| key(&format!("m{n}"))).collect();
    for some in keys.chunks(BATCH as usize) {
        let rows = some.iter().map(|key| author.commit(key, 0)).collect();
        append(archive, rows).await?;
    }
    archive.maintain().await?;
    let mut samples = Vec::new();
    let before = cpu_ms();
    for n in 0..20 {
        let some = keys.iter().skip(n * 37).step_by(sessions as usize / 1_000).take(1_000);
        let rows = some.map(|key| author.commit(key, 0)).collect();
        samples.push(append(archive, rows).await?);
    }
    report("append_1k_snapshots_cpu_ms", "ms", vec![(cpu_ms() - before) / 20.0]);
    report(&format!("append_1k_snapshots_into_{sessions}_ms"), "ms", samples);
    Ok(())
}

async fn long_session(archive: &LanceArchive, author: &mut Author, steps: u64) -> Result<(), Failed> {
    let long = key("long");
    for _ in 0..steps / BATCH {
        let rows = (0..BATCH).map(|_| row(author, &long)).collect();
        append(archive, rows).await?;
        archive.maintain().await?;
    }
    let base = StepQuery {
        namespace: Some(long.namespace.clone()),
        session: Some(long.clone()),
        limit: 20,
        ..StepQuery::default()
    };
    let (mut latest, mut range, mut snapshots) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..20 {
        let started = Instant::now();
        archive.steps(&StepQuery { descending: true, ..base.clone() }).await?;
        latest.push(ms(started));
        let from = n * steps / 20;
        let started = Instant::now();
        archive.steps(&StepQuery { min_iteration: Some(from), max_iteration: Some(from + 19), ..base.clone() }).await?;
        range.push(ms(started));
        let started = Instant::now();
        archive.snapshot(&long).await?.ok_or("no snapshot")?;
        snapshots.push(ms(started));
    }
    report(&format!("latest_20_of_{steps}_ms"), "ms", latest);
    report(&format!("range_of_20_in_{steps}_ms"), "ms", range);
    report(&format!("snapshot_at_{steps}_steps_ms"), "ms", snapshots);
    Ok(())
}
