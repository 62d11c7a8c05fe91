//! Reads along what the processes write to their logs, so that each warning has a time: those of the lines
//! are of clocks that are set.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use super::OURS;
use crate::diary::now_ms;
use crate::seen::outage::Said;

const EVERY: Duration = Duration::from_secs(1);
/// Of one log, at one look.
const BYTES_MAX: u64 = 16 << 20;
/// Lines that name one of these are about one of many.
const OF_ONE: [&str; 5] = ["session.id", "shard", "operation", "conversation", "turn"];
/// So are these: one for each request, and for each call of a model or a tool.
const OF_CALLS: [&str; 3] =
    ["request failed", "call failed, trying again", "cannot read what a turn needs; will go on trying"];

pub struct Tail {
    logs: PathBuf,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    /// How much of each log was read, and the line whose end was not there yet.
    read: BTreeMap<String, (u64, Vec<u8>)>,
    said: Vec<Said>,
}

impl Tail {
    /// Of a run in this directory.
    pub fn new(dir: &std::path::Path) -> Self {
        Self { logs: dir.join("log"), found: Mutex::default() }
    }

    pub async fn run(self: Arc<Self>, stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            self.look();
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Warnings and errors since the look before.
    fn look(&self) {
        let Ok(mut found) = self.found.lock() else { return };
        for entry in std::fs::read_dir(&self.logs).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(process) = name.strip_suffix(".log").filter(|name| OURS.iter().any(|kind| name.starts_with(kind)))
            else {
                continue;
            };
            let Ok(file) = std::fs::File::open(entry.path()) else { continue };
            found.take(process, file, now_ms());
        }
    }

    pub fn said(&self) -> Vec<Said> {
        self.look();
        self.found.lock().map(|found| found.said.clone()).unwrap_or_default()
    }
}

impl Found {
    fn take(&mut self, process: &str, mut log: impl Read + Seek, at_ms: i64) {
        let (upto, rest) = self.read.entry(process.to_owned()).or_default();
        let begin = rest.len();
        if log.seek(SeekFrom::Start(*upto)).is_err() || log.take(BYTES_MAX).read_to_end(rest).is_err() {
            rest.truncate(begin);
            return;
        }
        *upto += (rest.len() - begin) as u64;
        let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole: Vec<u8> = rest.drain(..end).collect();
        let mut counts: BTreeMap<(String, bool), u64> = BTreeMap::new();
        for line in String::from_utf8_lossy(&whole).lines().filter_map(serious) {
            *counts.entry(line).or_default() += 1;
        }
        let process = process.to_owned();
        let said = counts.into_iter().map(|((words, of_one), lines)| Said {
            process: process.clone(),
            at_ms,
            words,
            lines,
            of_one,
        });
        self.said.extend(said);
    }
}

/// The words of a warning or an error, and whether it is about one of many.
fn serious(line: &str) -> Option<(String, bool)> {
    // Most lines are neither, and need not be read.
    if !line.contains("\"WARN\"") && !line.contains("\"ERROR\"") {
        return None;
    }
    let line: Value = serde_json::from_str(line).ok()?;
    if !matches!(line["level"].as_str(), Some("WARN" | "ERROR")) {
        return None;
    }
    let words = line["message"].as_str().unwrap_or_default().to_owned();
    let of_one = OF_ONE.iter().any(|field| line.get(field).is_some()) || OF_CALLS.contains(&words.as_str());
    Some((words, of_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(level: &str, words: &str, more: &str) -> String {
        format!("{{\"timestamp\":\"x\",\"level\":\"{level}\",\"message\":\"{words}\"{more},\"target\":\"t\"}}\n")
    }

    #[test]
    fn lines_are_read_once_and_whole_and_counted_by_their_words() {
        let away = line("WARN", "the broker is away", "");
        let fenced = line("WARN", "a commit was fenced", ",\"session.id\":\"default/s\"");
        let log = [away.clone(), line("INFO", "WARN is a word", ""), fenced, away, line("ERROR", "gone", "")].concat();
        let mut found = Found::default();
        for end in [log.len() - 5, log.len() - 1, log.len(), log.len()] {
            found.take("w", std::io::Cursor::new(&log.as_bytes()[..end]), 7);
        }
        let told: Vec<(&str, u64, bool)> =
            found.said.iter().map(|said| (said.words.as_str(), said.lines, said.of_one)).collect();
        assert_eq!(told, [("a commit was fenced", 1, true), ("the broker is away", 2, false), ("gone", 1, false)]);
    }

    #[test]
    fn what_is_said_for_each_request_is_known_by_its_words() {
        let (words, of_one) = serious(line("WARN", "request failed", "").trim()).unwrap();
        assert_eq!((words.as_str(), of_one), ("request failed", true));
        assert_eq!(serious("not JSON, and a \"WARN\""), None);
    }
}
