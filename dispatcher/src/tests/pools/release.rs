//! What workers of others give back: to whom it goes then, what it costs, and that nobody else's work is taken.

use std::process::Stdio;
use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use tokio::process::Command;
use tokio::sync::Notify;

use super::*;

const RELEASE: &str = "/api/pools/python/release";

async fn claimed(world: &World) -> Value {
    let reply = world.post_as(ACT, CLAIM, json!({})).await;
    assert_eq!(reply.status, StatusCode::OK, "there is one: {}", reply.text);
    reply.json()
}

/// What is sent to give a task back, with this beside it.
fn body(task: &Value, more: Value) -> Value {
    let mut body = json!({"operation_id": task["operation_id"], "until": task["until"]});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Gives a task back; whether it was taken, and what it is then.
async fn release(world: &World, task: &Value, more: Value) -> (bool, String) {
    let reply = world.post_as(ACT, RELEASE, body(task, more)).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    let answer = reply.json();
    assert_eq!(answer["operation_id"], task["operation_id"]);
    (answer["released"].as_bool().unwrap(), answer["state"].as_str().unwrap().to_owned())
}

fn is(released: bool, state: &str) -> (bool, String) {
    (released, state.to_owned())
}

async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_not_begun_is_anothers_at_once_and_costs_nothing() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![task("o1", EffectClass::AtMostOnce)]).await;
    let first = claimed(&world).await;
    assert_eq!(release(&world, &first, json!({})).await, is(true, "pending"));
    let row = ports.work("o1").await.operation;
    assert_eq!((row.attempt, row.lost, row.claimed_by.as_deref()), (0, 0, None));
    assert!(row.error.is_some_and(|why| why.contains(ACT)), "operators are told who");
    assert_eq!(release(&world, &first, json!({})).await, is(false, "pending"), "once more changes nothing");
    pass(1).await;
    let second = claimed(&world).await;
    assert_eq!(second["attempt"], 1, "it is its first start");
    // The same name, the same attempt: only the end of the claim is another.
    assert_eq!(release(&world, &first, json!({})).await, is(false, "running"));
    assert_eq!(release(&world, &first, json!({"begun": true})).await, is(false, "running"));
    assert_eq!(world.post_as(ACT, CLAIM, json!({})).await.status, StatusCode::NO_CONTENT, "it stays with its holder");
    let result = json!({"session_id": "s1", "operation_id": "o1", "result": 21});
    assert_eq!(world.post_as(ACT, "/api/tool-results", result).await.status, StatusCode::ACCEPTED);
    assert_eq!(release(&world, &second, json!({})).await, is(false, "completed"), "a result counts");
}

#[tokio::test(start_paused = true)]
async fn what_was_begun_is_begun_again_where_that_is_safe_and_in_doubt_elsewhere() {
    let (world, ports) = talking().await;
    for class in [EffectClass::Pure, EffectClass::Idempotent] {
        let id = format!("o-{class:?}");
        dispatch(&ports, vec![task(&id, class)]).await;
        let first = claimed(&world).await;
        assert_eq!(release(&world, &first, json!({"begun": true})).await, is(true, "running"), "{class:?}");
        assert_eq!(release(&world, &first, json!({"begun": true})).await, is(false, "running"), "{class:?}");
        pass(1).await;
        assert_eq!(claimed(&world).await["attempt"], 2, "{class:?}");
        let row = ports.work(&id).await.operation;
        assert_eq!((row.attempt, row.lost), (2, 1), "{class:?}: no attempt of its own");
    }
    for class in [EffectClass::Probeable, EffectClass::AtMostOnce] {
        let id = format!("o-{class:?}");
        dispatch(&ports, vec![task(&id, class)]).await;
        let first = claimed(&world).await;
        assert_eq!(release(&world, &first, json!({"begun": true})).await, is(true, "failed"), "{class:?}");
        assert_eq!(release(&world, &first, json!({"begun": true})).await, is(false, "failed"), "{class:?}");
        let action = result_id(&operation_id(&id));
        let told = world.store.action(&Namespace::default_ns(), &action).await.unwrap().expect("a result");
        let error = told.payload.to_value()["error"]["message"].to_string();
        assert!(error.contains("in doubt") && error.contains("stopped"), "{class:?}: {error}");
    }
    pass(1).await;
    assert_eq!(world.post_as(ACT, CLAIM, json!({})).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn it_is_kept_from_others_for_as_long_as_is_asked() {
    let (world, ports) = talking().await;
    for (id, begun) in [("o1", false), ("o2", true)] {
        dispatch(&ports, vec![task(id, EffectClass::Idempotent)]).await;
        let first = claimed(&world).await;
        let (released, _) = release(&world, &first, json!({"begun": begun, "after_ms": 5_000})).await;
        assert!(released);
        pass(4_990).await;
        assert_eq!(world.post_as(ACT, CLAIM, json!({})).await.status, StatusCode::NO_CONTENT, "not yet");
        pass(10).await;
        assert_eq!(claimed(&world).await["operation_id"], id);
    }
}

/// The wait of a task that was begun is counted from the end of its claim, as if its worker had died.
#[tokio::test(start_paused = true)]
async fn long_work_that_is_left_is_not_out_of_time() {
    let (world, ports) = talking().await;
    let long = Operation { timeout_ms: 300_000, wait_ms: Some(60_000), ..task("o1", EffectClass::Idempotent) };
    dispatch(&ports, vec![long]).await;
    let first = claimed(&world).await;
    pass(200_000).await;
    assert_eq!(release(&world, &first, json!({"begun": true})).await, is(true, "running"));
    pass(1).await;
    assert!(ports.operations.untaken(9).await.unwrap().is_empty());
    assert_eq!(claimed(&world).await["attempt"], 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_gives_back_what_is_not_theirs() {
    let (world, ports) = talking().await;
    dispatch(&ports, vec![task("o1", EffectClass::Idempotent)]).await;
    let held = world.post_as(ACT, "/api/pools/python/claim?wait_s=0&worker=w1", json!({})).await.json();
    let mine = json!({"worker": "w1"});
    for (token, path) in [(OTHER, RELEASE), (ACT, "/api/pools/ruby/release")] {
        let reply = world.post_as(token, path, body(&held, mine.clone())).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::NOT_FOUND, "operation_not_found"));
    }
    let unknown = body(&held, json!({"operation_id": "none"}));
    assert_eq!(world.post_as(ACT, RELEASE, unknown).await.problem(), "operation_not_found");
    assert_eq!(world.post_as(READ, RELEASE, body(&held, mine.clone())).await.problem(), "forbidden");
    for more in [json!({}), json!({"worker": "w2"}), json!({"worker": "w1", "until": "2030-01-01T00:00:00Z"})] {
        assert_eq!(release(&world, &held, more).await, is(false, "running"));
    }
    assert_eq!(ports.work("o1").await.operation.claimed_by.as_deref(), Some("external:w1"));
    assert_eq!(release(&world, &held, mine).await, is(true, "pending"));
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_wrongly_is_refused() {
    let (world, _) = talking().await;
    let good = json!({"operation_id": "o1", "until": "2030-01-01T00:00:00Z"});
    let several = json!({"until": "soon", "begun": "yes", "after_ms": -1});
    for (path, sent, fields) in [
        ("/api/pools/default/release", good.clone(), vec!["id"]),
        ("/api/pools/a.b/release", good.clone(), vec!["id"]),
        (RELEASE, json!([good]), vec!["body"]),
        (RELEASE, json!({}), vec!["operation_id", "until"]),
        (RELEASE, body(&good, json!({"attempt": 1})), vec!["attempt"]),
        (RELEASE, body(&good, several), vec!["until", "begun", "after_ms"]),
    ] {
        let (code, told) = world.post_as(ACT, path, sent).await.refusal();
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        assert_eq!((code.as_str(), told), ("invalid_request", fields), "{path}");
    }
}

/// Told to stop while it waits for work, the worker of `examples/` gives back what it gets then.
#[tokio::test]
async fn a_worker_that_is_told_to_stop_gives_back_what_it_has_not_begun() {
    let (world, ports) = talking().await;
    let asked = Arc::new(Notify::new());
    let ask = asked.clone();
    let app = world.app.clone().layer(from_fn(move |request: Request, next: Next| {
        ask.notify_one();
        next.run(request)
    }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    crate::serve(listener, app, &world.tasks);
    let mut worker = Command::new("python3")
        .arg(script())
        .args(["--url", &url, "--pool", "python", "--worker", "w1"])
        .env("STEPFLEET_TOKEN", ACT)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("python3 is needed for this test");
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, asked.notified()).await.expect("it asks for work");
    let pid = worker.id().expect("it runs").to_string();
    let told = Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill");
    assert!(told.success());
    dispatch(&ports, vec![task("o1", EffectClass::AtMostOnce)]).await;
    let status = tokio::time::timeout(limit, worker.wait()).await.expect("it ends").unwrap();
    assert!(status.success(), "{status}");
    let row = ports.work("o1").await.operation;
    assert_eq!((row.state, row.attempt, row.claimed_by), (OperationState::Pending, 0, None));
    assert!(row.error.is_some_and(|why| why.contains("external:w1")), "it had it");
}
