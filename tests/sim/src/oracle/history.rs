//! J1: journal and archive together have every committed row, once, as it was committed.

use std::collections::{BTreeMap, BTreeSet};

use domain::invariant::Invariant;
use schemas::event::EventRecord;
use schemas::id::SessionKey;
use schemas::record::StepRecord;

use super::Findings;
use super::story::{Stories, Story};
use crate::world::World;

/// One place's rows of a session by offset; a repeat within the place is a finding.
struct Rows<R>(BTreeMap<(SessionKey, u64), R>);

impl<R: PartialEq> Rows<R> {
    fn of(place: &str, rows: impl Iterator<Item = (SessionKey, u64, R)>, findings: &mut Findings) -> Self {
        let mut found = BTreeMap::new();
        for (key, offset, row) in rows {
            let again = found.insert((key.clone(), offset), row).is_some();
            findings.expect(Invariant::J1, !again, || format!("the {place} has offset {offset} of {key} twice"));
        }
        Self(found)
    }

    fn get(&self, key: &SessionKey, offset: u64) -> Option<&R> {
        self.0.get(&(key.clone(), offset))
    }
}

struct Places {
    journal_steps: Rows<StepRecord>,
    journal_events: Rows<EventRecord>,
    archive_steps: Rows<StepRecord>,
    archive_events: Rows<EventRecord>,
}

pub fn check(world: &World, stories: &Stories, findings: &mut Findings) {
    let journal = world.store.journal_rows();
    let steps = journal.iter().flat_map(|row| row.entry.steps.iter().map(|s| (row.key.clone(), s.offset, s.clone())));
    let events = journal.iter().flat_map(|row| row.entry.events.iter().map(|e| (row.key.clone(), e.offset, e.clone())));
    let archive_steps = world.archive.all_steps().into_iter().map(|row| (row.key, row.step.offset, row.step));
    let archive_events = world.archive.all_events().into_iter().map(|row| (row.key, row.event.offset, row.event));
    let places = Places {
        journal_steps: Rows::of("journal", steps, findings),
        journal_events: Rows::of("journal", events, findings),
        archive_steps: Rows::of("archive", archive_steps, findings),
        archive_events: Rows::of("archive", archive_events, findings),
    };
    for story in &stories.0 {
        complete(story, &places, findings);
        snapshot(world, story, findings);
    }
    nothing_else(stories, &places, findings);
}

/// Every committed row is in the journal or in the archive, and wherever it is, it is the same.
fn complete(story: &Story, places: &Places, findings: &mut Findings) {
    for step in story.steps() {
        let copies = [&places.journal_steps, &places.archive_steps].map(|rows| rows.get(&story.row.key, step.offset));
        one_of(story, step.offset, copies, step, findings);
    }
    for event in story.commits.iter().flat_map(|commit| commit.entry.events.iter()) {
        let copies =
            [&places.journal_events, &places.archive_events].map(|rows| rows.get(&story.row.key, event.offset));
        one_of(story, event.offset, copies, event, findings);
    }
}

fn one_of<R: PartialEq>(story: &Story, offset: u64, copies: [Option<&R>; 2], row: &R, findings: &mut Findings) {
    let key = &story.row.key;
    let there = copies.iter().any(Option::is_some);
    findings.expect(Invariant::J1, there, || format!("offset {offset} of {key} is in neither journal nor archive"));
    let same = copies.iter().flatten().all(|copy| *copy == row);
    findings.expect(Invariant::J1, same, || format!("offset {offset} of {key} is not what was committed"));
}

/// The state of the last commit is where a resume looks for it.
fn snapshot(world: &World, story: &Story, findings: &mut Findings) {
    let Some(last) = story.commits.last() else { return };
    let journal = world.store.journal_rows();
    let in_journal = journal.iter().rev().find(|row| row.key == story.row.key).map(|row| row.entry.state.clone());
    let archived = world.archive.all_snapshots().into_iter().find(|snapshot| snapshot.key == story.row.key);
    let newest = in_journal.or(archived.map(|snapshot| snapshot.state));
    findings.expect(Invariant::J1, newest.as_ref() == Some(&last.entry.state), || {
        format!("{} would resume with {newest:?}, not {:?}", story.row.key, last.entry.state)
    });
}

/// A row that no commit made is as bad as a lost one (S3).
fn nothing_else(stories: &Stories, places: &Places, findings: &mut Findings) {
    let committed: BTreeSet<(SessionKey, u64)> = stories
        .0
        .iter()
        .flat_map(|story| story.items().into_iter().map(|item| (story.row.key.clone(), item.offset())))
        .collect();
    let held = places.journal_steps.0.keys().chain(places.archive_steps.0.keys());
    let held = held.chain(places.journal_events.0.keys()).chain(places.archive_events.0.keys());
    for place in held {
        findings.expect(Invariant::S3, committed.contains(place), || format!("{place:?} was never committed"));
    }
}
