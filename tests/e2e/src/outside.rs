//! The archive as any LanceDB client sees it: opened by path, without our code.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use futures::TryStreamExt;
use lancedb::query::{ExecutableQuery, QueryBase, Select};

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

/// Fails unless every session has the iterations 0 … n-1 once each, and one snapshot.
pub async fn assert_gapless(history: &Path) {
    let steps = iterations(history).await;
    assert!(!steps.is_empty(), "the archive is empty");
    for (session, found) in &steps {
        let expected: Vec<i64> = (0..found.len() as i64).collect();
        assert_eq!(found, &expected, "iterations of {session} in LanceDB");
    }
    for (session, count) in snapshots(history).await {
        assert_eq!(count, 1, "snapshots of {session} in LanceDB");
    }
}
