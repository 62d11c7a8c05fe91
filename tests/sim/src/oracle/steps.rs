//! S2, S3, S4: iterations without a gap, one chain of tokens, offsets without a gap, and a head
//! that is what its commits made it.

use domain::invariant::Invariant;
use schemas::frame::StepToken;

use super::Findings;
use super::story::{Item, Stories, Story};

pub fn check(stories: &Stories, findings: &mut Findings) {
    for story in &stories.0 {
        chain(story, findings);
        offsets(story, findings);
        head(story, findings);
    }
}

fn chain(story: &Story, findings: &mut Findings) {
    let key = &story.row.key;
    let mut next = StepToken::start();
    for (step, expected) in story.steps().zip(0..) {
        let iteration = step.iteration;
        findings.expect(Invariant::S2, iteration == expected, || {
            format!("{key} has iteration {iteration} where {expected} should be")
        });
        findings.expect(Invariant::S4, step.step_token == next, || {
            format!("{key}: iteration {iteration} runs {:?} after {next:?}", step.step_token)
        });
        next = step.next_step_token.clone();
    }
}

fn offsets(story: &Story, findings: &mut Findings) {
    let offsets: Vec<u64> = story.items().iter().map(Item::offset).collect();
    let gapless = offsets.iter().zip(1..).all(|(offset, expected)| *offset == expected);
    findings.expect(Invariant::J1, gapless, || format!("{} has the offsets {offsets:?}", story.row.key));
}

fn head(story: &Story, findings: &mut Findings) {
    let (key, head) = (&story.row.key, &story.row.head);
    let steps = story.steps().count() as u64;
    findings.expect(Invariant::S3, head.steps == steps, || format!("{key} counts {} steps, not {steps}", head.steps));
    let items = story.items().len() as u64;
    findings.expect(Invariant::S3, head.next_offset == items + 1, || {
        format!("{key} is at offset {} after {items} items", head.next_offset)
    });
    if let Some(last) = story.commits.last() {
        findings.expect(Invariant::S3, *head == last.entry.head, || {
            format!("{key} has a head that no commit left: {head:?} is not {:?}", last.entry.head)
        });
    }
    if let Some(step) = story.steps().last() {
        let tokens = (head.step_token.as_ref(), &head.next_step_token);
        findings.expect(Invariant::S4, tokens == (Some(&step.step_token), &step.next_step_token), || {
            format!("{key} has the tokens {tokens:?} after {:?}", step.next_step_token)
        });
    }
}
