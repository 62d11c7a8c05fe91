//! The trace of an action goes through the processes that it goes through.

use serde_json::json;

use super::{Fleet, SHARDS};
use crate::harness::wait;
use crate::traces::collector::{Collector, Span};

const ACCEPT: &str = "accept action";
const PUBLISH: &str = "publish action";
const DELIVER: &str = "deliver action";
const APPLY: &str = "apply action";
/// An owner that found an action in the ledger before it came was not delivered it; not so each time.
const INPUTS: usize = 5;

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn a_trace_leads_from_a_gateway_over_the_broker_to_a_commit_of_a_worker() {
    let collector = Collector::start();
    let mut fleet = Fleet::plan();
    fleet.set("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    fleet.migrate(SHARDS).await;
    fleet.up().await;
    fleet.here().create("s1", json!({ "moniker": "echo" })).await;
    fleet.here().wait_status("s1", "running").await;
    let mut delivered = 0;
    for number in 0..INPUTS {
        let (action, at) = (format!("a{number}"), number % fleet.gateways.len());
        let input = json!({ "type": "input", "action_id": action, "session_id": "s1", "payload": { "text": action } });
        fleet.clients[at].act(input).await;
        let spans = wait("the trace", || async {
            let spans = collector.told_of(&action);
            // What a worker tells comes in order: with the commit, the delivery is there, or there was none.
            [ACCEPT, PUBLISH, APPLY].iter().all(|name| of(&spans, name).is_some()).then_some(spans)
        })
        .await;
        delivered += usize::from(assert_whole(&fleet, at, &spans));
    }
    assert!(delivered > 0, "none of {INPUTS} inputs was delivered");
    fleet.down().await;
}

fn of<'s>(spans: &'s [Span], name: &str) -> Option<&'s Span> {
    spans.iter().find(|span| span.name == name)
}

/// Each span is where it belongs: in the one trace, below the acceptance, from the process that did it, after
/// what it came from. Answers whether there is a delivery.
fn assert_whole(fleet: &Fleet, gateway: usize, spans: &[Span]) -> bool {
    let root = of(spans, ACCEPT).expect("an acceptance");
    assert_eq!(root.parent, 0, "{root:?}");
    for name in [ACCEPT, APPLY] {
        assert_eq!(spans.iter().filter(|span| span.name == name).count(), 1, "{name} happens once: {spans:?}");
    }
    let worker = of(spans, APPLY).expect("a commit").pid;
    assert!(fleet.workers.iter().any(|one| u64::from(one.pid()) == worker), "{spans:?}");
    for span in spans {
        assert_eq!(span.trace, root.trace, "{span:?}");
        assert!(span.begun >= root.begun && span.ended >= span.begun, "{span:?} after {root:?}");
        assert_eq!(spans.iter().filter(|other| other.id == span.id).count(), 1, "ids are apart: {spans:?}");
        if span.name != ACCEPT {
            assert_eq!(span.parent, root.id, "{span:?} below {root:?}");
        }
        let (by, roles) = match span.name.as_str() {
            ACCEPT | PUBLISH => (u64::from(fleet.gateways[gateway].pid()), "gateway"),
            DELIVER | APPLY => (worker, "runner,executor,archivist"),
            other => panic!("{other} is no stage of an action"),
        };
        assert_eq!((span.pid, span.roles.as_str()), (by, roles), "{span:?}");
        assert_eq!(span.instance == root.instance, span.pid == root.pid, "{span:?} and {root:?}");
    }
    let Some(delivery) = of(spans, DELIVER) else { return false };
    let commit = of(spans, APPLY).expect("a commit");
    assert!(delivery.begun <= commit.ended, "{delivery:?} before {commit:?}");
    true
}
