//! What steps say: every input echoed once and in order, every guidance seen by one step, counts
//! that follow from the state before, and nothing from another namespace.

use domain::invariant::Invariant;
use schemas::action::{Action, ActionType};
use schemas::record::StepStatus;
use serde_json::Value;

use super::Findings;
use super::story::{Stories, Story};

pub fn check(stories: &Stories, findings: &mut Findings) {
    for story in &stories.0 {
        guidance(story, findings);
        namespace(story, findings);
        match story.row.spec.moniker.as_str() {
            "echo" => echo(story, findings),
            "count" => count(story, findings),
            _ => {}
        }
    }
}

/// K-21: first in first out, one per step, each exactly once.
fn guidance(story: &Story, findings: &mut Findings) {
    let wanted = |action: &&Action| action.payload.to_value()["guidance"].clone();
    let given: Vec<Value> = story.succeeded(&[ActionType::Interrupt]).iter().map(wanted).collect();
    let seen: Vec<Value> =
        story.steps().filter_map(|step| step.guidance.as_ref()).map(|guidance| guidance.to_value()).collect();
    findings.expect(Invariant::A1, given == seen, || {
        format!("{}: guidance {given:?} was given, {seen:?} was seen", story.row.key)
    });
}

fn echo(story: &Story, findings: &mut Findings) {
    let text = |action: &&Action| action.payload.to_value()["text"].as_str().unwrap_or_default().to_owned();
    let given: Vec<String> = story.succeeded(&[ActionType::Input]).iter().map(text).collect();
    let said: Vec<String> =
        story.steps().filter_map(|step| step.text.clone()).filter(|text| text.starts_with("in:")).collect();
    findings.expect(Invariant::A1, given == said, || {
        format!("{}: inputs {given:?} were given, {said:?} were echoed", story.row.key)
    });
}

/// Each number follows from the state that the step before left (no guidance sets it here).
fn count(story: &Story, findings: &mut Findings) {
    let done = story.steps().filter(|step| step.status == StepStatus::Ok);
    for (step, expected) in done.zip(1..) {
        let n = step.state.to_value()["n"].as_i64();
        findings.expect(Invariant::S3, n == Some(expected), || {
            format!("{}: iteration {} counts {n:?}, not {expected}", story.row.key, step.iteration)
        });
    }
}

/// Marks name the namespace and the session they were meant for.
fn namespace(story: &Story, findings: &mut Findings) {
    let key = &story.row.key;
    for step in story.steps() {
        let guidance = step.guidance.as_ref().map(|guidance| guidance.to_value()["mark"].clone());
        let marks = [step.text.clone(), guidance.and_then(|mark| mark.as_str().map(str::to_owned))];
        for mark in marks.into_iter().flatten() {
            let Some((_, place)) = mark.split_once(':').filter(|(kind, _)| matches!(*kind, "in" | "g")) else {
                continue;
            };
            let at_home = place.starts_with(&format!("{}.", key.namespace));
            findings.expect(Invariant::N1, at_home, || format!("{key} has a step with {mark:?}"));
        }
    }
}
