//! Reading steps: filters, order, limits, on journal and archive as one.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Harness, assert_chain};

async fn iterations(fleet: &Harness, query: &str) -> Vec<u64> {
    let page = fleet.get(&format!("/api/agent-steps?{query}")).await;
    page["items"].as_array().unwrap().iter().map(|step| step["iteration"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn s34_filters_order_and_limits_combine() {
    let fleet = Harness::start().await;
    fleet.create("s34", json!({ "moniker": "count", "config": { "until": 30 } })).await;
    fleet.wait_status("s34", "completed").await;
    // The same answers from the journal, and from LanceDB once the journal has them no more.
    check_reads(&fleet).await;
    fleet.wait_archived().await;
    wait_trimmed(&fleet).await;
    check_reads(&fleet).await;
    let steps = fleet.steps("s34").await;
    assert_chain(&steps);
    let since = steps[10]["created_at"].as_str().unwrap();
    let later: Vec<&Value> = steps.iter().filter(|step| step["created_at"].as_str().unwrap() >= since).collect();
    assert_eq!(iterations(&fleet, &format!("session_id=s34&since={since}")).await.len(), later.len());
}

/// The journal in the store's file, as any other program sees it; polled there, as each look would be a
/// process of its own.
const UNTIL_TRIMMED: &str = r#"
import sqlite3, sys, time
ledger = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
end = time.monotonic() + 60
while ledger.execute("SELECT count(*) FROM journal").fetchone()[0] > 0:
    assert time.monotonic() < end, "the journal is never trimmed"
    time.sleep(0.2)
"#;

/// Waits until the journal has no row any more: archived rows stay for their grace.
async fn wait_trimmed(fleet: &Harness) {
    let mut look = Command::new("/usr/bin/python3");
    look.args(["-c", UNTIL_TRIMMED]).arg(fleet.data_dir.join("ledger.db"));
    let looked =
        tokio::task::spawn_blocking(move || look.output()).await.expect("a thread").expect("python3 is installed");
    assert!(looked.status.success(), "{}", String::from_utf8_lossy(&looked.stderr));
}

async fn check_reads(fleet: &Harness) {
    let all: Vec<u64> = (0..30).collect();
    assert_eq!(iterations(fleet, "session_id=s34").await, all);
    assert_eq!(iterations(fleet, "agent_id=agent-of-s34").await, all);
    assert_eq!(iterations(fleet, "session_id=s34&min_iteration=5&max_iteration=8").await, [5, 6, 7, 8]);
    assert_eq!(iterations(fleet, "session_id=s34&after_iteration=27").await, [28, 29]);
    assert_eq!(iterations(fleet, "session_id=s34&after_iteration=29").await, [0; 0]);
    assert_eq!(iterations(fleet, "session_id=s34&order=desc&limit=3").await, [29, 28, 27]);
    assert_eq!(iterations(fleet, "session_id=s34&limit=3&offset=4").await, [4, 5, 6]);
    assert_eq!(iterations(fleet, "session_id=s34&status=error").await, [0; 0]);
    assert_eq!(iterations(fleet, "session_id=s34&status=ok&min_iteration=28").await, [28, 29]);
    assert_eq!(iterations(fleet, "session_id=nobody").await, [0; 0]);
    let mut latest = iterations(fleet, "session_id=s34&latest=true&limit=4").await;
    latest.sort_unstable();
    assert_eq!(latest, [26, 27, 28, 29]);
}
