//! The union of journal and archive against a plain model, for any overlap of the two.

use proptest::prelude::*;
use schemas::frame::StepToken;
use schemas::id::{AgentId, Namespace, SessionId, SessionKey};
use schemas::json::Json;
use schemas::record::{StepRecord, StepStatus, StoredStep};

use super::StreamItem;
use super::merge::{Best, union_items, union_steps};
use crate::ports::{EventRow, StepPlace, StepQuery};

fn stored(session: u64, iteration: u64, created_at_ms: i64, status: StepStatus) -> StoredStep {
    let session_id = SessionId::parse(&format!("s{session}")).unwrap();
    StoredStep {
        key: SessionKey::new(Namespace::default_ns(), session_id),
        agent_id: AgentId::parse("a").unwrap(),
        conversation_id: None,
        step: StepRecord {
            iteration,
            offset: iteration + 2,
            created_at_ms,
            turn_id: None,
            step_token: StepToken::start(),
            next_step_token: StepToken::start(),
            status,
            text: None,
            data: None,
            state: Json::of(&iteration),
            guidance: None,
            notes: None,
            latency_ms: 0,
            error: None,
        },
    }
}

/// Steps of a few sessions, and for each session where its journal begins and its archive ends;
/// the two always overlap or meet.
fn history() -> impl Strategy<Value = Vec<(StoredStep, bool, bool)>> {
    let session = (0u64..12, 0u64..12, 0u64..12, prop::collection::vec((0i64..4, 0u8..3), 12));
    prop::collection::vec(session, 1..4).prop_map(|sessions| {
        let mut all = Vec::new();
        for (number, (steps, a, b, details)) in sessions.into_iter().enumerate() {
            let (from, to) = (a.min(b), a.max(b));
            let mut created = 0;
            for (iteration, (later, status)) in (0..steps).zip(details) {
                created += later;
                let status = [StepStatus::Ok, StepStatus::Error, StepStatus::Info][usize::from(status)];
                let step = stored(number as u64, iteration, created, status);
                all.push((step, iteration >= from, iteration < to));
            }
        }
        all
    })
}

fn query() -> impl Strategy<Value = StepQuery> {
    let range = (prop::option::of(0u64..12), prop::option::of(0u64..12), prop::option::of(0i64..30));
    let place = prop::option::of((0u64..12, 0i64..30, 0u64..4));
    (range, place, any::<bool>(), any::<bool>(), prop::option::of(0u64..4), 0u8..4).prop_map(
        |((min_iteration, max_iteration, since_ms), place, by_time, descending, session, status)| StepQuery {
            namespace: Some(Namespace::default_ns()),
            session: session.map(|s| stored(s, 0, 0, StepStatus::Ok).key),
            agent_id: None,
            min_iteration,
            max_iteration,
            since_ms,
            status: [None, Some(StepStatus::Ok), Some(StepStatus::Error), None][usize::from(status)],
            after: place.map(|(iteration, created_at_ms, session)| StepPlace {
                iteration,
                created_at_ms,
                session_id: SessionId::parse(&format!("s{session}")).unwrap(),
            }),
            by_time,
            descending,
            offset: 0,
            limit: 0,
        },
    )
}

proptest! {
    #[test]
    fn union_is_what_one_store_would_answer(
        history in history(), query in query(), offset in 0usize..6, limit in 1usize..8,
    ) {
        let first = |pick: fn(&(StoredStep, bool, bool)) -> bool| {
            let mut best = Best::new(&query, offset + limit);
            for row in history.iter().filter(|row| pick(row)) {
                best.offer(row.0.clone()).unwrap();
            }
            best.finish()
        };
        let union = union_steps(&query, first(|row| row.1), first(|row| row.2));
        let page: Vec<_> = union.into_iter().skip(offset).take(limit).collect();

        let mut model: Vec<_> = history.iter().filter(|row| row.1 || row.2).map(|row| row.0.clone()).collect();
        model.retain(|step| query.matches(step));
        model.sort_by(|a, b| query.compare(a, b));
        let model: Vec<_> = model.into_iter().skip(offset).take(limit).collect();
        prop_assert_eq!(page, model);
    }

    #[test]
    fn pages_by_cursor_visit_everything_once(history in history(), mut query in query(), limit in 1usize..5) {
        query.after = None;
        let all: Vec<_> = history.into_iter().map(|row| row.0).filter(|step| query.matches(step)).collect();
        let mut seen = Vec::new();
        loop {
            let mut best = Best::new(&query, limit);
            all.iter().for_each(|step| best.offer(step.clone()).unwrap());
            let page = best.finish();
            let Some(last) = page.last() else { break };
            let place = StepPlace::of(last);
            prop_assert_eq!(place.to_string().parse::<StepPlace>(), Ok(place.clone()));
            query.after = Some(place);
            seen.extend(page);
        }
        prop_assert_eq!(seen.len(), all.len());
        prop_assert!(seen.windows(2).all(|pair| query.compare(&pair[0], &pair[1]).is_lt()));
    }

    #[test]
    fn stream_has_no_gap_and_no_repeat(
        journal in prop::collection::vec(1u64..12, 0..12),
        archive in prop::collection::vec(1u64..12, 0..12),
        after in 0u64..6,
        limit in 1usize..8,
    ) {
        let item = |offset: u64, step: bool| match step {
            true => {
                let mut stored = stored(0, 0, 0, StepStatus::Ok);
                stored.step.offset = offset;
                StreamItem::Step(stored)
            }
            false => StreamItem::Event(EventRow {
                key: stored(0, 0, 0, StepStatus::Ok).key,
                event: schemas::event::EventRecord {
                    offset,
                    at_ms: 0,
                    kind: schemas::event::EventKind::Status,
                    data: Json::null(),
                },
            }),
        };
        let both = journal.iter().map(|o| item(*o, true)).chain(archive.iter().map(|o| item(*o, false)));
        let (page, gap) = union_items(after, limit, both);
        let expected: Vec<u64> = (after + 1..)
            .take(limit)
            .take_while(|o| journal.contains(o) || archive.contains(o))
            .collect();
        prop_assert_eq!(page.iter().map(StreamItem::offset).collect::<Vec<_>>(), expected.clone());
        // The journal's twin wins.
        prop_assert!(page.iter().all(|i| matches!(i, StreamItem::Step(_)) == journal.contains(&i.offset())));
        let beyond = journal.iter().chain(&archive).any(|o| *o > after + expected.len() as u64);
        prop_assert_eq!(gap, beyond && expected.len() < limit);
    }
}

#[test]
fn what_is_no_cursor_is_refused() {
    for text in ["", "1", "1~2", "1~2~", "x~2~s", "1~2~a b", "-1~2~s"] {
        assert!(text.parse::<StepPlace>().is_err(), "{text}");
    }
}

#[test]
fn too_many_bytes_are_refused_and_not_held() {
    let query = StepQuery::default();
    let mut best = Best::new(&query, 100);
    let mut heavy = stored(0, 0, 0, StepStatus::Ok);
    heavy.step.text = Some("x".repeat(schemas::limits::PAGE_BYTES_MAX / 4));
    let mut refused = None;
    for iteration in 0..20 {
        heavy.step.iteration = iteration;
        if let Err(failure) = best.offer(heavy.clone()) {
            refused = Some(failure.code);
            break;
        }
    }
    assert_eq!(refused, Some(schemas::problem::Code::TooLarge));
}
