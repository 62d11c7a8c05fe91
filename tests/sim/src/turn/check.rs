//! What must hold whatever the crash did: the invariants of every session, the promises of tools, and that
//! models are asked for nothing that is recorded.

use std::collections::{BTreeMap, BTreeSet};

use domain::ports::{ActionCall, Conversations, Ledger, OperationQuery, Operations};
use domain::tool::result_id;
use schemas::conversation::{Operation, OperationKind, OperationState};
use schemas::definition::EffectClass;
use schemas::id::{Namespace, OperationId};
use serde_json::Value;
use testkit::contract::words::{operation_query, turn_id};

use super::place::Place;
use super::script::TURN;
use super::{Drilled, TAIL};
use crate::clients::Book;
use crate::oracle;

/// Fails unless all of it holds; answers what was done more than once, or left in doubt. `is_cut`: a process
/// crashed before the turn was over.
pub async fn check(place: &Place, is_cut: bool, at: &str) -> Drilled {
    let broken = oracle::check(&place.world, &Book::default());
    assert!(broken.is_empty(), "{at}: {broken:?}\n{}", place.world.trace.tail(TAIL).join("\n"));
    let asked_again = asked(place, is_cut, at);
    let (run_again, in_doubt) = tools(place, is_cut, at).await;
    let turn = place.world.store.turn(&Namespace::default_ns(), &turn_id(TURN)).await.expect("no faults are scripted");
    let failures = turn.map(|turn| turn.issues.tool_failures as usize);
    assert_eq!(failures, Some(in_doubt), "{at}: what is in doubt is told, and nothing else failed");
    Drilled { points: 0, asked_again, run_again, in_doubt }
}

/// Requests to models beyond the first of each move.
fn asked(place: &Place, is_cut: bool, at: &str) -> usize {
    let objections = place.models.objections();
    assert!(objections.is_empty(), "{at}: {objections:?}");
    let asked = place.models.asked();
    let moves: BTreeSet<&str> = asked.iter().map(|call| call.id.as_str()).collect();
    let again = asked.len() - moves.len();
    // Of the two turns one waits for the other: a crash cuts one request, and that is made again.
    assert!(again <= usize::from(is_cut), "{at}: {again} of the requests for {moves:?} were made again");
    again
}

/// Attempts beyond the first of each call, and calls in doubt.
async fn tools(place: &Place, is_cut: bool, at: &str) -> (usize, usize) {
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
            assert!(count <= 1 && (is_done || is_cut) && (count == 1 || !is_done), "{told}");
            if !is_done {
                let result = result_of(place, &operation).await;
                let error = result["error"]["message"].as_str().unwrap_or_default();
                assert!(error.contains("in doubt"), "{told}: {result}");
            }
            in_doubt += usize::from(!is_done);
        } else {
            assert!(is_done && (1..=1 + usize::from(is_cut)).contains(&count), "{told}");
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
