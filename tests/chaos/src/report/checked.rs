//! What was attacked, how often, and how much of it was checked: a run without findings is worth as much as
//! what it looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::Report;
use crate::check::accepting;
use crate::seen::Seen;

/// The program, the services and the times.
pub fn write_head(report: &Report<'_>, out: &mut String) {
    let began = chrono::DateTime::from_timestamp_millis(report.began_ms).unwrap_or_default();
    let took = |ms: i64| format!("{:.1} min", ms as f64 / 60_000.0);
    let shape = report.shape;
    let mut rows = vec![
        ("program", report.version.to_owned()),
        ("began", began.format("%Y-%m-%d %H:%M:%S UTC").to_string()),
        ("under attack", took(report.faults_ended_ms - report.began_ms)),
        ("then healed, at rest and read", took(report.read_ms - report.faults_ended_ms)),
        ("workers and dispatchers", format!("{} and {}", shape.workers, shape.dispatchers)),
        ("an archivist, an executor, a guest", "one each".to_owned()),
    ];
    let said = report.seen.fleet.doctor.iter().flat_map(|doctor| &doctor.said);
    rows.extend(said.map(|line| ("the doctor, at the end", line.clone())));
    let _ = writeln!(out, "\n| what | |\n|---|---|");
    for (what, value) in rows {
        let _ = writeln!(out, "| {what} | {} |", value.replace('|', "/").replace('\n', " "));
    }
}

/// How often each kind of fault came, and for how long.
pub fn write_faults(report: &Report<'_>, out: &mut String) {
    let mut kinds: BTreeMap<&str, (usize, i64)> = BTreeMap::new();
    for bar in report.bars {
        let (times, ms) = kinds.entry(&bar.kind).or_default();
        *times += 1;
        *ms += bar.to_ms - bar.from_ms;
    }
    let _ = writeln!(out, "\n## {} faults of {} kinds\n", report.bars.len(), kinds.len());
    let _ = writeln!(out, "| fault | times | s in all |\n|---|---:|---:|");
    for (kind, (times, ms)) in kinds {
        let _ = writeln!(out, "| {kind} | {times} | {:.1} |", ms as f64 / 1_000.0);
    }
}

/// Each promise, and on how many things it was held against what was seen.
pub fn write_checks(report: &Report<'_>, out: &mut String) {
    let _ = writeln!(out, "\n## What was checked\n\n| promise | checked on |\n|---|---:|");
    for (promise, count, of) in checks(report.seen) {
        let _ = writeln!(out, "| {promise} | {count} {of} |");
    }
    let _ = writeln!(out, "\nA promise that was checked on nothing was not proven by this run.");
}

type Checked = (&'static str, usize, &'static str);

fn checks(seen: &Seen) -> Vec<Checked> {
    let steps: usize = seen.sessions.iter().map(|session| session.steps().count()).sum();
    let gaps: usize = seen.takeovers.iter().filter(|one| one.alone).map(|one| one.gaps_ms.len()).sum();
    let turns: usize = seen.talks.iter().map(|talk| talk.turns.len()).sum();
    let posts: usize = seen.talks.iter().map(|talk| talk.posts.len()).sum();
    let idle = seen.sessions.iter().filter(|session| session.idle.is_some()).count();
    let owned: BTreeSet<u64> = seen.owners.iter().map(|owner| owner.shard).collect();
    let lines: u64 = seen.said.iter().map(|said| said.lines).sum();
    let accepted = accepting::during(seen).0.tries;
    let (rows, ran) = seen.journal.as_ref().map_or((0, 0), |journal| (journal.rows as usize, journal.ran.len()));
    vec![
        ("what is accepted is applied once, and has an outcome", seen.sent.len(), "actions"),
        ("iterations without gap or repeat, inputs in order, no step while paused", steps, "steps"),
        ("calls at most once, where that was promised", seen.calls.len() + seen.tools.len(), "calls"),
        ("no session waits without a cause", idle, "sessions at rest"),
        ("streams followed live bring everything once", seen.streams.len(), "streams"),
        ("one owner of a shard in each term", owned.len(), "shards"),
        ("nothing is committed out of its term, or by two processes", rows, "commits"),
        ("what was committed was run, by one process a term", ran, "stretches of steps"),
        ("take-over in time, after a fault that came alone", gaps, "sessions"),
        ("accepting goes on while the broker is away", accepted, "tries"),
        ("messages once, turns end, calls and results are pairs, tokens counted once", turns, "turns"),
        ("messages of users are there, once", posts, "messages"),
        ("garbage is among the dead letters", seen.fleet.garbage.len(), "pieces"),
        ("outages are said once, errors have a fault", lines as usize, "warnings and errors"),
        ("the history that was archived is whole", doctored(seen), "steps"),
    ]
}

fn doctored(seen: &Seen) -> usize {
    seen.fleet.doctor.as_ref().map_or(0, |doctor| doctor.steps as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::Doctor;

    #[test]
    fn what_was_not_looked_at_is_told_as_nothing() {
        let mut seen = Seen::default();
        assert!(checks(&seen).iter().all(|(_, count, _)| *count == 0));
        seen.fleet.doctor = Some(Doctor { steps: 7, ..Doctor::default() });
        let told: Vec<Checked> = checks(&seen).into_iter().filter(|(_, count, _)| *count > 0).collect();
        assert_eq!(told, [("the history that was archived is whole", 7, "steps")]);
    }
}
