//! Reads the journal of the fleet's database, past all proxies, for as long as its rows are there: a row is
//! trimmed a quarter of a minute after it was archived. Only what proves ownership is kept.

use std::collections::{BTreeMap, HashMap};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;
use tokio::sync::watch;

use crate::seen::journal::{Commits, Journal};

const EVERY: Duration = Duration::from_secs(2);
/// Of one look.
const ROWS_MAX: usize = 20_000;
/// A database that is frozen answers nobody.
const LOOK_MAX: Duration = Duration::from_secs(6);
/// At the end, so many looks may fail.
const TRIES_MAX: u32 = 5;

pub struct Tail {
    /// Where the database is, as psql's environment has it.
    place: [(&'static str, String); 5],
    shards: u64,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    /// Up to where the journal of each shard was read.
    upto: BTreeMap<u64, u64>,
    journal: Journal,
    /// The newest commits of each session among all.
    newest: HashMap<String, usize>,
}

/// A row of the journal: `steps` new steps of a session, which has `total` by then.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    shard: u64,
    seq: u64,
    session: String,
    epoch: i64,
    total: u64,
    steps: u64,
}

impl Tail {
    /// # Errors
    /// The URL is not like those of `ops/services`.
    pub fn new(url: &str, shards: u64) -> Result<Self> {
        let place = place_of(url).context("the address of the database")?;
        Ok(Self { place, shards, found: Mutex::default() })
    }

    pub async fn run(self: Arc<Self>, stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            // That the database is away at times is the point of the run.
            while self.look().await.is_ok_and(|rows| rows == ROWS_MAX) {}
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Reads what is new; says how much.
    ///
    /// # Errors
    /// psql is missing, or the database does not answer.
    pub async fn look(&self) -> Result<usize> {
        let query = self.query();
        let mut command = Command::new("psql");
        command.args(["-X", "-q", "-A", "-t", "-F", " ", "-v", "ON_ERROR_STOP=1", "-c", &query]);
        // Not as arguments, which everybody on the machine can read.
        command.envs(self.place.iter().map(|(name, value)| (*name, value))).env("PGCONNECT_TIMEOUT", "3");
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(LOOK_MAX, command.output()).await.context("psql takes too long")?;
        let output = output.context("psql cannot be started; install postgresql-client")?;
        if !output.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows: Vec<Row> = text.lines().filter_map(row).collect();
        let count = rows.len();
        if let Ok(mut found) = self.found.lock() {
            rows.into_iter().for_each(|row| found.take(row));
        }
        Ok(count)
    }

    /// Reads to the end, and gives all that was found; what was run is not among it.
    pub async fn finish(&self) -> Journal {
        let mut failures = 0;
        while failures < TRIES_MAX {
            match self.look().await {
                Ok(ROWS_MAX) => {}
                Ok(_) => break,
                Err(_) => {
                    failures += 1;
                    tokio::time::sleep(EVERY).await;
                }
            }
        }
        self.found.lock().map(|found| found.journal.clone()).unwrap_or_default()
    }

    fn query(&self) -> String {
        let known = self.found.lock().map(|found| found.upto.clone()).unwrap_or_default();
        let upto = |shard: u64| format!("({shard}, {})", known.get(&shard).copied().unwrap_or(0));
        let places: Vec<String> = (0..self.shards.max(1)).map(upto).collect();
        format!(
            "SELECT j.shard, j.seq, j.session_id, e.body #>> '{{head,epoch}}', e.body #>> '{{head,steps}}',
                coalesce(json_array_length(e.body -> 'steps'), 0)
            FROM (VALUES {}) AS read (shard, seq)
            JOIN journal AS j ON j.shard = read.shard AND j.seq > read.seq
            CROSS JOIN LATERAL (SELECT j.body::json AS body) AS e
            ORDER BY j.shard, j.seq LIMIT {ROWS_MAX}",
            places.join(", ")
        )
    }
}

/// Host, port, account, password and name out of a URL that has all of them.
fn place_of(url: &str) -> Option<[(&'static str, String); 5]> {
    let (account, place) = url.split_once("://")?.1.rsplit_once('@')?;
    let (user, password) = account.split_once(':')?;
    let (address, name) = place.split_once('/')?;
    let (host, port) = address.rsplit_once(':')?;
    let set = [("PGHOST", host), ("PGPORT", port), ("PGUSER", user), ("PGPASSWORD", password), ("PGDATABASE", name)];
    Some(set.map(|(name, value)| (name, value.to_owned())))
}

/// None for a line that is none of ours.
fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(' ').collect();
    let [shard, seq, session, epoch, total, steps] = fields[..] else { return None };
    Some(Row {
        shard: shard.parse().ok()?,
        seq: seq.parse().ok()?,
        session: session.to_owned(),
        epoch: epoch.parse().ok()?,
        total: total.parse().ok()?,
        steps: steps.parse().ok()?,
    })
}

impl Found {
    fn take(&mut self, row: Row) {
        let Row { shard, seq, session, epoch, total, steps } = row;
        let before = self.upto.get(&shard).copied().unwrap_or(0);
        // Two looks at a time may bring the same.
        if seq <= before {
            return;
        }
        self.upto.insert(shard, seq);
        self.journal.rows += 1;
        self.journal.missed += seq.saturating_sub(before + 1);
        let Some(first) = total.checked_sub(steps).filter(|_| steps > 0) else { return };
        let last = total - 1;
        let newest = self.newest.get(&session).and_then(|at| self.journal.commits.get_mut(*at));
        if let Some(newest) = newest
            && (newest.shard, newest.epoch, newest.last + 1) == (shard, epoch, first)
        {
            (newest.last, newest.to_seq) = (last, seq);
            return;
        }
        self.newest.insert(session.clone(), self.journal.commits.len());
        self.journal.commits.push(Commits { shard, epoch, session, first, last, from_seq: seq, to_seq: seq });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_taken_apart() {
        let place = place_of("postgres://me:secret@127.0.0.1:5433/fleet").unwrap();
        let values: Vec<&str> = place.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["127.0.0.1", "5433", "me", "secret", "fleet"]);
        assert!(place_of("sqlite://ledger.db").is_none());
    }

    #[test]
    fn commits_of_one_term_are_one_and_those_of_another_are_kept_apart() {
        let mut found = Found::default();
        let lines =
            "3 1 a 1 2 2\n3 1 a 1 2 2\n3 2 b 1 1 1\n3 3 a 1 3 1\n3 5 a 1 3 0\n3 6 a 2 5 2\n3 7 a 2 5 2\n\nnonsense\n";
        lines.lines().filter_map(row).for_each(|row| found.take(row));
        let told = |commits: &Commits| (commits.session.clone(), commits.epoch, commits.first, commits.last);
        let all: Vec<_> = found.journal.commits.iter().map(told).collect();
        let a = |epoch, first, last| ("a".to_owned(), epoch, first, last);
        assert_eq!(all, [a(1, 0, 2), ("b".to_owned(), 1, 0, 0), a(2, 3, 4), a(2, 3, 4)]);
        assert_eq!((found.journal.commits[0].from_seq, found.journal.commits[0].to_seq), (1, 3));
        assert_eq!((found.journal.rows, found.journal.missed), (6, 1));
    }
}
