//! Traces, as a collector of OpenTelemetry gets them.

pub mod collector;

use serde_json::json;

use self::collector::Collector;
use crate::harness::{Harness, wait};

/// The ids of action `a1` of the default namespace: XXH3 of `default/a1`, of 128 and of 64 bits.
const TRACE: u128 = 0xa8ca_887f_b236_acc1_f03b_29c9_c67f_3df9;
const ROOT: u64 = 0x83a4_2994_81c7_fe4c;

#[tokio::test]
async fn the_stages_of_an_action_are_spans_of_one_trace() {
    let collector = Collector::start();
    let mut fleet = Harness::start_in(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)]).await;
    let body = json!({ "type": "create", "action_id": "a1", "session_id": "s1",
        "payload": { "moniker": "count", "config": { "until": 2 } } });
    let answer = fleet.try_request(reqwest::Method::POST, "/api/actions", Some(&body)).await.expect("an answer");
    assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
    fleet.wait_status("s1", "completed").await;
    let spans = wait("both ends of the trace", || async {
        let spans = collector.told_of("a1");
        // No delivery, if the shard's owner found the action in the ledger before its lane was open.
        let are_there =
            ["accept action", "apply action"].iter().all(|name| spans.iter().any(|span| span.name == *name));
        are_there.then_some(spans)
    })
    .await;
    let workers = fleet.get("/api/workers").await;
    for span in &spans {
        let place = if span.name == "accept action" { (ROOT, 0) } else { (span.id, ROOT) };
        assert_eq!((span.trace, (span.id, span.parent)), (TRACE, place), "{span:?}");
        assert_eq!(span.roles, "gateway,runner,executor,archivist", "{span:?}");
        // The name by which operators know the process.
        assert_eq!(json!(span.instance), workers[0]["worker_id"], "{workers}");
    }
    assert!(fleet.stop().await.success());
}
