//! One owner at a time, proven from the steps themselves: in the journal of a shard no step comes under
//! an epoch that another one has followed, no step was committed twice, and for every term there is one
//! process that ran all that was committed in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Findings;
use crate::seen::Seen;
use crate::seen::journal::{Commits, Journal, Ran};

pub fn check(seen: &Seen, findings: &mut Findings) {
    let Some(journal) = &seen.journal else { return };
    let has_steps = seen.sessions.iter().any(|session| session.steps().next().is_some());
    findings.expect("journal unread", None, !has_steps || !journal.commits.is_empty(), || {
        "steps were taken, and none of them was seen in the journal".into()
    });
    terms(journal, findings);
    once(journal, findings);
    one_process(seen, journal, findings);
}

/// The commits of a term come before those of every later one.
fn terms(journal: &Journal, findings: &mut Findings) {
    let mut terms: BTreeMap<(u64, i64), (u64, u64)> = BTreeMap::new();
    for commits in &journal.commits {
        let (first, last) = terms.entry((commits.shard, commits.epoch)).or_insert((u64::MAX, 0));
        (*first, *last) = ((*first).min(commits.from_seq), (*last).max(commits.to_seq));
    }
    let mut before: BTreeMap<u64, (i64, u64)> = BTreeMap::new();
    for ((shard, epoch), (first, last)) in terms {
        let (earlier, end) = before.get(&shard).copied().unwrap_or((epoch, 0));
        findings.expect("committed out of term", None, first > end, || {
            format!("shard {shard}: place {end} is of epoch {earlier} or before, and place {first} of epoch {epoch}")
        });
        before.insert(shard, (epoch, end.max(last)));
    }
}

fn once(journal: &Journal, findings: &mut Findings) {
    let mut of: BTreeMap<&str, Vec<&Commits>> = BTreeMap::new();
    for commits in &journal.commits {
        of.entry(&commits.session).or_default().push(commits);
    }
    for (session, mut all) in of {
        all.sort_by_key(|commits| (commits.first, commits.last));
        for pair in all.windows(2) {
            findings.expect("step committed twice", Some(session), pair[0].last < pair[1].first, || {
                format!("{} and {}", told(pair[0]), told(pair[1]))
            });
        }
    }
}

fn told(commits: &Commits) -> String {
    let Commits { shard, epoch, first, last, from_seq, .. } = commits;
    format!("steps {first} to {last} were committed under epoch {epoch} of shard {shard}, from place {from_seq} on")
}

/// A worker notes a step before it runs it, so whoever committed one is among those that noted it. A step
/// that failed may be a session's last word instead, which nobody ran.
fn one_process(seen: &Seen, journal: &Journal, findings: &mut Findings) {
    let mut ran: HashMap<&str, Vec<&Ran>> = HashMap::new();
    for steps in &journal.ran {
        ran.entry(&steps.session).or_default().push(steps);
    }
    // By place; a history with a gap is another finding.
    let went_well: HashMap<&str, Vec<bool>> = seen
        .sessions
        .iter()
        .map(|session| (session.id.as_str(), session.steps().map(|step| step.status == "ok").collect()))
        .collect();
    let mut owners: BTreeMap<(u64, i64), BTreeSet<&str>> = BTreeMap::new();
    for commits in &journal.commits {
        let session = commits.session.as_str();
        let (Some(went_well), runs) = (went_well.get(session), ran.get(session)) else { continue };
        for iteration in commits.first..=commits.last {
            let place = usize::try_from(iteration).ok();
            if place.and_then(|place| went_well.get(place)) != Some(&true) {
                continue;
            }
            let runs = runs.into_iter().flatten().filter(|steps| (steps.first..=steps.last).contains(&iteration));
            let by: BTreeSet<&str> = runs.map(|steps| steps.process.as_str()).collect();
            if by.is_empty() {
                let what = format!("step {iteration} was committed, and no process has run it");
                findings.add("step from nowhere", Some(session), what);
                continue;
            }
            let owner = owners.entry((commits.shard, commits.epoch)).or_insert_with(|| by.clone());
            let both: BTreeSet<&str> = owner.intersection(&by).copied().collect();
            findings.expect("committed by two processes", Some(session), !both.is_empty(), || {
                let term = format!("epoch {} of shard {}", commits.epoch, commits.shard);
                format!("step {iteration} was run by {by:?}, and what came before it in {term} by {owner:?}")
            });
            *owner = if both.is_empty() { by } else { both };
        }
    }
}
