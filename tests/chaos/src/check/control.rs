//! Control takes effect and stays in effect: no step while paused, nothing after the end, each
//! group of the control lane in its order, and a cause for whoever waits.

use std::collections::BTreeMap;

use super::{Findings, Story};

/// Actions whose events show the order in which they were applied.
const SWITCHES: [&str; 2] = ["pause", "resume"];
/// A timer may be this late under load.
const OVERDUE_MS_MAX: i64 = 15_000;

pub fn check(story: &Story<'_>, findings: &mut Findings) {
    statuses(story, findings);
    switched_in_order(story, findings);
    guidance(story, findings);
    cause(story, findings);
    destroyed(story, findings);
}

fn statuses(story: &Story<'_>, findings: &mut Findings) {
    let session = story.session;
    let mut status = "starting";
    for item in session.items.iter().filter(|item| item.kind != "end") {
        if matches!(status, "stopped" | "completed") {
            let what = format!("it is {status} and goes on at offset {}", item.offset);
            return findings.add("goes on after its end", Some(&session.id), what);
        }
        if let Some(step) = &item.step {
            findings.expect(
                "step while not running",
                Some(&session.id),
                matches!(status, "running" | "stopping"),
                || format!("step {} at offset {} is taken while {status}", step.iteration, item.offset),
            );
        }
        if let Some(next) = &item.status {
            status = next;
        }
    }
    findings.expect("status", Some(&session.id), status == session.status, || {
        format!("its events end {status}, its row says {}", session.status)
    });
}

/// Pauses and resumes show in the order of their numbers.
fn switched_in_order(story: &Story<'_>, findings: &mut Findings) {
    let numbers: BTreeMap<&str, u64> =
        story.succeeded(&SWITCHES).into_iter().filter_map(|(sent, row)| Some((sent.id.as_str(), row.seq?))).collect();
    let applied: Vec<u64> = story
        .session
        .items
        .iter()
        .filter_map(|item| item.action.as_deref().and_then(|id| numbers.get(id).copied()))
        .collect();
    findings.expect("control out of order", Some(&story.session.id), applied.is_sorted(), || {
        format!("pauses and resumes are applied in the order {applied:?}")
    });
}

/// Guidance that succeeded is on exactly one step, in order; any other is on none.
fn guidance(story: &Story<'_>, findings: &mut Findings) {
    let session = story.session;
    let given: Vec<&str> =
        story.succeeded(&["interrupt"]).into_iter().filter_map(|(sent, _)| sent.mark.as_deref()).collect();
    let ours = |mark: &&str| mark.starts_with("g-");
    let taken: Vec<&str> = session.steps().filter_map(|step| step.guidance.as_deref()).filter(ours).collect();
    if given != taken {
        let (given_count, taken_count) = (given.len(), taken.len());
        let at = given.iter().zip(&taken).position(|(a, b)| a != b).unwrap_or(given_count.min(taken_count));
        let what = format!(
            "{given_count} guidances succeeded, {taken_count} are on steps; they part at place {at}: {:?} and {:?}",
            given.get(at),
            taken.get(at)
        );
        findings.add("guidance", Some(&session.id), what);
    }
}

fn cause(story: &Story<'_>, findings: &mut Findings) {
    let Some(idle) = &story.session.idle else { return };
    let agrees = match idle.status.as_str() {
        "stopped" | "completed" | "error" => idle.cause == "ended",
        "paused" => idle.cause == "paused",
        "running" => ["runnable", "timer", "input", "operation"].contains(&idle.cause.as_str()),
        // Nothing is left to do, so nothing may be on its way.
        _ => false,
    };
    findings.expect("no cause", Some(&story.session.id), agrees, || {
        format!("it is {} with cause {:?}: {}", idle.status, idle.cause, idle.summary)
    });
    let stuck = idle.overdue_ms > OVERDUE_MS_MAX;
    findings.expect("overdue", Some(&story.session.id), !stuck, || {
        format!("it should have run {} ms ago: {}", idle.overdue_ms, idle.summary)
    });
}

/// At the end of a run everything has been destroyed that had not ended.
fn destroyed(story: &Story<'_>, findings: &mut Findings) {
    let status = story.session.status.as_str();
    findings.expect("not ended", Some(&story.session.id), matches!(status, "stopped" | "completed"), || {
        format!("it is {status} after it was destroyed")
    });
}
