//! What goes wrong is said once: a line when it begins, now and then one more, whatever the number of sessions,
//! shards, turns and requests it meets. Errors have a fault that explains them.

use std::collections::BTreeMap;

use super::Findings;
use crate::seen::Seen;
use crate::seen::outage::Said;

const MINUTE_MS: i64 = 60_000;
/// Lines of one process within a minute. Of what comes and goes a line in ten seconds is told, and some
/// half a dozen things can.
pub const LINES_MAX: u64 = 60;
/// No part of a process says the same more often than once in this time.
const SAME_MS: i64 = 10_000;
/// Lines with the same words within that time: a process has several connections to a service, and one that is
/// started again says it anew.
pub const SAME_MAX: u64 = 5;
/// What is waited for longest is tried again within this time after a fault.
const EXPLAINED_MS: i64 = 30_000;

pub fn check(seen: &Seen, findings: &mut Findings) {
    for (process, worst) in worst_minutes(seen) {
        findings.expect("log flooded", None, worst.lines <= LINES_MAX, || {
            let (words, lines) = worst.most();
            format!("{process} said {} warnings and errors within a minute, {lines} of them: {words}", worst.lines)
        });
    }
    for ((process, words), worst) in worst_repeats(seen) {
        findings.expect("log repeats itself", None, worst.lines <= SAME_MAX, || {
            let each = if worst.said.iter().any(|said| said.of_one) { ", a line for each of many" } else { "" };
            let faults = faults(seen, worst.first_ms(), worst.first_ms() + SAME_MS);
            format!("{process} said {} times within ten seconds{each}, during {faults}: {words}", worst.lines)
        });
    }
    // Records of earlier releases do not know their faults.
    for said in seen.said.iter().filter(|said| said.error && !seen.faults.is_empty()) {
        let explains = |from_ms: i64, to_ms: i64| (from_ms..=to_ms + EXPLAINED_MS).contains(&said.at_ms);
        let is_explained = seen.faults.iter().any(|fault| explains(fault.from_ms, fault.to_ms));
        findings.expect("error without a fault", None, is_explained, || {
            format!("{} said {} times as an error, with nothing broken: {}", said.process, said.lines, said.words)
        });
    }
}

/// What was broken at that time.
fn faults(seen: &Seen, from_ms: i64, to_ms: i64) -> String {
    let meets = seen.faults.iter().filter(|fault| fault.from_ms <= to_ms && fault.to_ms + EXPLAINED_MS >= from_ms);
    let mut kinds: Vec<&str> = meets.map(|fault| fault.kind.as_str()).collect();
    kinds.dedup();
    if kinds.is_empty() { "no fault".to_owned() } else { kinds.join(", ") }
}

/// The time in which something was said most.
#[derive(Debug, Clone, Default)]
pub struct Spell<'s> {
    pub lines: u64,
    said: Vec<&'s Said>,
}

impl<'s> Spell<'s> {
    /// What was said most often in it.
    fn most(&self) -> (&'s str, u64) {
        let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
        for said in &self.said {
            *lines.entry(&said.words).or_default() += said.lines;
        }
        lines.into_iter().max_by_key(|(_, count)| *count).unwrap_or_default()
    }

    fn first_ms(&self) -> i64 {
        self.said.first().map_or(0, |said| said.at_ms)
    }
}

/// By process: the minute with most lines.
pub fn worst_minutes(seen: &Seen) -> BTreeMap<&str, Spell<'_>> {
    worst_by(seen, MINUTE_MS, |said| said.process.as_str())
}

/// By process and words: the ten seconds with most lines.
pub fn worst_repeats(seen: &Seen) -> BTreeMap<(&str, &str), Spell<'_>> {
    worst_by(seen, SAME_MS, |said| (said.process.as_str(), said.words.as_str()))
}

fn worst_by<'s, K: Ord>(seen: &'s Seen, within_ms: i64, key: impl Fn(&'s Said) -> K) -> BTreeMap<K, Spell<'s>> {
    let mut of: BTreeMap<K, Vec<&Said>> = BTreeMap::new();
    for said in &seen.said {
        of.entry(key(said)).or_default().push(said);
    }
    of.into_iter().map(|(key, said)| (key, worst(said, within_ms))).collect()
}

fn worst(mut said: Vec<&Said>, within_ms: i64) -> Spell<'_> {
    said.sort_by_key(|said| said.at_ms);
    let (mut worst, mut lines, mut from) = (Spell::default(), 0, 0);
    for (at, newest) in said.iter().enumerate() {
        lines += newest.lines;
        while newest.at_ms - said[from].at_ms >= within_ms {
            lines -= said[from].lines;
            from += 1;
        }
        if lines > worst.lines {
            worst = Spell { lines, said: said[from..=at].to_vec() };
        }
    }
    worst
}
