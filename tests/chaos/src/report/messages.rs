//! What the processes warned of, by fault and process: an outage is to be said once, and not to flood.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Report;
use crate::check::messages::{LINES_MAX, SAME_MAX, worst_minutes, worst_repeats};
use crate::diary::Bar;
use crate::seen::Seen;
use crate::seen::outage::Said;

/// What is said so long after a fault is still counted as its.
const AFTERWARDS_MS: i64 = 3_000;

/// Lines about a process as a whole, and about one of many things.
type Lines = (u64, u64);

pub fn write(report: &Report<'_>, out: &mut String) {
    let processes: BTreeSet<&str> = report.seen.said.iter().map(|said| said.process.as_str()).collect();
    if processes.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## Warnings and errors in the logs\n");
    let _ = writeln!(
        out,
        "From the beginning of a fault to {} s after its end, for all faults of a kind; what is said while two of \
         them overlap counts for both. Lines about the process as a whole + lines about one of many.\n",
        AFTERWARDS_MS / 1_000
    );
    row(out, "fault", processes.iter().map(ToString::to_string));
    row(out, "---", processes.iter().map(|_| "---:".to_owned()));
    let mut kinds: BTreeMap<&str, Vec<&Bar>> = BTreeMap::new();
    for bar in report.bars {
        kinds.entry(&bar.kind).or_default().push(bar);
    }
    for (kind, bars) in kinds {
        let cells = processes.iter().map(|process| told(sum(&report.seen.said, &bars, process)));
        row(out, &format!("{kind}, {} times", bars.len()), cells);
    }
    let worst = worst_minutes(report.seen);
    let most = |process: &&str| worst.get(*process).map_or(0, |minute| minute.lines).to_string();
    row(out, &format!("most in a minute, of {LINES_MAX}"), processes.iter().map(most));
    let repeats = worst_repeats(report.seen);
    let same = |process: &&str| {
        let of_it = repeats.iter().filter(|((of, _), _)| of == process);
        of_it.map(|(_, spell)| spell.lines).max().unwrap_or(0).to_string()
    };
    row(out, &format!("most of the same in ten seconds, of {SAME_MAX}"), processes.iter().map(same));
    words(report.seen, out);
}

/// What was said, whenever.
fn words(seen: &Seen, out: &mut String) {
    let mut lines: BTreeMap<&str, (u64, BTreeSet<&str>, bool)> = BTreeMap::new();
    for said in &seen.said {
        let (count, processes, error) = lines.entry(&said.words).or_default();
        *count += said.lines;
        processes.insert(&said.process);
        *error |= said.error;
    }
    let _ = writeln!(out, "\n| words | lines | processes |\n|---|---:|---:|");
    for (words, (count, processes, error)) in lines {
        let level = if error { " (as an error)" } else { "" };
        let _ = writeln!(out, "| {}{level} | {count} | {} |", words.replace('|', "/"), processes.len());
    }
}

fn row(out: &mut String, first: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    let _ = writeln!(out, "| {first} | {} |", cells.join(" | "));
}

fn sum(said: &[Said], bars: &[&Bar], process: &str) -> Lines {
    let all = bars.iter().map(|bar| during(said, bar, process));
    all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn during(said: &[Said], bar: &Bar, process: &str) -> Lines {
    let within = bar.from_ms..bar.to_ms + AFTERWARDS_MS;
    let its = said.iter().filter(|said| said.process == process && within.contains(&said.at_ms));
    its.fold((0, 0), |sum, one| if one.of_one { (sum.0, sum.1 + one.lines) } else { (sum.0 + one.lines, sum.1) })
}

fn told((of_all, of_one): Lines) -> String {
    if of_one == 0 { of_all.to_string() } else { format!("{of_all} + {of_one}") }
}
