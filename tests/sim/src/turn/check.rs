//! What must hold whatever the crash did: the invariants of every session, the promises of tools, and that
//! models are asked for nothing that is recorded.

use std::collections::BTreeMap;

use domain::converse::message_id;
use domain::ports::{ActionCall, Ledger, News, OperationQuery, Operations};
use domain::tool::result_id;
use schemas::conversation::{LogKind, Message, Operation, OperationKind, OperationState};
use schemas::definition::EffectClass;
use schemas::id::{Namespace, OperationId};
use serde_json::Value;
use testkit::contract::words::{operation_query, turn_id};

use super::place::Place;
use super::script::is_summary;
use super::{Drilled, Ended, TAIL};
use crate::clients::Book;
use crate::oracle;

/// Fails unless all of it holds; answers what was done more than once, or left in doubt.
pub async fn check(ended: &Ended) -> Drilled {
    let Ended { place, at, .. } = ended;
    let broken = oracle::check(&place.world, &Book::default());
    assert!(broken.is_empty(), "{at}: {broken:?}\n{}", place.world.trace.tail(TAIL).join("\n"));
    let asked_again = asked(ended);
    let (run_again, in_doubt) = tools(ended).await;
    let failures = place.turn().await.issues.tool_failures as usize;
    let expected = place.script.refused + in_doubt;
    assert_eq!(failures, expected, "{at}: what is refused or in doubt is told, and nothing else failed");
    Drilled { asked_again, run_again, in_doubt, stages: ended.stage.into_iter().collect(), ..Drilled::default() }
}

/// Requests to models beyond the first of each move.
fn asked(ended: &Ended) -> usize {
    let Ended { place, crashed, at, .. } = ended;
    let objections = place.models.objections();
    assert!(objections.is_empty(), "{at}: {objections:?}");
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for call in place.models.asked() {
        *times.entry(call.id).or_default() += 1;
    }
    let again: usize = times.values().map(|times| times - 1).sum();
    // A crash cuts the requests that are under way, and those are made again.
    assert!(times.values().all(|times| *times <= 1 + usize::from(*crashed)), "{at}: {times:?}");
    assert!(again <= place.script.at_once * usize::from(*crashed), "{at}: {again} were made again: {times:?}");
    streamed(ended);
    again
}

/// Each attempt at a reply has a number of its own, above those before it: so listeners know which one counts.
fn streamed(ended: &Ended) {
    let Ended { place, at, .. } = ended;
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for call in place.models.asked().iter().filter(|call| !is_summary(call)) {
        let (turn, number) = call.id.rsplit_once('.').expect("a turn and a number");
        let number = number.parse().expect("a number");
        *asked.entry(message_id(&turn_id(turn), number).to_string()).or_default() += 1;
    }
    let mut told: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (_, news) in place.world.live.told() {
        if let News::Delta { message_id, attempt, .. } = news {
            told.entry(message_id.to_string()).or_default().push(attempt);
        }
    }
    assert!(told.values().all(|attempts| attempts.windows(2).all(|pair| pair[0] < pair[1])), "{at}: {told:?}");
    let attempts: BTreeMap<String, usize> = told.into_iter().map(|(id, attempts)| (id, attempts.len())).collect();
    assert_eq!(attempts, asked, "{at}: each of them is heard");
}

/// Attempts beyond the first of each call, and calls in doubt.
async fn tools(ended: &Ended) -> (usize, usize) {
    let Ended { place, crashed, at, .. } = ended;
    let mut runs = runs(place, at);
    let query = OperationQuery { kind: Some(OperationKind::Task), ..operation_query() };
    let rows = place.world.store.operations(&query).await.expect("no faults are scripted");
    let (mut run_again, mut in_doubt) = (0, 0);
    for row in rows {
        let operation = row.operation;
        let count = runs.remove(&operation.operation_id).unwrap_or(0);
        let is_done = operation.state == OperationState::Completed;
        let told = format!("{at}: {} ran {count} times and is {:?}", operation.tool, operation.state);
        if operation.effect_class == EffectClass::AtMostOnce {
            assert!(count <= 1 && (is_done || *crashed) && (count == 1 || !is_done), "{told}");
            if !is_done {
                let result = result_of(place, &operation).await;
                let error = result["error"]["message"].as_str().unwrap_or_default();
                assert!(error.contains("in doubt"), "{told}: {result}");
            }
            in_doubt += usize::from(!is_done);
        } else {
            assert!(is_done && (1..=1 + usize::from(*crashed)).contains(&count), "{told}");
            run_again += count - 1;
        }
    }
    assert!(runs.is_empty(), "{at}: there are no operations of {runs:?}");
    (run_again, in_doubt)
}

/// How often each operation reached its tool. A repeat has the key and the request of the first attempt, and
/// says that it is none.
fn runs(place: &Place, at: &str) -> BTreeMap<OperationId, usize> {
    let mut by_key: BTreeMap<OperationId, Vec<ActionCall>> = BTreeMap::new();
    for call in place.tools.performed() {
        by_key.entry(call.operation_id.clone()).or_default().push(call);
    }
    for calls in by_key.values() {
        for pair in calls.windows(2) {
            let (first, again) = (&pair[0], &pair[1]);
            assert_eq!(first.request, again.request, "{at}: {} is repeated otherwise", first.operation_id);
            assert!(first.attempt < again.attempt, "{at}: {} does not say that it is repeated", first.operation_id);
        }
    }
    by_key.into_iter().map(|(id, calls)| (id, calls.len())).collect()
}

/// The payload by which the turn learnt of an operation's end.
async fn result_of(place: &Place, operation: &Operation) -> Value {
    let id = result_id(&operation.operation_id);
    let found = place.world.store.action(&Namespace::default_ns(), &id).await.expect("no faults are scripted");
    found.map_or(Value::Null, |view| view.payload.to_value())
}

/// Who said what in the conversation, in the order of the log.
pub async fn said(place: &Place) -> Vec<String> {
    let rows = place.log().await;
    let messages = rows.iter().filter(|row| row.record.kind == LogKind::Message);
    let told = messages.map(|row| {
        let message: Message = row.record.body.to().expect("a message");
        let agent = message.agent_id.map(|agent| agent.to_string());
        let who = agent.or(message.name).unwrap_or_else(|| "user".to_owned());
        format!("{who}: {}", message.text.unwrap_or_default())
    });
    told.collect()
}

/// What a model was shown for a move; nothing if it was not asked.
pub fn shown(place: &Place, id: &str) -> String {
    let asked = place.models.asked();
    asked.iter().rfind(|call| call.id == id).map(|call| place.script.words(call)).unwrap_or_default()
}
