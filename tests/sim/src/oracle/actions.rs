//! A1: an accepted action is applied exactly once, or rejected with a recorded outcome; and what
//! clients were told is so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::invariant::Invariant;
use schemas::action::ActionType;
use schemas::id::SessionKey;
use schemas::session::SessionStatus;
use testkit::fake::store::{ActionRec, Committed};

use super::Findings;
use crate::clients::{Book, Told};
use crate::world::World;

pub fn check(world: &World, book: &Book, findings: &mut Findings) {
    let actions = world.store.all_actions();
    told(book, &actions, findings);
    settled(world, &actions, findings);
    published(world, &actions, findings);
    numbered(world, &actions, findings);
}

fn told(book: &Book, actions: &[ActionRec], findings: &mut Findings) {
    let by_id: BTreeMap<_, _> = actions.iter().map(|rec| ((&rec.namespace, &rec.action_id), rec)).collect();
    for sent in book.entries() {
        let (action, told) = (&sent.action, &sent.told);
        let rec = by_id.get(&(&action.namespace, &action.action_id));
        let accepted = told.iter().filter(|told| **told == Told::Accepted).count();
        findings.expect(Invariant::A1, accepted <= 1, || format!("{} is accepted {accepted} times", action.action_id));
        let promised = told.iter().any(|told| matches!(told, Told::Accepted | Told::Repeated));
        let kept = rec.is_some_and(|rec| rec.asked.body_hash == action.body_hash && rec.action.is_some());
        findings.expect(Invariant::A1, !promised || kept, || {
            format!("{} was told to be accepted, and the ledger does not have it", action.action_id)
        });
    }
}

fn settled(world: &World, actions: &[ActionRec], findings: &mut Findings) {
    let mut by_commit = BTreeSet::new();
    let mut last: BTreeMap<SessionKey, Committed> = BTreeMap::new();
    for commit in world.store.commit_log() {
        let before = last.insert(commit.key.clone(), commit.clone());
        let fresh = commit.settled_again.is_empty() || is_echo(&commit, before.as_ref());
        findings.expect(Invariant::A1, fresh, || {
            let (key, again, entry) = (&commit.key, &commit.settled_again, &commit.entry);
            format!("a commit of {key} settles {again:?} again: {entry:?} after {before:?}")
        });
        for settled in &commit.settled {
            by_commit.insert((commit.key.namespace.clone(), settled.action_id.clone()));
        }
    }
    let statuses: BTreeMap<_, _> =
        world.store.all_sessions().into_iter().map(|row| (row.key.clone(), row.head.status)).collect();
    for rec in actions {
        let place = (rec.namespace.clone(), rec.action_id.clone());
        if rec.is_processed() {
            findings.expect(Invariant::A1, rec.outcome.is_some(), || format!("{} has no outcome", rec.action_id));
            let queued = rec.action.as_ref().is_some_and(|action| action.session_seq > 0);
            findings.expect(Invariant::A1, !queued || by_commit.contains(&place), || {
                format!("{} is processed without a commit", rec.action_id)
            });
            continue;
        }
        // Only a failed session keeps work and guidance, for a resume.
        let key = rec.action.as_ref().map(|action| action.key());
        let status = key.as_ref().and_then(|key| statuses.get(key));
        let waits = status == Some(&SessionStatus::Error)
            && matches!(rec.kind, ActionType::Input | ActionType::Interrupt | ActionType::ToolResult);
        findings.expect(Invariant::A1, waits, || {
            format!("{} ({:?}) of {key:?} is never processed; its session is {status:?}", rec.action_id, rec.kind)
        });
    }
}

/// A commit whose answer was lost is sent again. With a step or an event in it the guard notices;
/// without any, it says the same thing twice, and nothing depends on how often.
fn is_echo(commit: &Committed, before: Option<&Committed>) -> bool {
    let is_empty = commit.entry.steps.is_empty() && commit.entry.events.is_empty();
    is_empty && before.is_some_and(|before| Arc::ptr_eq(&before.entry, &commit.entry))
}

/// Whatever the queue ever carried had been accepted (invariant E1).
fn published(world: &World, actions: &[ActionRec], findings: &mut Findings) {
    let known: BTreeSet<_> =
        actions.iter().filter(|rec| rec.action.is_some()).map(|rec| (&rec.namespace, &rec.action_id)).collect();
    for action in world.queue.published() {
        findings.expect(Invariant::E1, known.contains(&(&action.namespace, &action.action_id)), || {
            format!("{} was published and is not in the ledger", action.action_id)
        });
    }
}

/// Each lane is numbered 1, 2, 3 …
fn numbered(world: &World, actions: &[ActionRec], findings: &mut Findings) {
    let mut lanes: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for action in actions.iter().filter_map(|rec| rec.action.as_ref()).filter(|action| action.session_seq > 0) {
        lanes.entry((action.key(), action.lane())).or_default().push(action.session_seq);
    }
    for (place, mut numbers) in lanes {
        numbers.sort_unstable();
        let gapless = numbers.iter().zip(1..).all(|(number, expected)| *number == expected);
        findings.expect(Invariant::A2, gapless, || format!("the lane {place:?} is numbered {numbers:?}"));
        findings
            .expect(Invariant::N1, world.store.steps_of(&place.0).is_some(), || format!("{place:?} has no session"));
    }
}
