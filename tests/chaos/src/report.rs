//! The report for people: `report.md` with a timeline, counts, take-over times and findings.

mod checked;
mod messages;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::check::{Findings, accepting};
use crate::diary::Bar;
use crate::logs;
use crate::plan::Shape;
use crate::seen::{Seen, Takeover, Told};

/// Lines of log per process in a report with findings.
const LOG_LINES: usize = 12;

pub struct Report<'r> {
    pub shape: &'r Shape,
    pub seen: &'r Seen,
    pub findings: &'r Findings,
    pub bars: &'r [Bar],
    /// Of the program under attack.
    pub version: &'r str,
    pub began_ms: i64,
    pub faults_ended_ms: i64,
    /// When everything was read.
    pub read_ms: i64,
    /// What this machine could not do.
    pub left_out: &'r [String],
    pub command: String,
}

impl Report<'_> {
    /// Writes `report.md` and `timeline.svg`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let svg = timeline::draw(self);
        std::fs::write(dir.join("timeline.svg"), svg).context("timeline.svg")?;
        std::fs::write(dir.join("report.md"), self.text(dir)).context("report.md")
    }

    fn text(&self, dir: &Path) -> String {
        let mut out = String::new();
        let verdict = match self.findings.counts.values().sum::<usize>() {
            0 => "no findings".to_owned(),
            count => format!("**{count} findings**"),
        };
        let minutes = (self.faults_ended_ms - self.began_ms) as f64 / 60_000.0;
        let _ = writeln!(out, "# Chaos: seed {}, {minutes:.1} minutes, {verdict}\n", self.shape.seed);
        let _ = writeln!(out, "`{}` repeats the choices.\n", self.command);
        for what in self.left_out {
            let _ = writeln!(out, "- left out: {what}");
        }
        checked::write_head(self, &mut out);
        let _ = writeln!(out, "\n![timeline](timeline.svg)\n");
        self.told(&mut out);
        checked::write_checks(self, &mut out);
        let _ = writeln!(out, "\n## What there was\n");
        self.counts(&mut out);
        checked::write_faults(self, &mut out);
        self.faults(&mut out);
        self.takeovers(&mut out);
        self.accepting(&mut out);
        messages::write(self, &mut out);
        if !self.findings.is_empty() {
            log_lines(&mut out, dir);
        }
        out
    }

    fn counts(&self, out: &mut String) {
        let seen = self.seen;
        let steps: usize = seen.sessions.iter().map(|session| session.steps().count()).sum();
        let told = |what: fn(&Told) -> bool| seen.sent.iter().filter(|sent| what(&sent.told)).count();
        let mut rows = vec![
            ("sessions", seen.sessions.len()),
            ("committed steps", steps),
            ("actions accepted over HTTP", told(|told| *told == Told::Accepted)),
            ("actions confirmed over AMQP", told(|told| *told == Told::Confirmed)),
            ("actions refused because their session had ended", told(|told| matches!(told, Told::Refused(_)))),
            ("calls of step functions", seen.calls.len()),
            ("pieces of garbage", seen.fleet.garbage.len()),
            ("streams followed live", seen.streams.len()),
            ("connections of theirs", seen.streams.iter().map(|stream| stream.connections as usize).sum()),
            ("events in them", seen.streams.iter().map(|stream| stream.items.len()).sum()),
            ("changes of owners seen", seen.owners.len()),
        ];
        rows.extend(ownership(seen));
        rows.extend(effects(seen));
        rows.extend(conversations(seen));
        if let Some(doctor) = &seen.fleet.doctor {
            rows.push(("steps that the doctor read", doctor.steps as usize));
        }
        let _ = writeln!(out, "| what | count |\n|---|---:|");
        for (what, count) in rows {
            let _ = writeln!(out, "| {what} | {count} |");
        }
        let mut monikers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for session in &seen.sessions {
            *monikers.entry((&session.moniker, &session.status)).or_default() += 1;
        }
        for ((moniker, status), count) in monikers {
            let _ = writeln!(out, "| `{moniker}` sessions {status} | {count} |");
        }
    }

    fn faults(&self, out: &mut String) {
        let _ =
            writeln!(out, "\n## Faults in their order\n\n| at | fault | what | s | note |\n|---:|---|---|---:|---|");
        for bar in self.bars {
            let at = (bar.from_ms - self.began_ms) as f64 / 1_000.0;
            let lasted = (bar.to_ms - bar.from_ms) as f64 / 1_000.0;
            let _ = writeln!(out, "| {at:.1} s | {} | {} | {lasted:.1} | {} |", bar.kind, bar.target, bar.note);
        }
    }

    /// By fault, alone and together with others.
    fn takeovers(&self, out: &mut String) {
        let _ = writeln!(out, "\n## Take-over: from the fault to the next step of a session\n");
        let _ = writeln!(
            out,
            "| fault | faults | sessions | p50 ms | p90 ms | max ms | never |\n|---|---:|---:|---:|---:|---:|---:|"
        );
        let mut groups: BTreeMap<(&str, bool), Vec<&Takeover>> = BTreeMap::new();
        for takeover in &self.seen.takeovers {
            groups.entry((&takeover.fault, takeover.alone)).or_default().push(takeover);
        }
        for ((fault, alone), takeovers) in groups {
            let mut gaps: Vec<i64> =
                takeovers.iter().flat_map(|takeover| takeover.gaps_ms.iter().flatten().copied()).collect();
            gaps.sort_unstable();
            let never = takeovers.iter().flat_map(|takeover| &takeover.gaps_ms).filter(|gap| gap.is_none()).count();
            let at = |share: f64| gaps.get(((gaps.len() as f64 - 1.0) * share).round() as usize).copied().unwrap_or(0);
            let with = if alone { "alone" } else { "with other faults" };
            let (count, sessions) = (takeovers.len(), gaps.len() + never);
            let _ = writeln!(
                out,
                "| {fault}, {with} | {count} | {sessions} | {} | {} | {} | {never} |",
                at(0.5),
                at(0.9),
                gaps.last().copied().unwrap_or(0)
            );
        }
        let _ = writeln!(out, "\nMeasured by live followers of sessions that step every 200 ms.");
    }

    /// Whether the broker's absence is felt by who sends actions.
    fn accepting(&self, out: &mut String) {
        let (tally, judged) = accepting::during(self.seen);
        let _ = writeln!(out, "\n## Accepting while the broker is away\n");
        let _ = writeln!(
            out,
            "{} of {} actions ({:.1} %) were accepted within a second, in {judged} of {} outages with nothing else \
             broken; the others came when the fleet had not recovered from what was before.",
            tally.at_once,
            tally.tries,
            tally.share() * 100.0,
            self.seen.outages.len()
        );
    }

    fn told(&self, out: &mut String) {
        let _ = writeln!(out, "\n## Findings\n");
        if self.findings.is_empty() {
            let _ = writeln!(out, "None.");
            return;
        }
        let _ = writeln!(
            out,
            "Where to look: `observed.json` has the whole history of a session under its id, `log/` what each process \
             said, `events.jsonl` when what was broken. `ops/chaos --recheck observed.json` judges the record again.\n"
        );
        for (rule, count) in &self.findings.counts {
            let _ = writeln!(out, "### {rule}: {count}\n");
            for finding in self.findings.told.iter().filter(|finding| finding.rule == *rule) {
                let session = finding.session.as_ref().map(|id| format!("`{id}`: ")).unwrap_or_default();
                let _ = writeln!(out, "- {session}{}", finding.what);
            }
            let _ = writeln!(out);
        }
    }
}

/// What ownership is proven from.
fn ownership(seen: &Seen) -> Vec<(&'static str, usize)> {
    let Some(journal) = &seen.journal else { return Vec::new() };
    let terms: BTreeSet<(u64, i64)> = journal.commits.iter().map(|one| (one.shard, one.epoch)).collect();
    let processes: BTreeSet<&str> = journal.ran.iter().map(|ran| ran.process.as_str()).collect();
    vec![
        ("commits read in the journal", journal.rows as usize),
        ("commits trimmed before they were read", journal.missed as usize),
        ("terms of shards with committed steps", terms.len()),
        ("processes that ran steps", processes.len()),
    ]
}

/// What became of calls to the outside.
fn effects(seen: &Seen) -> [(&'static str, usize); 3] {
    let mut keys: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for call in &seen.calls {
        *keys.entry((&call.key, call.once)).or_default() += 1;
    }
    let again = |once: bool| keys.iter().filter(|((_, of), count)| *of == once && **count > 1).count();
    let errors = seen.sessions.iter().flat_map(|session| session.steps()).filter_map(|step| step.error.as_deref());
    [
        ("keys of idempotent calls that arrived again", again(false)),
        ("keys of calls made at most once that arrived again, after a refusal", again(true)),
        ("steps in doubt whether their call happened", errors.filter(|error| error.contains("doubt")).count()),
    ]
}

/// What was said and done in conversations, delegated ones among them.
fn conversations(seen: &Seen) -> [(&'static str, usize); 13] {
    let turns = || seen.talks.iter().flat_map(|talk| &talk.turns);
    let failed = |cancelled: bool| turns().filter(move |turn| turn.status == "failed" && turn.cancelled == cancelled);
    let verdicts = |approved: bool| seen.verdicts.values().filter(move |verdict| verdict.approved == approved);
    let moves = || turns().flat_map(|turn| &turn.moves);
    let of_users = || seen.talks.iter().filter(|talk| !talk.delegated);
    let keys: BTreeSet<&str> = seen.asked.iter().map(|asked| asked.key.as_str()).collect();
    let tools: BTreeSet<&str> = seen.tools.iter().map(|call| call.key.as_str()).collect();
    [
        ("conversations", of_users().count()),
        ("conversations of delegates", seen.talks.len() - of_users().count()),
        ("messages of users", seen.talks.iter().map(|talk| talk.posts.len()).sum()),
        ("turns", turns().count()),
        ("turns that failed as planned", failed(false).count()),
        ("turns that were cancelled, those of delegates with them", failed(true).count()),
        ("conversations with guidance", seen.talks.iter().filter(|talk| talk.guided).count()),
        ("questions that a person answered with yes", verdicts(true).count()),
        ("questions that a person answered with no", verdicts(false).count()),
        ("replies of models", moves().count()),
        ("requests to models for what had been asked", seen.asked.len() - keys.len()),
        ("calls of tools by agents", moves().map(|one| one.calls.len()).sum()),
        ("calls of tools that arrived again", seen.tools.len() - tools.len()),
    ]
}

fn log_lines(out: &mut String, dir: &Path) {
    let _ = writeln!(out, "\n## Last warnings and errors of the processes\n");
    for (name, lines, count) in logs::excerpts(dir, LOG_LINES) {
        let _ = writeln!(out, "{name} ({count}):\n\n```\n{}\n```\n", lines.join("\n"));
    }
}
