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
        let mut counts: BTreeMap<(String, bool, bool), u64> = BTreeMap::new();
        for line in String::from_utf8_lossy(&whole).lines().filter_map(serious) {
            *counts.entry(line).or_default() += 1;
        }
        let process = process.to_owned();
        let said = counts.into_iter().map(|((words, of_one, error), lines)| Said {
            process: process.clone(),
            at_ms,
            words,
            lines,
            of_one,
            error,
        });
        self.said.extend(said);
    }
}

/// The words of a warning or an error without what differs from line to line, whether it is about one of many,
/// and whether it is an error.
fn serious(line: &str) -> Option<(String, bool, bool)> {
    // Most lines are neither, and need not be read.
    if !line.contains("\"WARN\"") && !line.contains("\"ERROR\"") {
        return None;
    }
    let line: Value = serde_json::from_str(line).ok()?;
    let error = match line["level"].as_str() {
        Some("ERROR") => true,
        Some("WARN") => false,
        _ => return None,
    };
    let words = plain(line["message"].as_str().unwrap_or_default());
    let of_one = OF_ONE.iter().any(|field| line.get(field).is_some());
    Some((words, of_one, error))
}

/// Numbers are none of a message's words: those of libraries have them in the text.
fn plain(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if words.ends_with('#') => {}
            true => words.push('#'),
            false => words.push(c),
        }
    }
    words
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
        assert_eq!(found.said.iter().map(|said| said.error).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn lines_that_differ_in_numbers_have_the_same_words() {
        let of = |text: &str| serious(line("WARN", text, ",\"turn\":\"t-1\"").trim());
        assert_eq!(of("took 12 ms in part 3"), Some(("took # ms in part #".to_owned(), true, false)));
        assert_eq!(of("took 12 ms in part 3"), of("took 7 ms in part 40"));
        assert_eq!(serious("not JSON, and a \"WARN\""), None);
    }

    #[test]
    fn lines_as_the_processes_write_them_are_understood() {
        let lost = r#"{"timestamp":"2026-11-23T11:40:00.794729Z","level":"WARN","message":"lost a shard","shard":"29","epoch":"e3","target":"worker::lease"}"#;
        let duty = r#"{"timestamp":"2026-11-23T14:33:22.479097Z","level":"ERROR","message":"does not work; it is tried again","duty":"holding the archivist's role","error":"unavailable: the database cannot be reached at present","left_out":2,"target":"worker::archivist::condition"}"#;
        let back = r#"{"timestamp":"2026-11-23T14:33:25.100000Z","level":"INFO","message":"the store can be used again","left_out":0,"target":"host::stall"}"#;
        assert_eq!(serious(lost), Some(("lost a shard".to_owned(), true, false)));
        assert_eq!(serious(duty), Some(("does not work; it is tried again".to_owned(), false, true)));
        assert_eq!(serious(back), None);
    }
}
