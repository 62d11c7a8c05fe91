//! Operations: what is dispatched, approvals by people, and results by others.

use axum::http::StatusCode;
use domain::ports::Ledger;
use schemas::action::ActionType;
use schemas::conversation::{ApprovalRequest, Operation, OperationKind, OperationState, Talk};
use schemas::definition::EffectClass;
use schemas::id::{ActionId, ConversationId, Namespace, OperationId, SessionId, TurnId};
use schemas::json::Json;
use serde_json::{Value, json};

use super::turns::turn;
use super::world::{ACT, OPERATE, OTHER, READ, World};

pub fn operation(id: &str, session: &str, kind: OperationKind) -> Operation {
    let approval = ApprovalRequest { arguments_hash: "ff00".into(), expires_ms: 60_000, default_approve: false };
    Operation {
        operation_id: OperationId::parse(id).unwrap(),
        session_id: SessionId::parse(session).unwrap(),
        conversation_id: ConversationId::parse("c1").unwrap(),
        turn_id: TurnId::parse("t1").unwrap(),
        tool_call_id: format!("call-{id}"),
        tool: "remove".into(),
        kind,
        pool: if kind == OperationKind::Task { "default".into() } else { String::new() },
        state: OperationState::Pending,
        request: Json::of(&json!({"input": {"path": "/tmp/x"}})),
        approval: (kind == OperationKind::Approval).then_some(approval),
        effect_class: EffectClass::AtMostOnce,
        attempt: 0,
        lost: 0,
        max_attempts: 1,
        backoff_ms: 1_000,
        timeout_ms: 60_000,
        wait_ms: None,
        is_async: false,
        created_at_ms: 0,
        due_at_ms: 0,
        claimed_by: None,
        until_ms: None,
        error: None,
    }
}

/// A turn that waits for a person (`o1`) and for a worker (`o2`).
async fn waiting() -> (World, String) {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let operations =
        vec![operation("o1", &session, OperationKind::Approval), operation("o2", &session, OperationKind::Task)];
    world.speak(&session, Talk { turns: vec![turn("t1", &session, "m1")], operations, log: Vec::new() }).await;
    (world, session)
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|one| one["operation_id"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn operations_are_listed() {
    let (world, _) = waiting().await;
    let list = async |query: &str| world.get(&format!("/api/operations{query}")).await.json();
    assert_eq!(ids(&list("?state=pending").await).len(), 2);
    let approvals = list("?state=pending&kind=approval&conversation_id=c1&turn_id=t1").await;
    assert_eq!(ids(&approvals), ["o1"]);
    let asked = &approvals["items"][0];
    assert_eq!((&asked["approval"]["arguments_hash"], &asked["tool"]), (&json!("ff00"), &json!("remove")));
    assert_eq!(asked["request"]["input"]["path"], "/tmp/x");
    assert!(asked["until"].is_string(), "until when: {asked}");
    let first = list("?limit=1").await;
    let rest = list(&format!("?limit=1&cursor={}", first["next_cursor"].as_str().unwrap())).await;
    assert_eq!([ids(&first), ids(&rest)].concat(), ["o1", "o2"]);
    assert_eq!(world.get_as(OTHER, "/api/operations").await.json()["items"], json!([]));
    assert_eq!(world.get("/api/operations?state=open").await.problem(), "invalid_request");
    assert_eq!(world.get("/api/turns/t1").await.json()["operations"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_operation_is_read_by_its_id() {
    let (world, _) = waiting().await;
    let one = world.get("/api/operations/o1").await.json();
    assert_eq!(
        (&one["operation_id"], &one["state"], &one["request"]["input"]["path"]),
        (&json!("o1"), &json!("pending"), &json!("/tmp/x"))
    );
    assert!(one["until"].is_string() && one["approval"]["default_approve"] == false, "{one}");
    for (token, id) in [(READ, "none"), (OTHER, "o1")] {
        let reply = world.get_as(token, &format!("/api/operations/{id}")).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::NOT_FOUND, "operation_not_found"));
    }
}

/// A question of kind `human` (`o3`) beside the approval of a call (`o1`).
async fn asked() -> World {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let request = json!({"target_type": "task", "target_id": "ask", "version": 1, "action_id": "ask-ana",
        "action_version": 1, "kind": "human", "operation": "input", "config": {"question": "Which {{topic}}?"},
        "output_schema": {"type": "string", "maxLength": 8}, "input": {"topic": "colour"}});
    let question = Operation { request: Json::of(&request), ..operation("o3", &session, OperationKind::Approval) };
    let operations = vec![operation("o1", &session, OperationKind::Approval), question];
    world.speak(&session, Talk { turns: vec![turn("t1", &session, "m1")], operations, log: Vec::new() }).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_person_reads_the_question_and_answers_it() {
    let world = asked().await;
    assert_eq!(world.get("/api/operations/o3").await.json()["question"], "Which colour?");
    let listed = world.get("/api/operations?kind=approval").await.json();
    assert_eq!(listed["items"][1]["question"], "Which colour?");
    assert!(listed["items"][0].get("question").is_none(), "the call itself is the question: {listed}");
    let answer = |answer: Value| json!({"arguments_hash": "ff00", "answer": answer});
    for (path, body) in [
        ("o1/approve", answer(json!("blue"))),
        ("o3/deny", answer(json!("blue"))),
        ("o3/approve", answer(json!("a very long word"))),
        ("o3/approve", answer(json!(7))),
    ] {
        let reply = world.post(&format!("/api/operations/{path}"), body.clone()).await;
        assert_eq!(reply.refusal(), ("invalid_request".to_owned(), vec!["answer".to_owned()]), "{path} {body}");
    }
    assert!(world.open().is_empty(), "nothing was answered yet");
    let reply = world.post("/api/operations/o3/approve", answer(json!("blue"))).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    let payload = world.open().pop().unwrap().payload.to_value();
    assert_eq!((&payload["result"]["approved"], &payload["result"]["answer"]), (&json!(true), &json!("blue")));
}

#[tokio::test(start_paused = true)]
async fn an_approval_counts_for_what_was_seen_and_once() {
    let (world, session) = waiting().await;
    let path = "/api/operations/o1/approve";
    assert_eq!(world.post_as(ACT, path, json!({"arguments_hash": "ff00"})).await.problem(), "forbidden");
    assert_eq!(world.post(path, json!({})).await.refusal().1, ["arguments_hash"]);
    let other = world.post(path, json!({"arguments_hash": "ff01"})).await;
    assert_eq!((other.status, other.problem().as_str()), (StatusCode::CONFLICT, "approval_mismatch"));
    let body = json!({"arguments_hash": "ff00", "reason": "fine"});
    let first = world.post_as(OPERATE, path, body.clone()).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text);
    assert_eq!((&first.json()["by"], &first.json()["accepted"]), (&json!(OPERATE), &json!(true)));
    let result = world.open().pop().unwrap();
    assert_eq!((result.kind, result.session_id.as_str()), (ActionType::ToolResult, session.as_str()));
    let payload = result.payload.to_value();
    assert_eq!((&payload["operation_id"], &payload["tool_call_id"]), (&json!("o1"), &json!("call-o1")));
    assert_eq!((&payload["result"]["approved"], &payload["result"]["reason"]), (&json!(true), &json!("fine")));
    let again = world.post_as(OPERATE, path, body).await;
    assert_eq!((again.status, &again.json()["accepted"]), (StatusCode::ACCEPTED, &json!(false)), "{}", again.text);
    let too_late = world.post("/api/operations/o1/deny", json!({"arguments_hash": "ff00"})).await;
    assert_eq!((too_late.status, too_late.problem().as_str()), (StatusCode::CONFLICT, "no_open_operation"));
    assert_eq!(ids(&world.get("/api/operations?state=completed").await.json()), ["o1"]);
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_a_result_too() {
    let (world, _) = waiting().await;
    let reply = world.post("/api/operations/o1/deny", json!({"arguments_hash": "ff00", "actor": "ana"})).await;
    assert_eq!(
        (reply.status, &reply.json()["approved"], &reply.json()["by"]),
        (StatusCode::ACCEPTED, &json!(false), &json!("ana"))
    );
    let payload = world.open().pop().unwrap().payload.to_value();
    assert_eq!((&payload["success"], &payload["result"]["approved"]), (&json!(true), &json!(false)));
    for (id, code) in [("none", "operation_not_found"), ("o2", "no_open_operation")] {
        let reply = world.post(&format!("/api/operations/{id}/deny"), json!({"arguments_hash": "ff00"})).await;
        assert_eq!(reply.problem(), code, "{id}");
    }
    let reply = world.post_as(OTHER, "/api/operations/o1/approve", json!({"arguments_hash": "ff00"})).await;
    assert_eq!(reply.problem(), "operation_not_found");
}

#[tokio::test(start_paused = true)]
async fn results_of_others_end_operations_but_never_speak_for_a_person() {
    let (world, session) = waiting().await;
    let result = json!({"operation_id": "o2", "result": {"n": 1}});
    let reply = world.post_as(ACT, "/api/tool-results", result.clone()).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text);
    assert_eq!(reply.json()["session_id"], json!(session), "the operation knows who waits for it");
    let late = world.post_as(ACT, "/api/tool-results", json!({"operation_id": "o2", "error": "no luck"})).await;
    assert_eq!((late.status, late.problem().as_str()), (StatusCode::CONFLICT, "no_open_operation"));
    let forged = json!({"operation_id": "o1", "result": {"approved": true}});
    for (path, body) in [
        ("/api/tool-results", forged.clone()),
        ("/api/actions", json!({"type": "tool_result", "session_id": session, "payload": forged})),
    ] {
        let reply = world.post_as(ACT, path, body).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::CONFLICT, "no_open_operation"), "{path}");
    }
    assert_eq!(ids(&world.get("/api/operations?state=pending").await.json()), ["o1"]);
}

/// What an operation will be called can be told in advance: a result that waits for the question would be the
/// answer to it.
#[tokio::test(start_paused = true)]
async fn a_result_that_comes_before_its_operation_is_refused() {
    let world = World::new().await;
    world.create("s1", "a1", "converse").await;
    let early = json!({"operation_id": "t1.1.0", "result": {"approved": true}});
    for (path, body) in [
        ("/api/tool-results", json!({"session_id": "s1", "payload": early})),
        ("/api/actions", json!({"type": "tool_result", "session_id": "s1", "payload": early})),
        ("/api/actions", json!({"type": "tool_result", "agent_id": "a1", "payload": early})),
    ] {
        let reply = world.post_as(ACT, path, body).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::CONFLICT, "no_open_operation"), "{path}");
        assert!(reply.text.contains("GET /api/operations"), "{}", reply.text);
    }
    let sooner = json!({"type": "tool_result", "session_id": "s2", "payload": early});
    let reply = world.post_as(ACT, "/api/actions", sooner).await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::NOT_FOUND, "session_not_found"));
    assert_eq!(world.store.all_actions().len(), 1, "the ledger, which may know of the session by then, is not asked");
    assert_eq!(world.open().len(), 1, "nothing waits but the creation");
}

/// An operation ends by an action whose id can be told in advance, and a turn waits for that.
#[tokio::test(start_paused = true)]
async fn the_id_of_an_end_that_is_to_come_stays_free() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    let early = json!({"operation_id": "t9.1.0", "result": 1});
    let refused = world.post_as(ACT, "/api/tool-results", early).await;
    assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::CONFLICT, "no_open_operation"));
    let astray = json!({"session_id": "s1", "operation_id": "t9.1.0", "result": 1});
    let taken = world.post_as(ACT, "/api/tool-results", astray).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED, "{}", taken.text);
    for (kind, payload) in
        [("input", json!({"text": "x"})), ("tool_result", json!({"tool_call_id": "c1", "result": 1}))]
    {
        let body = json!({"type": kind, "session_id": "s1", "action_id": "t9.1.0.result", "payload": payload});
        let refused = world.post_as(ACT, "/api/actions", body).await;
        assert_eq!(refused.refusal(), ("invalid_request".to_owned(), vec!["action_id".to_owned()]), "{kind}");
    }
    let id = ActionId::parse("t9.1.0.result").unwrap();
    assert!(world.store.action(&Namespace::default_ns(), &id).await.unwrap().is_none());
}
