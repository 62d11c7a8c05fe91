//! Work for workers of others: claimed once, ended once, and never across a namespace.

mod again;
mod release;

use std::time::Duration;

use axum::http::StatusCode;
use domain::ports::Ledger;
use domain::tool::{ActionRequest, ExecutionContext, result_id};
use schemas::conversation::{Operation, OperationState};
use schemas::definition::{ActionKind, EffectClass, TargetType};
use schemas::id::{DefinitionId, Namespace};
use schemas::json::Json;
use serde_json::{Value, json};
use testkit::contract::Ports;
use testkit::contract::build::worker;
use testkit::contract::words::{operation, operation_id};
use tokio::time::Instant;

use super::world::{ACT, OTHER, READ, World};

const CLAIM: &str = "/api/pools/python/claim?wait_s=0";

/// A world with the session `s1` in a conversation.
async fn talking() -> (World, Ports) {
    let world = World::new().await;
    let ports = Ports::of(world.store.clone());
    ports.talker("s1", "c1").await;
    (world, ports)
}

fn task(id: &str, effect_class: EffectClass) -> Operation {
    let Value::Object(config) = json!({"pool": "python", "settings": {"unit": "C"}}) else { unreachable!() };
    let request = ActionRequest {
        target_type: TargetType::Task,
        target_id: DefinitionId::parse("weather").unwrap(),
        version: 1,
        action_id: DefinitionId::parse("forecast").unwrap(),
        action_version: 1,
        kind: ActionKind::External,
        operation: "run".to_owned(),
        config,
        output_schema: None,
        output_mapping: None,
        retry_on: Vec::new(),
        idempotency_key: None,
        input: json!({"city": "Bern"}),
        context: ExecutionContext::default(),
    };
    let pool = "default:python".to_owned();
    Operation { pool, request: Json::of(&request), effect_class, timeout_ms: 60_000, ..operation(id, "s1") }
}

async fn dispatch(ports: &Ports, operations: Vec<Operation>) {
    ports.dispatch(&worker("w1"), "s1", operations).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_is_claimed_run_and_ended_once() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![task("o1", EffectClass::Idempotent)]).await;
    let claimed = world.post_as(ACT, CLAIM, json!({})).await;
    assert_eq!(claimed.status, StatusCode::OK, "{}", claimed.text);
    let task = claimed.json();
    assert_eq!((&task["operation_id"], &task["attempt"]), (&json!("o1"), &json!(1)));
    assert_eq!((&task["input"], &task["settings"]), (&json!({"city": "Bern"}), &json!({"unit": "C"})));
    assert_eq!((&task["idempotency_key"], &task["tool"]), (&json!("default:o1"), &json!("search")));
    assert!(task["until"].as_str().unwrap().ends_with('Z') && task.get("messages").is_none(), "{task}");
    assert_eq!(world.post_as(ACT, CLAIM, json!({})).await.status, StatusCode::NO_CONTENT, "it is somebody's");
    let end = |result: Value| json!({"session_id": "s1", "operation_id": "o1", "result": result});
    let first = world.post_as(ACT, "/api/tool-results", end(json!(21))).await;
    assert_eq!((first.status, &first.json()["accepted"]), (StatusCode::ACCEPTED, &json!(true)), "{}", first.text);
    assert_eq!(ports.work_state("o1").await, OperationState::Completed);
    let again = world.post_as(ACT, "/api/tool-results", end(json!(21))).await;
    assert_eq!((again.status, &again.json()["accepted"]), (StatusCode::ACCEPTED, &json!(false)), "{}", again.text);
    let other = world.post_as(ACT, "/api/tool-results", end(json!(22))).await;
    assert_eq!(other.problem(), "no_open_operation");
}

#[tokio::test(start_paused = true)]
async fn a_claim_waits_for_work_and_not_longer_than_asked() {
    let (world, ports) = talking().await;
    let begun = Instant::now();
    let none = world.post_as(ACT, "/api/pools/python/claim?wait_s=3", json!({})).await;
    assert_eq!(none.status, StatusCode::NO_CONTENT);
    let took = begun.elapsed().as_millis();
    assert!((3_000..3_300).contains(&took), "{took}");
    let later = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        dispatch(&ports, vec![task("o1", EffectClass::Pure)]).await;
    };
    let begun = Instant::now();
    let ((), found) = tokio::join!(later, world.post_as(ACT, "/api/pools/python/claim", json!({})));
    assert_eq!(found.json()["operation_id"], "o1");
    let took = begun.elapsed().as_millis();
    assert!((5_000..5_400).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn pools_of_one_name_in_two_namespaces_are_two() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![task("o1", EffectClass::Pure)]).await;
    assert_eq!(world.post_as(OTHER, CLAIM, json!({})).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.post_as(READ, CLAIM, json!({})).await.problem(), "forbidden");
    assert_eq!(world.post_as(ACT, CLAIM, json!({})).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_worker_left_is_given_again_or_ends_in_doubt() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![task("o-same", EffectClass::Idempotent), task("o-once", EffectClass::AtMostOnce)]).await;
    for _ in 0..2 {
        assert_eq!(world.post_as(ACT, CLAIM, json!({})).await.status, StatusCode::OK);
    }
    // Nobody hears of the worker again; its claims end.
    tokio::time::sleep(Duration::from_millis(60_000 + schemas::limits::OPERATION_GRACE_MS + 10)).await;
    let again = world.post_as(ACT, CLAIM, json!({})).await.json();
    assert_eq!((&again["operation_id"], &again["attempt"]), (&json!("o-same"), &json!(2)));
    assert_eq!(world.post_as(ACT, CLAIM, json!({})).await.status, StatusCode::NO_CONTENT);
    assert_eq!(ports.work_state("o-once").await, OperationState::Failed);
    let action = result_id(&operation_id("o-once"));
    let told = world.store.action(&Namespace::default_ns(), &action).await.unwrap().expect("a result");
    let error = told.payload.to_value()["error"]["message"].to_string();
    assert!(error.contains("in doubt"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_wrongly_is_refused() {
    let (world, _) = talking().await;
    for (path, field) in [
        ("/api/pools/default/claim", "id"),
        ("/api/pools/a.b/claim", "id"),
        ("/api/pools/python/claim?wait_s=99", "wait_s"),
        ("/api/pools/python/claim?pool=x", "pool"),
    ] {
        let (code, fields) = world.post_as(ACT, path, json!({})).await.refusal();
        assert_eq!((code.as_str(), fields), ("invalid_request", vec![field.to_owned()]), "{path}");
    }
}

/// The worker in Python of `examples/`.
fn script() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/external_worker.py")
}

/// Over a real socket.
#[tokio::test]
async fn a_worker_in_another_language_does_the_work() {
    let checked = tokio::process::Command::new("python3").arg(script()).arg("--check").output().await;
    assert!(checked.expect("python3 is needed for this test").status.success(), "its own check");
    let (world, ports) = talking().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    crate::serve(listener, world.app.clone(), &world.tasks);
    let named = |id: &str, tool: &str, input: Value| {
        let task = task(id, EffectClass::Idempotent);
        let mut request: ActionRequest = task.request.to().unwrap();
        request.input = input;
        Operation { tool: tool.to_owned(), request: Json::of(&request), ..task }
    };
    let good = named("o1", "number_statistics", json!({"values": [1, 2, 6]}));
    let bad = named("o2", "number_statistics", json!({"values": []}));
    dispatch(&ports, vec![good, bad, named("o3", "nobody_has_this", json!({}))]).await;
    let worker = tokio::process::Command::new("python3")
        .arg(script())
        .args(["--url", &url, "--pool", "python", "--tasks", "3"])
        .env("STEPFLEET_TOKEN", ACT)
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(60), worker).await.expect("it ends").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result = async |id: &str| {
        let action = result_id(&operation_id(id));
        world.store.action(&Namespace::default_ns(), &action).await.unwrap().expect("a result").payload.to_value()
    };
    assert_eq!(result("o1").await["result"]["mean"], 3.0);
    assert_eq!(result("o2").await["error"]["code"], "INVALID_INPUT");
    assert_eq!(result("o3").await["error"]["code"], "NOT_FOUND");
    assert_eq!(ports.work_state("o2").await, OperationState::Failed);
}
