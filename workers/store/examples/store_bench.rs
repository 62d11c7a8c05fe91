//! Measures the store and prints one JSON line per figure, the disk's fsync floor first. The file
//! is made below the directory given as first argument, else below the system's temporary one.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::commit::CommitResult;
use domain::ports::{Clock, Commits, Leases, Ledger, Sessions};
use schemas::action::NewAction;
use schemas::id::{Epoch, Shard, WorkerId};
use schemas::json::Json;
use store::{OpenOptions, SqliteStore};
use testkit::contract::build::{create, input, key, next_commit, worker};

const SHARDS: u16 = 32;
const MEASURED: Duration = Duration::from_secs(4);
/// Of each entry, as JSON.
const ENTRY_BYTES: usize = 1_000;

struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as i64)
    }
}

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome {
    let directory = match std::env::args().nth(1) {
        Some(path) => tempfile::TempDir::new_in(path)?,
        None => tempfile::TempDir::new()?,
    };
    fsync_floor(&directory.path().join("floor"))?;
    let options = OpenOptions { shards: Some(SHARDS), create: true, clock: Arc::new(SystemClock) };
    let store = SqliteStore::open(&directory.path().join("store.db"), options).await?;
    let owner = worker("bench");
    for shard in 0..SHARDS {
        store.claim(Shard(shard), &owner, 3_600_000).await?;
    }
    accept_latency(&store).await?;
    for committers in [1, 64, 512] {
        journal_rate(&store, &owner, committers).await?;
    }
    for callers in [64, 512] {
        accept_rate(&store, callers).await?;
    }
    store.close().await;
    Ok(())
}

fn line(metric: &str, fields: &str) {
    println!("{{\"metric\":\"{metric}\",{fields}}}");
}

/// 50th and 99th percentile in microseconds, and the number of samples.
fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |part: usize| times.get(times.len() * part / 100).map_or(0, Duration::as_micros);
    format!("\"p50_us\":{},\"p99_us\":{},\"samples\":{}", at(50), at(99), times.len())
}

/// Processor time of this process so far, in seconds: unlike the rates, it does not depend on what
/// else the machine is doing. Zero where there is no /proc.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn fsync_floor(path: &Path) -> Outcome {
    let mut file = File::create(path)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        file.write_all(&[7; 8_192])?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    line("fsync_floor", &percentiles(times));
    Ok(())
}

async fn accept_latency(store: &SqliteStore) -> Outcome {
    store.accept(vec![create("latency", "latency", "bench")]).await?;
    let mut times = Vec::new();
    for n in 0..500 {
        let start = Instant::now();
        store.accept(vec![input(&format!("latency-{n}"), "latency")]).await?;
        times.push(start.elapsed());
    }
    line("accept_one", &percentiles(times));
    Ok(())
}

async fn accept_rate(store: &SqliteStore, callers: usize) -> Outcome {
    let (until, start, cpu) = (Instant::now() + MEASURED, Instant::now(), cpu_seconds());
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..callers {
        let store = store.clone();
        tasks.spawn(async move {
            let mut count = 0_u64;
            while Instant::now() < until {
                let new: NewAction =
                    input(&format!("rate-{callers}-{caller}-{count}"), &format!("s{callers}-{caller}"));
                store.accept(vec![new]).await?;
                count += 1;
            }
            Ok::<_, domain::failure::Failure>(count)
        });
    }
    let mut total = 0;
    for count in tasks.join_all().await {
        total += count?;
    }
    let per_second = total as f64 / start.elapsed().as_secs_f64();
    let cpu_us = (cpu_seconds() - cpu) * 1e6 / total as f64;
    let fields = format!("\"callers\":{callers},\"actions_per_s\":{per_second:.0},\"cpu_us_per_action\":{cpu_us:.1}");
    line("accept_rate", &fields);
    Ok(())
}

async fn journal_rate(store: &SqliteStore, owner: &WorkerId, committers: usize) -> Outcome {
    let creates: Vec<NewAction> = (0..committers)
        .map(|n| create(&format!("create-{committers}-{n}"), &format!("s{committers}-{n}"), "bench"))
        .collect();
    store.accept(creates).await?;
    let (until, start, cpu) = (Instant::now() + MEASURED, Instant::now(), cpu_seconds());
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..committers {
        let (store, owner) = (store.clone(), owner.clone());
        tasks.spawn(async move { committer(&store, &owner, &format!("s{committers}-{n}"), until).await });
    }
    let mut times = Vec::new();
    for committed in tasks.join_all().await {
        times.extend(committed?);
    }
    let per_second = times.len() as f64 / start.elapsed().as_secs_f64();
    let cpu_us = (cpu_seconds() - cpu) * 1e6 / times.len() as f64;
    let fields = format!(
        "\"committers\":{committers},\"rows_per_s\":{per_second:.0},\"cpu_us_per_row\":{cpu_us:.1},{}",
        percentiles(times)
    );
    line("journal_rate", &fields);
    Ok(())
}

/// Commits one step after the other; returns how long each took.
async fn committer(
    store: &SqliteStore,
    owner: &WorkerId,
    session: &str,
    until: Instant,
) -> Result<Vec<Duration>, Box<dyn std::error::Error + Send + Sync>> {
    let mut row = store.session(&key(session)).await?.ok_or("the session exists")?;
    let mut times = Vec::new();
    while Instant::now() < until {
        let mut commit = next_commit(&row, Epoch(1), 1);
        let entry = Arc::make_mut(&mut commit.entry);
        let filler = ENTRY_BYTES.saturating_sub(Json::of(&*entry).as_str().len());
        entry.steps[0].notes = Some("n".repeat(filler));
        row.head = commit.entry.head.clone();
        let begun = Instant::now();
        let results = store.commit(owner, vec![commit]).await?;
        times.push(begun.elapsed());
        if !matches!(results[..], [CommitResult::Done { .. }]) {
            return Err(format!("a commit was not done: {results:?}").into());
        }
    }
    Ok(times)
}
