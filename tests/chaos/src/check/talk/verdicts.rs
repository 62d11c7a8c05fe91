//! What needs a yes is done after one, and not without: a question comes before the work whose id it
//! begins with.

use std::collections::BTreeSet;

use super::super::Findings;
use super::turns_of;
use crate::seen::Seen;

/// Ends the id of a question about the operation before it.
const ASK: &str = ".ask";

pub fn check(seen: &Seen, findings: &mut Findings) {
    let called: BTreeSet<&str> = seen.tools.iter().filter_map(|call| Some(call.key.split_once(':')?.1)).collect();
    let mut asked: BTreeSet<&str> = BTreeSet::new();
    for (talk, turn) in turns_of(seen) {
        let known: BTreeSet<&str> = turn.operations.iter().map(|operation| operation.id.as_str()).collect();
        let questions = turn.operations.iter().filter(|operation| operation.is_question);
        for question in questions.map(|operation| operation.id.as_str()) {
            let Some(work) = question.strip_suffix(ASK) else { continue };
            asked.insert(question);
            let verdict = seen.verdicts.get(question);
            let is_yes = verdict.is_some_and(|verdict| verdict.approved);
            findings.expect("done without a yes", Some(&talk.id), is_yes || !called.contains(work), || {
                format!("{work} was done, and what a person said of it is {verdict:?}")
            });
            let is_heard = is_yes && verdict.is_some_and(|verdict| verdict.heard) && turn.status == "completed";
            findings.expect("yes lost", Some(&talk.id), !is_heard || known.contains(work), || {
                format!("{work} was approved, and turn {} is completed without it", turn.id)
            });
        }
    }
    for question in seen.verdicts.keys().filter(|question| !asked.contains(question.as_str())) {
        findings.add("question from nowhere", None, format!("{question} was answered, and no turn has asked it"));
    }
}
