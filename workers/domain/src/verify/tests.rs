//! The checker must find each kind of damage, and nothing in a sound history.

use schemas::event::{EventKind, EventRecord};
use schemas::frame::StepToken;
use schemas::id::{AgentId, Epoch, Namespace, SessionId, SessionKey};
use schemas::json::Json;
use schemas::record::{Snapshot, StepRecord, StepStatus, StoredStep};
use schemas::session::Head;

use super::check::Checker;
use crate::invariant::Invariant;
use crate::ports::EventRow;
use crate::read::StreamItem;

fn key() -> SessionKey {
    SessionKey::new(Namespace::default_ns(), SessionId::parse("s1").unwrap())
}

fn token(n: u64) -> StepToken {
    StepToken::parse(&format!("t{n}")).unwrap()
}

fn step(iteration: u64, offset: u64) -> StreamItem {
    StreamItem::Step(StoredStep {
        key: key(),
        agent_id: AgentId::parse("a").unwrap(),
        conversation_id: None,
        step: StepRecord {
            iteration,
            offset,
            created_at_ms: 0,
            turn_id: None,
            step_token: token(iteration),
            next_step_token: token(iteration + 1),
            status: StepStatus::Ok,
            text: None,
            data: None,
            state: Json::parse(format!("{{\"n\": {iteration}}}")).unwrap(),
            guidance: None,
            notes: None,
            latency_ms: 0,
            error: None,
        },
    })
}

fn event(offset: u64) -> StreamItem {
    let event = EventRecord { offset, at_ms: 0, kind: EventKind::Status, data: Json::null() };
    StreamItem::Event(EventRow { key: key(), event })
}

/// created, steps 0..n, status.
fn sound(steps: u64) -> (Vec<StreamItem>, Head, Snapshot) {
    let mut items = vec![event(1)];
    items.extend((0..steps).map(|n| step(n, n + 2)));
    items.push(event(steps + 2));
    let mut head = Head::starting(0);
    head.steps = steps;
    head.step_token = steps.checked_sub(1).map(token);
    head.next_step_token = token(steps);
    head.next_offset = steps + 3;
    head.epoch = Epoch(1);
    let snapshot = Snapshot {
        key: key(),
        agent_id: AgentId::parse("a").unwrap(),
        moniker: "count".into(),
        conversation_id: None,
        head: head.clone(),
        state: Json::of(&serde_json::json!({"n": steps.saturating_sub(1)})),
        result: None,
    };
    (items, head, snapshot)
}

fn broken(items: &[StreamItem], head: &Head, snapshot: Option<Snapshot>) -> Vec<Invariant> {
    let mut checker = Checker::new(key(), snapshot);
    items.iter().for_each(|item| checker.item(item));
    checker.finish(head).into_iter().map(|broken| broken.invariant).collect()
}

#[test]
fn a_sound_history_has_no_finding() {
    for steps in [0, 1, 7] {
        let (items, head, snapshot) = sound(steps);
        assert_eq!(broken(&items, &head, Some(snapshot)), []);
    }
    assert_eq!(broken(&[], &Head::starting(0), None), [], "an accepted session that never ran");
}

#[test]
fn history_may_be_newer_than_row_and_snapshot() {
    let (_, head, snapshot) = sound(3);
    let (mut items, ..) = sound(3);
    items.push(step(3, 6));
    assert_eq!(broken(&items, &head, Some(snapshot)), []);
}

#[test]
fn each_damage_is_found() {
    let (items, head, snapshot) = sound(5);
    for at in 0..items.len() {
        let mut lost = items.clone();
        lost.remove(at);
        assert!(broken(&lost, &head, Some(snapshot.clone())).contains(&Invariant::J1), "lost {at}");
        let mut doubled = items.clone();
        doubled.insert(at, items[at].clone());
        assert_eq!(broken(&doubled, &head, Some(snapshot.clone())), [Invariant::J1], "doubled {at}");
    }
    let edit = |at: usize, change: fn(&mut StepRecord)| {
        let mut edited = items.clone();
        if let StreamItem::Step(stored) = &mut edited[at] {
            change(&mut stored.step);
        }
        broken(&edited, &head, Some(snapshot.clone()))
    };
    assert_eq!(edit(2, |step| step.step_token = StepToken::start()), [Invariant::S4]);
    assert!(edit(2, |step| step.iteration = 4).contains(&Invariant::S2));
    assert_eq!(edit(5, |step| step.state = Json::null()), [Invariant::S3]);
    assert_eq!(edit(5, |step| step.next_step_token = StepToken::start()), [Invariant::S3]);
}

#[test]
fn snapshot_and_row_must_be_covered() {
    let (items, head, snapshot) = sound(3);
    assert_eq!(broken(&items, &head, None), [Invariant::J1], "no snapshot");
    let (_, _, old) = sound(2);
    assert_eq!(broken(&items, &head, Some(old)), [Invariant::J1], "an old snapshot");
    let (_, _, ahead) = sound(4);
    assert_eq!(broken(&items, &head, Some(ahead)), [Invariant::J1], "a snapshot of what is not there");
    let (_, more, _) = sound(4);
    assert!(broken(&items, &more, Some(snapshot)).contains(&Invariant::S3), "a row of what is not there");
}

#[test]
fn foreign_rows_are_found() {
    let (mut items, head, snapshot) = sound(1);
    if let StreamItem::Step(stored) = &mut items[1] {
        stored.key.namespace = Namespace::parse("other").unwrap();
    }
    assert!(broken(&items, &head, Some(snapshot)).contains(&Invariant::N1));
}
