//! The history of each session as its commits tell it, with the actions that were meant for it.

use std::collections::BTreeMap;

use schemas::action::{Action, ActionOutcome, ActionType};
use schemas::event::EventRecord;
use schemas::id::SessionKey;
use schemas::record::StepRecord;
use schemas::session::SessionRow;
use testkit::fake::store::{ActionRec, Committed};

use crate::world::World;

pub struct Story {
    pub row: SessionRow,
    /// In commit order.
    pub commits: Vec<Committed>,
    /// Everything accepted for the session, in no order.
    pub actions: Vec<ActionRec>,
}

/// A step or an event.
#[derive(Clone, Copy)]
pub enum Item<'s> {
    Step(&'s StepRecord),
    Event(&'s EventRecord),
}

impl Item<'_> {
    pub fn offset(&self) -> u64 {
        match self {
            Item::Step(step) => step.offset,
            Item::Event(event) => event.offset,
        }
    }
}

impl Story {
    pub fn steps(&self) -> impl Iterator<Item = &StepRecord> {
        self.commits.iter().flat_map(|commit| commit.entry.steps.iter())
    }

    /// In offset order.
    pub fn items(&self) -> Vec<Item<'_>> {
        let entries = self.commits.iter().map(|commit| &commit.entry);
        let mut items: Vec<Item<'_>> = entries
            .flat_map(|entry| entry.steps.iter().map(Item::Step).chain(entry.events.iter().map(Item::Event)))
            .collect();
        items.sort_by_key(Item::offset);
        items
    }

    /// Actions of these kinds that succeeded, in the order of their lane.
    pub fn succeeded(&self, kinds: &[ActionType]) -> Vec<&Action> {
        let mut found: Vec<&Action> = self
            .actions
            .iter()
            .filter(|rec| kinds.contains(&rec.kind) && rec.outcome == Some(ActionOutcome::Ok))
            .filter_map(|rec| rec.action.as_ref())
            .filter(|action| action.session_seq > 0)
            .collect();
        found.sort_by_key(|action| action.session_seq);
        found
    }
}

pub struct Stories(pub Vec<Story>);

impl Stories {
    pub fn of(world: &World) -> Self {
        let mut by_key: BTreeMap<SessionKey, Story> = world
            .store
            .all_sessions()
            .into_iter()
            .map(|row| (row.key.clone(), Story { row, commits: Vec::new(), actions: Vec::new() }))
            .collect();
        for commit in world.store.commit_log() {
            if let Some(story) = by_key.get_mut(&commit.key) {
                story.commits.push(commit);
            }
        }
        for rec in world.store.all_actions() {
            let key = rec.action.as_ref().map(Action::key);
            if let Some(story) = key.and_then(|key| by_key.get_mut(&key)) {
                story.actions.push(rec);
            }
        }
        Self(by_key.into_values().collect())
    }
}
