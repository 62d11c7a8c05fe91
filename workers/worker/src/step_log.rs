//! A line for every execution of a step, for measurements and for proofs from outside. It is not
//! durable and not part of history: history has what was committed, this has what was run.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use schemas::id::SessionId;

/// Lines `session step pid time`: the step is the iteration, which counts from 0, and the time is in nanoseconds since the Unix
/// epoch. Each line is one write at the end of the file, so that processes can share it.
pub struct StepLog(File);

impl StepLog {
    /// # Errors
    /// The file cannot be opened for appending.
    pub fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(Self)
    }

    #[allow(clippy::disallowed_methods, reason = "a measurement from outside is compared with other clocks")]
    pub(crate) fn note(&self, session: &SessionId, iteration: u64) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let line = format!("{session} {iteration} {} {time}\n", std::process::id());
        if let Err(error) = (&self.0).write_all(line.as_bytes()) {
            tracing::debug!(%error, "an execution was not noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_execution_is_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("steps");
        let log = StepLog::open(&path).unwrap();
        let session = SessionId::parse("s1").unwrap();
        log.note(&session, 0);
        log.note(&session, 1);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(lines.iter().map(|line| (line[0], line[1])).collect::<Vec<_>>(), [("s1", "0"), ("s1", "1")]);
        assert!(lines.iter().all(|line| line.len() == 4 && line[3].parse::<u128>().is_ok()));
    }
}
