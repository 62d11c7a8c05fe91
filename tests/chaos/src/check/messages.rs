//! An outage is said once: what a process says of itself, and not of one session or request, is little.

use std::collections::BTreeMap;

use super::Findings;
use crate::seen::Seen;
use crate::seen::outage::Said;

const MINUTE_MS: i64 = 60_000;
/// Lines of one process within a minute. A broker that goes is said for each queue, and several things
/// break within a minute.
pub const LINES_MAX: u64 = 200;

pub fn check(seen: &Seen, findings: &mut Findings) {
    for (process, worst) in worst_minutes(seen) {
        findings.expect("log flooded", None, worst.lines <= LINES_MAX, || {
            let (words, lines) = worst.most();
            format!("{process} said {} warnings and errors within a minute, {lines} of them: {words}", worst.lines)
        });
    }
}

/// The minute in which a process said most.
#[derive(Debug, Clone, Default)]
pub struct Minute<'s> {
    pub lines: u64,
    said: Vec<&'s Said>,
}

impl<'s> Minute<'s> {
    /// What was said most often in it.
    fn most(&self) -> (&'s str, u64) {
        let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
        for said in &self.said {
            *lines.entry(&said.words).or_default() += said.lines;
        }
        lines.into_iter().max_by_key(|(_, count)| *count).unwrap_or_default()
    }
}

/// By process.
pub fn worst_minutes(seen: &Seen) -> BTreeMap<&str, Minute<'_>> {
    let mut of: BTreeMap<&str, Vec<&Said>> = BTreeMap::new();
    for said in seen.said.iter().filter(|said| !said.of_one) {
        of.entry(&said.process).or_default().push(said);
    }
    of.into_iter().map(|(process, said)| (process, worst(said))).collect()
}

fn worst(mut said: Vec<&Said>) -> Minute<'_> {
    said.sort_by_key(|said| said.at_ms);
    let (mut worst, mut lines, mut from) = (Minute::default(), 0, 0);
    for (at, newest) in said.iter().enumerate() {
        lines += newest.lines;
        while newest.at_ms - said[from].at_ms >= MINUTE_MS {
            lines -= said[from].lines;
            from += 1;
        }
        if lines > worst.lines {
            worst = Minute { lines, said: said[from..=at].to_vec() };
        }
    }
    worst
}
