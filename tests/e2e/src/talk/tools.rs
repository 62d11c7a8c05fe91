//! Tools that wait for a yes, other agents, and programs that models write.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::by_hand;
use super::desk::{converse, definitions, ended, item, open, said, say};
use crate::harness::{Harness, wait};

#[tokio::test]
async fn a_tool_behind_an_approval_runs_after_the_yes_and_not_before() {
    let fleet = open().await;
    converse(&fleet, "cpay", &["ben"]).await;
    let turn = say(&fleet, "cpay", "please pay").await;
    let asked = wait("the question", || async {
        let page = fleet.get("/api/operations?kind=approval&state=pending").await;
        page["items"].as_array()?.first().cloned()
    })
    .await;
    let path = format!("/api/operations/{}/approve", asked["operation_id"].as_str().unwrap());
    let wrong = fleet.post(&path, &json!({"arguments_hash": "00"})).await;
    assert_eq!(wrong.status.as_u16(), 409, "{wrong:?}");
    let hash = &asked["approval"]["arguments_hash"];
    let yes = fleet.post(&path, &json!({ "arguments_hash": hash })).await;
    assert!(yes.status.is_success(), "{yes:?}");
    let turn = ended(&fleet, &turn).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(said(&fleet, "cpay").await[1].1, "The tool said {\"found\":42}.");
}

#[tokio::test]
async fn another_agent_is_asked_and_its_answer_comes_back() {
    let fleet = open().await;
    converse(&fleet, "cdev", &["ben"]).await;
    let turn = ended(&fleet, &say(&fleet, "cdev", "delegate it").await).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    let texts = said(&fleet, "cdev").await;
    assert!(texts[1].1.contains("Dev did it."), "{texts:?}");
    let listed = fleet.get("/api/conversations").await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "delegated work is in no list (K-19)");
}

#[tokio::test]
async fn a_cancelled_turn_ends_and_its_question_with_it() {
    let fleet = open().await;
    converse(&fleet, "ccan", &["ben"]).await;
    let turn = say(&fleet, "ccan", "please pay").await;
    wait("the question", || async {
        let page = fleet.get("/api/operations?kind=approval&state=pending").await;
        page["items"].as_array()?.first().cloned()
    })
    .await;
    let answer = fleet.post(&format!("/api/turns/{turn}/cancel"), &json!({})).await;
    assert!(answer.status.is_success(), "{answer:?}");
    let turn = ended(&fleet, &turn).await;
    assert_eq!((&turn["status"], &turn["cancelled"]), (&json!("failed"), &json!(true)), "{turn}");
    let open = fleet.get("/api/operations?state=pending").await;
    assert_eq!(open["items"].as_array().map(Vec::len), Some(0), "{open}");
}

#[tokio::test]
async fn a_program_calls_a_tool_and_what_it_prints_comes_back() {
    let code = "const answer = await tools.call('look', {});\nconsole.log('found', answer.found);";
    let script = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": "It printed {{result}}."}},
        {"when": {"contains": "compute"},
         "reply": {"tool_calls": [{"name": "execute_code", "arguments": {"code": code}}]}}
    ]});
    let path = tempfile::TempDir::new().expect("a temporary directory").keep().join("script.json");
    std::fs::write(&path, script.to_string()).expect("written");
    let deno = deno();
    let envs = [("STEPFLEET_SCRIPT", path.to_str().expect("a plain path")), ("STEPFLEET_DENO", deno.as_str())];
    let fleet = Harness::start_in(&envs).await;
    let answer = fleet.post("/api/definitions", &json!(definitions())).await;
    assert!(answer.status.is_success(), "{answer:?}");
    converse(&fleet, "ccode", &["ben"]).await;
    let turn = ended(&fleet, &say(&fleet, "ccode", "please compute").await).await;
    assert_eq!((&turn["status"], &turn["issues"]["tool_failures"]), (&json!("completed"), &json!(null)), "{turn}");
    let texts = said(&fleet, "ccode").await;
    assert!(texts[1].1.contains("found 42") && texts[1].1.contains("\"tool\":\"look\""), "{texts:?}");
}

/// Waits until the queue of a pool is there.
const LOOK: &str = r#"
import sys, time, pika
connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1]))
for _ in range(200):
    try:
        connection.channel().queue_declare(sys.argv[2], passive=True)
        sys.exit(0)
    except pika.exceptions.ChannelClosedByBroker:
        time.sleep(0.1)
sys.exit("there is no queue " + sys.argv[2])
"#;
/// Takes one task of it, and answers on the broker, twice.
const WORK: &str = r#"
import json, sys, pika
connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1]))
channel = connection.channel()
channel.confirm_delivery()
for method, _, body in channel.consume(sys.argv[2], inactivity_timeout=30):
    if method is None:
        sys.exit("no task came")
    task = json.loads(body)
    answer = json.dumps({"type": "tool_result", "action_id": "of-" + task["operation_id"],
                         "session_id": task["session_id"],
                         "payload": {"operation_id": task["operation_id"],
                                     "result": {"doubled": 2 * task["input"]["n"]}}})
    for _ in range(2):
        channel.basic_publish("", "stepfleet.ingress", answer, pika.BasicProperties(delivery_mode=2), mandatory=True)
    channel.basic_ack(method.delivery_tag)
    break
connection.close()
"#;

#[tokio::test]
#[ignore = "needs a broker: `ops/test fleet` runs it"]
async fn a_worker_on_the_broker_does_the_work_of_a_tool() {
    let script = json!({"rules": [
        {"when": {"last": "tool"}, "reply": {"text": "The worker said {{result}}."}},
        {"when": {"contains": "double"}, "reply": {"tool_calls": [{"name": "double", "arguments": {"n": 21}}]}}
    ]});
    let path = tempfile::TempDir::new().expect("a temporary directory").keep().join("script.json");
    std::fs::write(&path, script.to_string()).expect("written");
    let script = path.to_str().expect("a plain path");
    let fleet = Harness::start_in(&[("STEPFLEET_SCRIPT", script), ("STEPFLEET_TASK_POOLS", by_hand::POOL)]).await;
    let persona = json!({"system_prompt": "You help.", "model_profile_id": "everyday", "tool_ids": ["double"]});
    let amy = json!({"id": "amy", "name": "Amy", "project_ids": ["p1"], "persona_inline": persona});
    let more = by_hand::tool("double").into_iter().chain([item("agent", amy)]);
    let all: Vec<_> = definitions().into_iter().chain(more).collect();
    let answer = fleet.post("/api/definitions", &json!(all)).await;
    assert!(answer.status.is_success(), "{answer:?}");
    let (broker, queue) = (fleet.setting("STEPFLEET_AMQP_URL").expect("a broker"), "stepfleet.tasks.hands");
    let python = |program: &str| {
        let ran = Command::new("/usr/bin/python3").args(["-c", program, broker, queue]).output();
        let ran = ran.expect("python3 is installed");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    // It is there before the first task is.
    python(LOOK);
    converse(&fleet, "camqp", &["amy"]).await;
    let turn = say(&fleet, "camqp", "please double it").await;
    python(WORK);
    assert_eq!(ended(&fleet, &turn).await["status"], "completed");
    assert_eq!(said(&fleet, "camqp").await[1].1, "The worker said {\"doubled\":42}.");
}

/// The runtime of programs, from its registry.
fn deno() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/mcp-servers");
    let ran = Command::new(script).arg("deno").output().expect("a shell");
    assert!(ran.status.success(), "ops/mcp-servers: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).expect("a path").trim().to_owned()
}
