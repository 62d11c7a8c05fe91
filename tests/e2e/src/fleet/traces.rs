//! The trace of an action goes through the processes that it goes through.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::json;

use super::commands::enqueue_on;
use super::{Fleet, SHARDS};
use crate::harness::wait;
use crate::talk::desk::{converse, definitions, ended, say, write_script};
use crate::traces::collector::{Collector, Span};

const ACCEPT: &str = "accept action";
const PUBLISH: &str = "publish action";
const DELIVER: &str = "deliver action";
const APPLY: &str = "apply action";
const GATEWAY: &str = "gateway";
const WORKER: &str = "runner,executor,archivist";
/// An owner that found an action in the ledger before it came was not delivered it; not so each time.
const INPUTS: usize = 5;

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn a_trace_leads_from_a_gateway_over_the_broker_to_a_commit_of_a_worker() {
    let collector = Collector::start();
    let mut fleet = Fleet::plan();
    fleet.set("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    let script = write_script(fleet.dir.path());
    fleet.set("STEPFLEET_SCRIPT", script.to_str().expect("a plain path"));
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
    let passed_by = pass_by_the_gateways(&fleet).await;
    // Whoever ends sends what it has.
    fleet.down().await;
    assert_rooted(&collector.traces(), &passed_by);
}

/// Lets workers accept what no gateway sees: the result of a tool, what agents tell each other, and what somebody
/// puts straight on the queue of a shard. Answers with the ids of the first and the last.
async fn pass_by_the_gateways(fleet: &Fleet) -> [String; 2] {
    let client = fleet.here();
    let answer = client.post("/api/definitions", &json!(definitions())).await;
    assert!(answer.status.is_success(), "{answer:?}");
    converse(client, "ctrace", &["ben"]).await;
    for text in ["use the tool", "delegate it"] {
        let turn = ended(client, &say(client, "ctrace", text).await).await;
        assert_eq!(turn["status"], "completed", "{turn}");
    }
    let page = client.get("/api/operations?conversation_id=ctrace&kind=task").await;
    let operation = page["items"][0]["operation_id"].as_str().expect("an operation");
    let straight =
        json!({ "type": "input", "action_id": "straight", "session_id": "s1", "payload": { "text": "straight" } });
    enqueue_on(&fleet.services, "stepfleet.shard.0.work", [straight.to_string().as_str()]);
    // It is not there before somebody has taken it.
    wait("it is applied", || async {
        let answer = client.try_request(Method::GET, "/api/actions/straight", None).await.ok()?;
        (answer.body["processed"] == true).then_some(())
    })
    .await;
    [format!("{operation}.result"), "straight".to_owned()]
}

/// Fails unless each trace begins with its acceptance, whoever accepted: workers did, of what passed by the gateways.
fn assert_rooted(traces: &BTreeMap<u128, Vec<Span>>, passed_by: &[String]) {
    let mut of_workers = Vec::new();
    for spans in traces.values() {
        let roots: Vec<&Span> = spans.iter().filter(|span| span.name == ACCEPT).collect();
        let [root] = roots[..] else { panic!("each action is accepted once: {spans:?}") };
        assert_eq!(root.parent, 0, "{root:?}");
        for span in spans.iter().filter(|span| span.name != ACCEPT) {
            assert!(span.parent == root.id && span.begun >= root.begun, "{span:?} below {root:?}");
        }
        if root.roles == WORKER {
            of_workers.push((root, spans));
        }
    }
    let accepted: Vec<&str> = of_workers.iter().map(|(root, _)| root.action.as_str()).collect();
    assert!(passed_by.iter().all(|action| accepted.contains(&action.as_str())), "{passed_by:?} in {accepted:?}");
    assert!(accepted.len() > passed_by.len(), "agents told each other nothing: {accepted:?}");
    // A broker that takes its time is not waited for, each time.
    let published =
        of_workers.iter().filter(|(root, spans)| of(spans, PUBLISH).is_some_and(|span| span.pid == root.pid));
    assert!(published.count() > 0, "workers published nothing: {of_workers:?}");
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
            ACCEPT | PUBLISH => (u64::from(fleet.gateways[gateway].pid()), GATEWAY),
            DELIVER | APPLY => (worker, WORKER),
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
