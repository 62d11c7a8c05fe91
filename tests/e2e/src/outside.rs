//! The archive as any LanceDB client sees it: opened by path, without our code.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use futures::TryStreamExt;
use lancedb::query::{ExecutableQuery, QueryBase, Select};

use crate::harness::Harness;

/// Per session, the iterations that table `agent_steps` has, in order.
pub async fn iterations(history: &Path) -> BTreeMap<String, Vec<i64>> {
    let connection =
        lancedb::connect(history.to_str().expect("a path of text")).execute().await.expect("the directory opens");
    let table = connection.open_table("agent_steps").execute().await.expect("the table opens");
    let query = table.query().select(Select::columns(&["session_id", "iteration"]));
    let batches: Vec<_> = query.execute().await.expect("a query").try_collect().await.expect("rows");
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for batch in batches {
        let sessions = batch["session_id"].as_string::<i32>();
        let iterations = batch["iteration"].as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            found.entry(sessions.value(row).to_owned()).or_default().push(iterations.value(row));
        }
    }
    found.values_mut().for_each(|iterations| iterations.sort_unstable());
    found
}

/// Number of snapshots per session in table `agent_state`.
pub async fn snapshots(history: &Path) -> BTreeMap<String, usize> {
    let connection =
        lancedb::connect(history.to_str().expect("a path of text")).execute().await.expect("the directory opens");
    let table = connection.open_table("agent_state").execute().await.expect("the table opens");
    let query = table.query().select(Select::columns(&["session_id"]));
    let batches: Vec<_> = query.execute().await.expect("a query").try_collect().await.expect("rows");
    let mut found = BTreeMap::new();
    for batch in batches {
        let sessions = batch["session_id"].as_string::<i32>();
        for row in 0..batch.num_rows() {
            *found.entry(sessions.value(row).to_owned()).or_default() += 1;
        }
    }
    found
}

/// How many steps each of the sessions has, as the registry says: it does not ask the archive.
pub async fn committed(fleet: &Harness, sessions: &[&str]) -> BTreeMap<String, u64> {
    let mut committed = BTreeMap::new();
    for session in sessions {
        let last = fleet.session(session).await["iteration"].as_u64();
        committed.insert((*session).to_owned(), last.map_or(0, |last| last + 1));
    }
    committed
}

/// Where the archive differs from what was committed: it must have the iterations 0 … n-1 of each
/// session once each, one snapshot of each session, and no other session.
pub async fn gaps(history: &Path, committed: &BTreeMap<String, u64>) -> Vec<String> {
    let (steps, states) = (iterations(history).await, snapshots(history).await);
    let mut gaps = Vec::new();
    for (session, count) in committed {
        let expected: Vec<i64> = (0..*count as i64).collect();
        let found = steps.get(session).cloned().unwrap_or_default();
        if found != expected {
            gaps.push(format!("{session} made {count} steps; LanceDB has the iterations {found:?}"));
        }
        let kept = states.get(session).copied().unwrap_or(0);
        if kept != 1 {
            gaps.push(format!("{session} has {kept} snapshots in LanceDB"));
        }
    }
    let strangers = steps.keys().chain(states.keys()).filter(|session| !committed.contains_key(*session));
    gaps.extend(strangers.map(|session| format!("{session} is in LanceDB, and nobody knows it")));
    gaps
}

/// Fails unless the archive has exactly what was committed.
pub async fn assert_gapless(history: &Path, committed: &BTreeMap<String, u64>) {
    assert!(committed.values().any(|steps| *steps > 0), "nothing is expected: {committed:?}");
    let gaps = gaps(history, committed).await;
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}
