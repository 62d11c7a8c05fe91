//! Measures the store and prints one JSON line per figure, the disk's fsync floor first. The first
//! argument is a `postgres://` URL, or the directory in which a file is made; without one it is made
//! in the system's temporary directory.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::commit::CommitResult;
use domain::ports::Clock;
use schemas::action::NewAction;
use schemas::conversation::Talk;
use schemas::id::{Epoch, Shard, WorkerId};
use schemas::json::Json;
use store::{OpenOptions, PostgresStore, SqliteStore};
use testkit::contract::Ports;
use testkit::contract::build::{create, input, key, next_commit, worker};
use testkit::contract::words::{create_in, note, turn};

const SHARDS: u16 = 32;
const MEASURED: Duration = Duration::from_secs(4);
/// Of each entry, as JSON.
const ENTRY_BYTES: usize = 1_000;

struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the clock of this machine")]
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as i64)
    }
}

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome {
    let place = std::env::args().nth(1);
    let options = OpenOptions { shards: Some(SHARDS), create: true, clock: Arc::new(SystemClock) };
    match place.as_deref() {
        Some(url) if url.starts_with("postgres") => {
            let store = PostgresStore::open(url, options).await?;
            let measured = measure(&Ports::of(store.clone())).await;
            store.close().await;
            measured
        }
        directory => {
            let directory = match directory {
                Some(path) => tempfile::TempDir::new_in(path)?,
                None => tempfile::TempDir::new()?,
            };
            fsync_floor(&directory.path().join("floor"))?;
            let store = SqliteStore::open(&directory.path().join("store.db"), options).await?;
            let measured = measure(&Ports::of(store.clone())).await;
            store.close().await;
            measured
        }
    }
}

/// What sessions do: how many there are, and what each of their commits has.
#[derive(Clone, Copy)]
struct Load {
    committers: usize,
    steps: u64,
    /// Records for the log of the session's conversation.
    says: usize,
}

/// Names are of this run alone: a server may hold those of others.
struct Bench<'p> {
    ports: &'p Ports,
    run: u32,
    owner: WorkerId,
}

async fn measure(ports: &Ports) -> Outcome {
    let run = std::process::id();
    let bench = Bench { ports, run, owner: worker(&format!("bench-{run}")) };
    ports.leases.release_all().await?;
    let mut epochs = Vec::new();
    for shard in 0..SHARDS {
        let lease = ports.leases.claim(Shard(shard), &bench.owner, 3_600_000).await?;
        epochs.push(lease.ok_or("somebody else holds a shard")?.epoch);
    }
    let epochs: Arc<[Epoch]> = epochs.into();
    bench.accept_latency().await?;
    for (committers, steps) in [(1, 1), (64, 1), (512, 1), (512, 8)] {
        bench.commit_rate(&epochs, Load { committers, steps, says: 0 }).await?;
    }
    // Each in a conversation of its own: a move, a message and an event a step, and its turn.
    for committers in [1, 64] {
        bench.commit_rate(&epochs, Load { committers, steps: 1, says: 3 }).await?;
    }
    for callers in [64, 512] {
        bench.accept_rate(callers).await?;
    }
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

impl Bench<'_> {
    async fn accept_latency(&self) -> Outcome {
        let (run, ledger) = (self.run, &self.ports.ledger);
        let session = format!("latency-{run}");
        ledger.accept(vec![create(&session, &session, "bench")]).await?;
        let mut times = Vec::new();
        for n in 0..500 {
            let start = Instant::now();
            ledger.accept(vec![input(&format!("{session}-{n}"), &session)]).await?;
            times.push(start.elapsed());
        }
        line("accept_one", &percentiles(times));
        Ok(())
    }

    async fn accept_rate(&self, callers: usize) -> Outcome {
        let (until, start, cpu) = (Instant::now() + MEASURED, Instant::now(), cpu_seconds());
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let (ledger, run) = (self.ports.ledger.clone(), self.run);
            tasks.spawn(async move {
                let mut count = 0_u64;
                while Instant::now() < until {
                    let id = format!("rate-{run}-{callers}-{caller}-{count}");
                    ledger.accept(vec![input(&id, &format!("s{run}-{callers}-1-{caller}"))]).await?;
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
        let fields =
            format!("\"callers\":{callers},\"actions_per_s\":{per_second:.0},\"cpu_us_per_action\":{cpu_us:.1}");
        line("accept_rate", &fields);
        Ok(())
    }

    /// Each committer has a session, and commits one after the other.
    async fn commit_rate(&self, epochs: &Arc<[Epoch]>, load: Load) -> Outcome {
        let Load { committers, steps, says } = load;
        let kind = if says == 0 { "s" } else { "t" };
        let session = |n: usize| format!("{kind}{}-{committers}-{steps}-{n}", self.run);
        let new = |id: String| match says {
            0 => create(&id, &id, "bench"),
            _ => create_in(&id, &id, "bench", &id),
        };
        let creates: Vec<NewAction> = (0..committers).map(|n| new(session(n))).collect();
        self.ports.ledger.accept(creates).await?;
        let (until, start, cpu) = (Instant::now() + MEASURED, Instant::now(), cpu_seconds());
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..committers {
            let (ports, owner, epochs, session) = (self.ports.clone(), self.owner.clone(), epochs.clone(), session(n));
            tasks.spawn(async move { committer(&ports, &owner, &epochs, &session, load, until).await });
        }
        let mut times = Vec::new();
        for committed in tasks.join_all().await {
            times.extend(committed?);
        }
        let per_second = times.len() as f64 / start.elapsed().as_secs_f64();
        let cpu_us = (cpu_seconds() - cpu) * 1e6 / times.len() as f64;
        let fields = format!(
            "\"committers\":{committers},\"steps_per_commit\":{steps},\"records_per_commit\":{says},\"commits_per_s\":{per_second:.0},\
             \"steps_per_s\":{:.0},\"cpu_us_per_commit\":{cpu_us:.1},{}",
            per_second * steps as f64,
            percentiles(times)
        );
        line("commit_rate", &fields);
        Ok(())
    }
}

/// Commits one after the other; returns how long each took.
async fn committer(
    ports: &Ports,
    owner: &WorkerId,
    epochs: &[Epoch],
    session: &str,
    load: Load,
    until: Instant,
) -> Result<Vec<Duration>, Box<dyn std::error::Error + Send + Sync>> {
    let mut row = ports.sessions.session(&key(session)).await?.ok_or("the session exists")?;
    let mut times = Vec::new();
    while Instant::now() < until {
        let mut commit = next_commit(&row, epochs[usize::from(row.shard.0)], load.steps);
        if load.says > 0 {
            let log = (0..load.says).map(|n| note(&format!("{}-{n}", row.head.steps))).collect();
            commit.talk = Talk { log, turns: vec![turn(session, session, session, 1)], operations: Vec::new() };
        }
        let entry = Arc::make_mut(&mut commit.entry);
        // As a runnable session is: due now, and at another time with each commit.
        entry.head.wake_at_ms = Some(SystemClock.now_ms());
        let filler = ENTRY_BYTES.saturating_sub(Json::of(&*entry).as_str().len());
        entry.steps[0].notes = Some("n".repeat(filler));
        row.head = commit.entry.head.clone();
        let begun = Instant::now();
        let results = ports.commits.commit(owner, vec![commit]).await?;
        times.push(begun.elapsed());
        if !matches!(results[..], [CommitResult::Done { .. }]) {
            return Err(format!("a commit was not done: {results:?}").into());
        }
    }
    Ok(times)
}
