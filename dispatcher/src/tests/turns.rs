//! Turns: lists, what belongs to one, and how one is cancelled.

use axum::http::StatusCode;
use schemas::action::ActionType;
use schemas::conversation::{
    Caller, EventType, LogKind, LogRecord, Message, MessageRole, SenderType, Talk, Turn, TurnPhase, TurnStatus,
};
use schemas::id::{AgentId, ConversationId, MessageId, SessionId, TurnId, UserId};
use schemas::json::Json;
use schemas::limits::PAGE_MAX;
use serde_json::{Value, json};

use super::world::{OTHER, World};

/// An active turn of `a1` in `c1`.
pub fn turn(id: &str, session: &str, input: &str) -> Turn {
    Turn {
        turn_id: TurnId::parse(id).unwrap(),
        conversation_id: ConversationId::parse("c1").unwrap(),
        session_id: SessionId::parse(session).unwrap(),
        agent_id: AgentId::parse("a1").unwrap(),
        caller: Caller::User { user_id: UserId::parse("ana").unwrap() },
        input_message_id: MessageId::parse(input).unwrap(),
        reply_to_message_id: None,
        trigger_type: "user_message".into(),
        status: TurnStatus::Active,
        phase: TurnPhase::Thinking,
        cancelled: false,
        context_assembly_run_id: None,
        memory_extraction_run_id: None,
        issues: Default::default(),
        error: None,
        moves: 0,
        usage: Default::default(),
        pending_operations: 0,
        metadata: None,
        created_at_ms: 1_000,
        completed_at_ms: None,
    }
}

pub fn record(kind: LogKind, id: &str, turn: &str, session: &str, body: &Value) -> LogRecord {
    LogRecord {
        kind,
        id: id.to_owned(),
        turn_id: Some(TurnId::parse(turn).unwrap()),
        agent_id: Some(AgentId::parse("a1").unwrap()),
        session_id: Some(SessionId::parse(session).unwrap()),
        at_ms: 1_000,
        body: Json::of(body),
    }
}

/// What an agent says.
pub fn said(id: &str, turn: &str, agent: &str, session: &str, text: &str) -> LogRecord {
    let message = Message {
        message_id: MessageId::parse(id).unwrap(),
        turn_id: Some(TurnId::parse(turn).unwrap()),
        sender_type: SenderType::Agent,
        role: MessageRole::Assistant,
        user_id: None,
        agent_id: Some(AgentId::parse(agent).unwrap()),
        session_id: Some(SessionId::parse(session).unwrap()),
        name: None,
        text: Some(text.to_owned()),
        content: None,
        data: None,
        event_type: EventType::Utterance,
        reply_to_message_id: None,
        provider_message_id: None,
        metadata: None,
        iteration: None,
        step_token: None,
        next_step_token: None,
        status: None,
        notes: None,
    };
    record(LogKind::Message, id, turn, session, &json!(message))
}

/// A whole turn that answers `m1`, with two moves, a tool and its result.
async fn answered(world: &World) -> String {
    let session = world.converse("c1", &["a1"]).await.remove(0);
    world.post("/api/conversations/c1/messages", json!({"text": "hi", "message_id": "m1"})).await;
    let of = |kind, id: &str, body: Value| record(kind, id, "t1", &session, &body);
    let log = vec![
        of(LogKind::Assembly, "t1.a", json!({"request": {}})),
        of(
            LogKind::Move,
            "t1.1",
            json!({"move": 1, "reasoning": "hm", "tool_calls": [{"id": "k1", "name": "look", "input": {}}]}),
        ),
        of(LogKind::ProviderCall, "t1.p1", json!({"model": "x"})),
        of(LogKind::ToolResult, "t1.r1", json!({"move": 1, "tool_call_id": "k1", "success": true, "result": "a cat"})),
        of(LogKind::Move, "t1.2", json!({"move": 2, "tool_calls": [], "finish": "stop"})),
        said("t1.m", "t1", "a1", &session, "a cat"),
    ];
    let done =
        Turn { status: TurnStatus::Completed, completed_at_ms: Some(2_000), moves: 2, ..turn("t1", &session, "m1") };
    world.speak(&session, Talk { log, turns: vec![done], ..Talk::default() }).await;
    session
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_shown_with_all_that_belongs_to_it() {
    let world = World::new().await;
    let session = answered(&world).await;
    let detail = world.get("/api/turns/t1").await.json();
    assert_eq!(
        (&detail["turn"]["status"], &detail["turn"]["completed_at"]),
        (&json!("completed"), &json!("1970-01-01T00:00:02.000Z"))
    );
    assert_eq!((&detail["input"]["text"], &detail["messages"][0]["text"]), (&json!("hi"), &json!("a cat")));
    assert_eq!(detail["moves"].as_array().unwrap().len(), 2);
    assert_eq!(detail["moves"][0]["tool_results"][0]["result"], "a cat");
    assert_eq!((&detail["provider_calls"], &detail["truncated"]), (&json!([{"model": "x"}]), &json!(false)));
    let moves = world.get("/api/turns/t1/moves?limit=1").await.json();
    assert_eq!((moves["items"].as_array().unwrap().len(), &moves["items"][0]["move"]), (1, &json!(1)));
    assert_eq!(moves["items"][0]["tool_results"].as_array().unwrap().len(), 1, "a move comes with its results");
    let cursor = moves["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/turns/t1/moves?limit=1&cursor={cursor}")).await.json();
    assert_eq!((&rest["items"][0]["move"], &rest["next_cursor"]), (&json!(2), &json!(null)));
    let list = world.get(&format!("/api/conversations/c1/turns?status=completed&session_id={session}")).await.json();
    assert_eq!((list["items"].as_array().unwrap().len(), &list["items"][0]["turn_id"]), (1, &json!("t1")));
    assert_eq!(world.get("/api/conversations/c1/turns?status=active").await.json()["items"], json!([]));
    let context = world.get("/api/turns/t1/context").await.json();
    assert_eq!((&context["turn_id"], &context["context"]), (&json!("t1"), &json!({"request": {}})));
    assert_eq!(context["created_at"], "1970-01-01T00:00:01.000Z");
    for path in ["/api/turns/none", "/api/turns/none/moves", "/api/turns/none/context"] {
        assert_eq!(world.get(path).await.problem(), "turn_not_found");
    }
    for path in ["/api/turns/t1", "/api/turns/t1/context"] {
        assert_eq!(world.get_as(OTHER, path).await.problem(), "turn_not_found");
    }
    assert_eq!(world.get("/api/conversations/c1/turns?status=done").await.problem(), "invalid_request");
}

#[tokio::test(start_paused = true)]
async fn results_that_come_late_are_shown_with_the_move_that_called() {
    let world = World::new().await;
    let session = answered(&world).await;
    let late = json!({"move": 1, "tool_call_id": "k2", "operation_id": "o1", "tool": "fetch", "success": true,
                      "result": "a dog"});
    let log = vec![record(LogKind::AsyncResult, "t1.l1", "t1", &session, &late)];
    world.speak(&session, Talk { log, ..Talk::default() }).await;
    let results = |moves: &Value| moves[0]["tool_results"].as_array().unwrap().clone();
    let detail = world.get("/api/turns/t1").await.json();
    assert_eq!((results(&detail["moves"]).len(), &results(&detail["moves"])[1]["result"]), (2, &json!("a dog")));
    // It lies behind the second move, on another page.
    let page = world.get("/api/turns/t1/moves?limit=1").await.json();
    assert_eq!((results(&page["items"]).len(), page["items"].as_array().unwrap().len()), (2, 1));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/turns/t1/moves?limit=1&cursor={cursor}")).await.json();
    assert_eq!((results(&rest["items"]), &rest["next_cursor"]), (vec![], &json!(null)));
}

/// Of two replies that called in the background the second has more results than a page has records, and that of the
/// first comes after them.
#[tokio::test(start_paused = true)]
async fn results_are_shown_with_their_move_however_many_came_before() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let called = |number: u64, calls: Vec<String>| {
        let tool_calls: Vec<Value> = calls.iter().map(|id| json!({"id": id, "name": "fetch", "input": {}})).collect();
        let in_background: Vec<Value> = calls.iter().map(|id| json!([id, "o"])).collect();
        let body = json!({"move": number, "tool_calls": tool_calls, "in_background": in_background});
        record(LogKind::Move, &format!("t1.{number}"), "t1", &session, &body)
    };
    let late = |number: u64, call: &str| {
        let body = json!({"move": number, "tool_call_id": call, "operation_id": "o", "success": true, "result": call});
        record(LogKind::AsyncResult, &format!("t1.{call}"), "t1", &session, &body)
    };
    let many: Vec<String> = (0..PAGE_MAX).map(|n| format!("many{n}")).collect();
    let mut log = vec![called(1, vec!["one".to_owned()]), called(2, many.clone())];
    log.extend(many.iter().map(|call| late(2, call)));
    log.push(late(1, "one"));
    world.speak(&session, Talk { log, turns: vec![turn("t1", &session, "m1")], ..Talk::default() }).await;
    let results = |page: &Value| page["items"][0]["tool_results"].as_array().unwrap().clone();
    let page = world.get("/api/turns/t1/moves?limit=1").await.json();
    let first = results(&page);
    assert_eq!((first.len(), &first[0]["result"], &page["items"][0]["move"]), (1, &json!("one"), &json!(1)));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/turns/t1/moves?limit=1&cursor={cursor}")).await.json();
    assert_eq!((results(&rest).len(), &rest["items"][0]["move"]), (PAGE_MAX, &json!(2)));
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next_cursor"]), (1, &json!(null)));
    // A third reply: the second is still whole, and the page ends before it.
    world.speak(&session, Talk { log: vec![called(3, Vec::new())], ..Talk::default() }).await;
    let again = world.get(&format!("/api/turns/t1/moves?limit=1&cursor={cursor}")).await.json();
    assert_eq!(results(&again).len(), PAGE_MAX);
    let cursor = again["next_cursor"].as_str().unwrap();
    let last = world.get(&format!("/api/turns/t1/moves?cursor={cursor}")).await.json();
    assert_eq!((&last["items"][0]["move"], &last["next_cursor"]), (&json!(3), &json!(null)));
}

/// A result that has not come, or lies far behind, is not looked for through all that a turn has.
#[tokio::test(start_paused = true)]
async fn results_are_looked_for_so_far_behind_their_move() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let called = |number: u64, in_background: Value| {
        let body = json!({"move": number, "tool_calls": [], "in_background": in_background});
        record(LogKind::Move, &format!("t1.{number}"), "t1", &session, &body)
    };
    let late = |number: u64, call: &str| {
        let body = json!({"move": number, "tool_call_id": call, "operation_id": "o", "success": true, "result": call});
        record(LogKind::AsyncResult, &format!("t1.{call}"), "t1", &session, &body)
    };
    let others =
        |page: usize| -> Vec<LogRecord> { (0..PAGE_MAX).map(|n| late(2, &format!("other{page}.{n}"))).collect() };
    let turns = vec![turn("t1", &session, "m1")];
    let first = vec![called(1, json!([["near", "o"], ["far", "o"]])), called(2, json!([]))];
    world.speak(&session, Talk { log: first, turns, ..Talk::default() }).await;
    for page in 0..3 {
        world.speak(&session, Talk { log: others(page), ..Talk::default() }).await;
    }
    let log = [vec![late(1, "near")], others(3), vec![late(1, "far")]].concat();
    world.speak(&session, Talk { log, ..Talk::default() }).await;
    let page = world.get("/api/turns/t1/moves?limit=1").await.json();
    let results = page["items"][0]["tool_results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["result"]), (1, &json!("near")), "four pages of records are looked at");
    assert!(page["next_cursor"].is_string(), "{page}");
}

#[tokio::test(start_paused = true)]
async fn what_is_noted_beside_definitions_is_not_in_the_context() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let (noted, said) = (json!({"effect_class": true}), json!("at_most_once"));
    let tools = json!([
        {"tool": {"name": "pay", "effect_class": said, "chosen": noted}, "version": 1,
         "target": {"type": "action", "kind": "http", "effect_class": said, "chosen": noted}},
        {"tool": {"name": "ask"}, "version": 1, "target": {"type": "missing", "reason": "chosen"}},
    ]);
    let log = vec![record(LogKind::Assembly, "t1.a", "t1", &session, &json!({"request": {}, "tools": tools}))];
    world.speak(&session, Talk { log, turns: vec![turn("t1", &session, "m1")], ..Talk::default() }).await;
    let context = world.get("/api/turns/t1/context").await.json();
    let shown = json!([
        {"tool": {"name": "pay", "effect_class": said}, "version": 1,
         "target": {"type": "action", "kind": "http", "effect_class": said}},
        {"tool": {"name": "ask"}, "version": 1, "target": {"type": "missing", "reason": "chosen"}},
    ]);
    assert_eq!(context["context"], json!({"request": {}, "tools": shown}));
}

#[tokio::test(start_paused = true)]
async fn turns_are_paged_in_the_order_they_began() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let turns = (1..=3).map(|n| Turn { created_at_ms: 1_000 * n, ..turn(&format!("t{n}"), &session, "m1") }).collect();
    world.speak(&session, Talk { turns, ..Talk::default() }).await;
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|one| one["turn_id"].as_str().unwrap().to_owned()).collect()
    };
    for (order, expected) in [("asc", ["t1", "t2", "t3"]), ("desc", ["t3", "t2", "t1"])] {
        let first = world.get(&format!("/api/conversations/c1/turns?limit=2&order={order}")).await.json();
        let cursor = first["next_cursor"].as_str().unwrap();
        let rest =
            world.get(&format!("/api/conversations/c1/turns?limit=2&order={order}&cursor={cursor}")).await.json();
        assert_eq!([ids(&first), ids(&rest)].concat(), expected, "{order}");
    }
    let context = world.get("/api/turns/t1/context").await.json();
    assert_eq!(context, json!({"turn_id": "t1", "context": null}), "not put together yet");
    let detail = world.get("/api/conversations/c1").await.json();
    assert_eq!(
        (detail["active_turns"].as_array().unwrap().len(), &detail["conversation"]["status"]),
        (3, &json!("active"))
    );
    let waiting =
        (1..=3).map(|n| Turn { phase: TurnPhase::WaitingTool, ..turn(&format!("t{n}"), &session, "m1") }).collect();
    world.speak(&session, Talk { turns: waiting, ..Talk::default() }).await;
    assert_eq!(world.get("/api/conversations/c1").await.json()["conversation"]["status"], "waiting");
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_cancelled_once() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    world.speak(&session, Talk { turns: vec![turn("t1", &session, "m1")], ..Talk::default() }).await;
    let first = world.post("/api/turns/t1/cancel", json!({})).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text);
    let again = world.post("/api/turns/t1/cancel", json!({})).await;
    assert_eq!((&first.json()["accepted"], &again.json()["accepted"]), (&json!(true), &json!(false)));
    let open = world.open();
    assert_eq!((open.len(), open[0].kind, open[0].session_id.as_str()), (1, ActionType::Interrupt, session.as_str()));
    assert_eq!(open[0].payload.to_value(), json!({"guidance": {"cancel_turn": "t1"}, "mode": "now"}));
    let done = Turn { status: TurnStatus::Failed, cancelled: true, ..turn("t1", &session, "m1") };
    world.speak(&session, Talk { turns: vec![done], ..Talk::default() }).await;
    let late = world.post("/api/turns/t1/cancel", json!({})).await;
    assert_eq!((late.status, late.problem().as_str()), (StatusCode::CONFLICT, "turn_ended"));
    assert_eq!(world.post("/api/turns/none/cancel", json!({})).await.problem(), "turn_not_found");
}
