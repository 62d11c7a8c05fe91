//! What a session has done since its last commit was taken.

use std::sync::Arc;

use schemas::action::NewAction;
use schemas::conversation::{LogKind, Talk};
use schemas::event::{EventKind, EventRecord};
use schemas::id::{ActionId, AgentId, ConversationId, Epoch, SessionKey, Shard, TurnId};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::record::{Entry, StepRecord};
use schemas::session::Head;

use crate::commit::{Commit, Settled};
use crate::effect::EffectRow;

#[derive(Debug)]
pub struct Unsaved {
    /// The head as the last taken commit leaves it: the guard of the next.
    base: Head,
    steps: Vec<StepRecord>,
    events: Vec<EventRecord>,
    settled: Vec<Settled>,
    effects: Vec<EffectRow>,
    talk: Talk,
    follow_ups: Vec<NewAction>,
    bytes: usize,
}

impl Unsaved {
    pub fn after(head: &Head) -> Self {
        Self {
            base: head.clone(),
            steps: Vec::new(),
            events: Vec::new(),
            settled: Vec::new(),
            effects: Vec::new(),
            talk: Talk::default(),
            follow_ups: Vec::new(),
            bytes: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
            && self.events.is_empty()
            && self.settled.is_empty()
            && self.effects.is_empty()
            && self.follow_ups.is_empty()
            && self.talk.is_empty()
    }

    /// Whether the head has moved in a way that others must see although nothing else happened.
    pub(super) fn head_differs(&self, head: &Head) -> bool {
        self.base.status != head.status || self.base.cause != head.cause || self.base.wake_at_ms != head.wake_at_ms
    }

    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Whether the conversation is as if all this were saved, for whoever makes a context for this turn:
    /// of the turn itself nothing is read, and of events neither.
    pub(super) fn only_begins(&self, turn: &TurnId) -> bool {
        self.talk.log.iter().all(|record| record.kind == LogKind::Event)
            && self.talk.turns.iter().all(|known| known.turn_id == *turn)
            && self.talk.operations.is_empty()
    }

    /// Rough size of the steps, for the run-ahead bound.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn step(&mut self, step: StepRecord) {
        self.bytes += step.state.as_str().len()
            + step.text.as_ref().map_or(0, String::len)
            + step.data.as_ref().map_or(0, |data| data.as_str().len());
        self.steps.push(step);
    }

    pub(super) fn event(&mut self, offset: u64, at_ms: i64, kind: EventKind, data: Json) {
        self.events.push(EventRecord { offset, at_ms, kind, data });
    }

    pub(super) fn settle_ok(&mut self, action_id: ActionId) {
        self.settled.push(Settled::ok(action_id));
    }

    pub(super) fn refuse(&mut self, action_id: ActionId, code: Code, message: String) {
        self.settled.push(Settled::rejected(action_id, code, message));
    }

    /// A row of the effects ledger goes with the next commit.
    pub fn effect(&mut self, row: EffectRow) {
        self.effects.push(row);
    }

    /// What a step adds to its conversation, and the actions it causes.
    pub(super) fn talk(&mut self, talk: Talk, follow_ups: Vec<NewAction>) {
        self.bytes += talk.log.iter().map(|record| record.body.as_str().len()).sum::<usize>();
        self.talk.log.extend(talk.log);
        // Of one turn only the newest row counts; operations keep their order.
        for turn in talk.turns {
            self.talk.turns.retain(|known| known.turn_id != turn.turn_id);
            self.talk.turns.push(turn);
        }
        self.talk.operations.extend(talk.operations);
        self.follow_ups.extend(follow_ups);
    }

    pub(super) fn into_commit(
        self,
        (key, shard, epoch): (SessionKey, Shard, Epoch),
        (agent_id, moniker, conversation_id): (AgentId, String, Option<ConversationId>),
        head: Head,
        state: Json,
    ) -> Commit {
        let entry = Entry { agent_id, moniker, conversation_id, head, state, steps: self.steps, events: self.events };
        Commit {
            key,
            shard,
            epoch,
            expect_steps: self.base.steps,
            expect_offset: self.base.next_offset,
            entry: Arc::new(entry),
            settled: self.settled,
            follow_ups: self.follow_ups,
            effects: self.effects,
            talk: self.talk,
        }
    }
}
