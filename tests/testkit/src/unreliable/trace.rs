//! What happened lately, for the report of a failing seed.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// Lines kept.
const LINES_MAX: usize = 4_000;

/// Cheap to clone; clones are one record.
#[derive(Clone)]
pub struct Trace {
    start: Instant,
    lines: Arc<Mutex<Lines>>,
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<Line>,
    digest: u64,
}

struct Line {
    at_ms: u64,
    who: Arc<str>,
    what: String,
}

impl Trace {
    pub fn new() -> Self {
        Self { start: Instant::now(), lines: Arc::default() }
    }

    pub fn note(&self, who: &Arc<str>, what: impl Into<String>) {
        let line = Line { at_ms: self.start.elapsed().as_millis() as u64, who: who.clone(), what: what.into() };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in line.what.bytes().chain(line.at_ms.to_le_bytes()) {
            // FNV-1a, 64 bit.
            lines.digest = (lines.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if lines.kept.len() == LINES_MAX {
            lines.kept.pop_front();
        }
        lines.kept.push_back(line);
    }

    /// Equal for equal histories: shows whether a seed reproduces its run.
    pub fn digest(&self) -> u64 {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).digest
    }

    /// The last lines, oldest first.
    pub fn tail(&self, count: usize) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.kept.iter().skip(lines.kept.len().saturating_sub(count)).map(Line::to_string).collect()
    }
}

impl Default for Trace {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>8} ms  {:<10} {}", self.at_ms, self.who, self.what)
    }
}
