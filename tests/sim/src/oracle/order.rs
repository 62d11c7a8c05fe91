//! A2: actions of one session and lane apply in `session_seq` order. In the control lane stops go
//! first and guidance waits for its step (DESIGN 5), so each group has its own order.

use std::collections::BTreeMap;

use domain::invariant::Invariant;
use schemas::action::{ActionOutcome, ActionType};

use super::Findings;
use super::story::{Stories, Story};

const GROUPS: [&[ActionType]; 4] = [
    &[ActionType::Create, ActionType::Input, ActionType::ToolResult],
    &[ActionType::Interrupt],
    &[ActionType::Pause, ActionType::Resume],
    &[ActionType::Destroy],
];

pub fn check(stories: &Stories, findings: &mut Findings) {
    for story in &stories.0 {
        for group in GROUPS {
            let applied = applied(story, group);
            let in_order = applied.is_sorted();
            findings.expect(Invariant::A2, in_order, || {
                format!("{} applies {group:?} in the order {applied:?}", story.row.key)
            });
        }
    }
}

/// Places in the lane of what succeeded, in the order in which it was committed.
fn applied(story: &Story, group: &[ActionType]) -> Vec<u64> {
    let wanted: BTreeMap<_, _> =
        story.succeeded(group).into_iter().map(|action| (&action.action_id, action.session_seq)).collect();
    let settled = story.commits.iter().flat_map(|commit| commit.settled.iter());
    settled
        .filter(|settled| settled.outcome == ActionOutcome::Ok)
        .filter_map(|settled| wanted.get(&settled.action_id).copied())
        .collect()
}
