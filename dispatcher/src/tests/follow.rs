//! Streams of conversations: what is committed comes once and in order from any cursor; pieces of
//! replies come as they are told, and never cost anything that counts.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Method, StatusCode};
use domain::chat::ChatDelta;
use domain::conversation::stream::attempt;
use domain::ports::{ConversationKey, Live, News};
use futures::StreamExt;
use schemas::conversation::{LogKind, Talk, Turn, TurnPhase, TurnStatus};
use schemas::id::{ConversationId, Epoch, MessageId, Namespace, TurnId};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::stream::Deaf;
use super::turns::{record, said, turn};
use super::world::{READ, World, request};
use crate::Deps;

/// A client of the event stream.
struct Client {
    body: BodyDataStream,
    rest: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Frame {
    id: Option<u64>,
    event: String,
    data: Value,
}

impl Client {
    async fn open(world: &World, query: &str) -> Self {
        let path = format!("/api/conversations/c1/events{query}");
        Self::send(world, request(Method::GET, &path, READ, Body::empty())).await
    }

    async fn send(world: &World, request: axum::http::Request<Body>) -> Self {
        let response = world.app.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body().into_data_stream(), rest: String::new() }
    }

    /// The next frame; `None` when the stream is over. Heartbeats are passed over.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = self.rest.find("\n\n") {
                let text: String = self.rest.drain(..end + 2).collect();
                if let Some(frame) = parse(&text) {
                    return Some(frame);
                }
                continue;
            }
            let chunk = self.body.next().await?.unwrap();
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Frames up to the first one of this type.
    async fn until(&mut self, event: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        while frames.last().is_none_or(|last: &Frame| last.event != event) {
            frames.push(self.next().await.unwrap_or_else(|| panic!("no {event} in {frames:?}")));
        }
        frames
    }

    async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

fn parse(text: &str) -> Option<Frame> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned());
    let data: Value = serde_json::from_str(&field("data:")?).unwrap();
    let (event, id) = (field("event:").unwrap(), field("id:").map(|id| id.parse().unwrap()));
    assert_eq!((&data["v"], &data["conversation_id"]), (&json!(1), &json!("c1")));
    assert_eq!((&data["type"], data["offset"].as_u64()), (&json!(event), id), "the frame says what the event says");
    Some(Frame { id, event, data })
}

fn names(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

fn committed(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id).collect()
}

fn talk() -> ConversationKey {
    ConversationKey { namespace: Namespace::default_ns(), conversation_id: ConversationId::parse("c1").unwrap() }
}

fn piece(message: &str, attempt: u32, index: u64, text: &str) -> News {
    News::Delta {
        turn_id: TurnId::parse("t1").unwrap(),
        message_id: MessageId::parse(message).unwrap(),
        attempt,
        index,
        delta: ChatDelta::Text { part: 0, text: text.into() },
    }
}

fn done(session: &str) -> Turn {
    Turn { status: TurnStatus::Completed, completed_at_ms: Some(9), ..turn("t1", session, "m1") }
}

/// Lets everybody take what is there; with a paused clock that is a matter of turns.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_seen_as_it_happens() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let mut clients = [Client::open(&world, "").await, Client::open(&world, "").await];
    for client in &mut clients {
        let first = client.until("event").await;
        assert_eq!(names(&first), ["status", "event"]);
        assert_eq!(
            (&first[0].data["status"], &first[1].data["name"]),
            (&json!("active"), &json!("conversation_started"))
        );
    }
    world.post("/api/conversations/c1/messages", json!({"text": "hi", "message_id": "m1"})).await;
    world.speak(&session, Talk { turns: vec![turn("t1", &session, "m1")], ..Talk::default() }).await;
    settle().await;
    for (index, text) in ["a ", "cat"].into_iter().enumerate() {
        world.live.tell(&talk(), piece("t1.m", 1, index as u64, text));
        settle().await;
    }
    let call = record(
        LogKind::Move,
        "t1.1",
        "t1",
        &session,
        &json!({"move": 1, "tool_calls": [{"id": "k1", "name": "look"}]}),
    );
    world.speak(&session, Talk { log: vec![call], ..Talk::default() }).await;
    let result =
        record(LogKind::ToolResult, "t1.r", "t1", &session, &json!({"move": 1, "tool_call_id": "k1", "result": 7}));
    let log = vec![result, said("t1.m", "t1", "a1", &session, "a cat")];
    world.speak(&session, Talk { log, turns: vec![done(&session)], ..Talk::default() }).await;
    let mut seen = Vec::new();
    for client in &mut clients {
        let mut frames = client.until("turn").await;
        frames.extend(client.until("turn").await);
        let what = ["message", "turn", "token", "token", "tool_call", "tool_result", "message", "turn"];
        assert_eq!(names(&frames), what);
        assert_eq!(
            (&frames[1].data["turn"]["status"], &frames[7].data["turn"]["status"]),
            (&json!("active"), &json!("completed"))
        );
        let tokens: String = frames[2..4].iter().map(|frame| frame.data["text"].as_str().unwrap()).collect();
        assert_eq!((tokens.as_str(), &frames[6].data["message"]["text"]), ("a cat", &json!("a cat")));
        assert_eq!((&frames[2].data["attempt"], &frames[3].data["index"]), (&json!(1), &json!(1)));
        seen.push(frames);
    }
    assert_eq!(seen[0], seen[1], "two clients see the same");
}

#[tokio::test(start_paused = true)]
async fn any_cursor_is_a_clean_one() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    for n in 0..30 {
        let log = vec![
            record(LogKind::Assembly, &format!("a{n}"), "t1", &session, &json!({"request": {"secret": n}})),
            said(&format!("x{n}"), "t1", "a1", &session, "text\nwith a break"),
            record(LogKind::ProviderCall, &format!("p{n}"), "t1", &session, &json!({})),
        ];
        world.speak(&session, Talk { log, ..Talk::default() }).await;
    }
    world.patch("/api/conversations/c1", json!({"status": "completed"})).await;
    let all = Client::open(&world, "").await.rest().await;
    assert_eq!((names(&all)[0], *names(&all).last().unwrap()), ("status", "end"));
    let offsets = committed(&all);
    assert_eq!(offsets.len(), 32, "started, 30 messages, ended");
    assert!(offsets.is_sorted_by(|a, b| a < b));
    assert!(!format!("{all:?}").contains("secret"), "requests are for who looks at the turn");
    for after in [0, 1, 2, 3, 50, 91, 92, 1_000, i64::MAX as u64] {
        let part = committed(&Client::open(&world, &format!("?after={after}")).await.rest().await);
        let expected: Vec<u64> = offsets.iter().copied().filter(|offset| *offset > after).collect();
        assert_eq!(part, expected, "after {after}");
    }
    let mut again = request(Method::GET, "/api/conversations/c1/events?after=1", READ, Body::empty());
    again.headers_mut().insert("last-event-id", offsets[30].to_string().parse().unwrap());
    assert_eq!(committed(&Client::send(&world, again).await.rest().await), [offsets[31]], "a browser comes back");
}

#[tokio::test(start_paused = true)]
async fn a_dead_attempt_is_retracted_and_late_pieces_are_not_shown() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let mut client = Client::open(&world, "").await;
    client.until("event").await;
    let (turn_id, message_id) = (TurnId::parse("t1").unwrap(), MessageId::parse("t1.m").unwrap());
    for news in [
        piece("t1.m", 1, 0, "a d"),
        piece("t1.m", 1, 0, "a d"),
        News::Retract { turn_id, message_id, attempt: 1 },
        piece("t1.m", 1, 1, "og"),
        piece("t1.m", 2, 0, "a cat"),
    ] {
        world.live.tell(&talk(), news);
    }
    settle().await;
    world.speak(&session, Talk { log: vec![said("t1.m", "t1", "a1", &session, "a cat")], ..Talk::default() }).await;
    settle().await;
    world.live.tell(&talk(), piece("t1.m", 2, 1, "!"));
    world.live.tell(&talk(), piece("t2.m", 1, 0, "next"));
    let frames = client.until("message").await;
    assert_eq!(names(&frames), ["token", "retract", "token", "message"]);
    assert_eq!((&frames[1].data["attempt"], &frames[2].data["attempt"]), (&json!(1), &json!(2)));
    assert_eq!(client.next().await.unwrap().data["text"], "next");
}

/// The first worker took nothing back before it was gone, or does so when another has taken over.
#[tokio::test(start_paused = true)]
async fn what_a_lost_worker_said_is_retracted_before_its_successor_speaks() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let mut client = Client::open(&world, "").await;
    client.until("event").await;
    let (first, second) = (attempt(Epoch(1), 1), attempt(Epoch(2), 1));
    let (turn_id, message_id) = (TurnId::parse("t1").unwrap(), MessageId::parse("t1.m").unwrap());
    for news in [
        piece("t1.m", first, 0, "a "),
        piece("t1.m", first, 1, "dog"),
        piece("t1.m", second, 0, "one "),
        piece("t1.m", first, 2, " barks"),
        News::Retract { turn_id, message_id, attempt: first },
        piece("t1.m", second, 1, "cat"),
    ] {
        world.live.tell(&talk(), news);
    }
    settle().await;
    world.speak(&session, Talk { log: vec![said("t1.m", "t1", "a1", &session, "one cat")], ..Talk::default() }).await;
    let frames = client.until("message").await;
    assert_eq!(names(&frames), ["token", "token", "retract", "token", "token", "message"]);
    assert_eq!((&frames[2].data["message_id"], &frames[2].data["attempt"]), (&json!("t1.m"), &json!(first)));
    assert_eq!((&frames[3].data["text"], &frames[4].data["text"]), (&json!("one "), &json!("cat")));
}

#[tokio::test(start_paused = true)]
async fn a_gap_is_told_and_costs_nothing_that_counts() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let mut client = Client::open(&world, "").await;
    let started = client.until("event").await.pop().unwrap().id.unwrap();
    world.live.tell(&talk(), piece("t1.m", 1, 0, "a "));
    world.live.tell(&talk(), piece("t1.m", 1, 5, "cat"));
    let frames = client.until("lag").await;
    assert_eq!((names(&frames), &frames[1].data["cursor"]), (vec!["token", "lag"], &json!(started)));
    assert_eq!(client.next().await.unwrap().data["index"], 5);
    world.speak(&session, Talk { log: vec![said("t1.m", "t1", "a1", &session, "a fat cat")], ..Talk::default() }).await;
    assert_eq!(client.next().await.unwrap().data["message"]["text"], "a fat cat");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_gets_bounded_buffers_and_then_what_is_committed() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let mut client = Client::open(&world, "").await;
    client.until("event").await;
    for index in 0..3_000 {
        world.live.tell(&talk(), piece("t1.m", 1, index, "x"));
        if index % 100 == 0 {
            settle().await;
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.speak(&session, Talk { log: vec![said("t1.m", "t1", "a1", &session, "whole")], ..Talk::default() }).await;
    let frames = client.until("message").await;
    let tokens = names(&frames).iter().filter(|name| **name == "token").count();
    assert!((1..3_000).contains(&tokens), "{tokens} pieces");
    assert_eq!(names(&frames).iter().filter(|name| **name == "lag").count(), 1, "one gap, told once");
    assert_eq!(names(&frames)[frames.len() - 2], "lag", "before what is whole again");
    assert_eq!(frames.last().unwrap().data["message"]["text"], "whole");
}

#[tokio::test(start_paused = true)]
async fn without_news_the_log_is_read() {
    let world = World::with(|deps| Deps { live: Arc::new(Deaf), ..deps }).await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let mut client = Client::open(&world, "").await;
    client.until("event").await;
    world.speak(&session, Talk { log: vec![said("x1", "t1", "a1", &session, "hi")], ..Talk::default() }).await;
    let frame =
        tokio::time::timeout(Duration::from_secs(6), client.next()).await.expect("it is noticed in time").unwrap();
    assert_eq!((frame.event.as_str(), &frame.data["message"]["text"]), ("message", &json!("hi")));
}

#[tokio::test(start_paused = true)]
async fn lost_news_are_noticed_by_the_clock() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let mut client = Client::open(&world, "").await;
    client.until("event").await;
    world.speak_silently(&session, Talk { log: vec![said("x1", "t1", "a1", &session, "hi")], ..Talk::default() }).await;
    let frame =
        tokio::time::timeout(Duration::from_secs(6), client.next()).await.expect("it is noticed in time").unwrap();
    assert_eq!(frame.event, "message");
}

#[tokio::test(start_paused = true)]
async fn states_are_told_when_they_change_and_the_end_waits_for_turns() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let waits = Turn { phase: TurnPhase::WaitingTool, ..turn("t1", &session, "m1") };
    world.speak(&session, Talk { turns: vec![waits], ..Talk::default() }).await;
    let mut client = Client::open(&world, "").await;
    let first = client.until("turn").await;
    assert_eq!(names(&first), ["status", "event", "turn"]);
    assert_eq!(
        (&first[0].data["status"], &first[2].data["turn"]["phase"]),
        (&json!("waiting"), &json!("waiting_tool"))
    );
    world.speak(&session, Talk { turns: vec![turn("t1", &session, "m1")], ..Talk::default() }).await;
    let frames = client.until("status").await;
    assert_eq!((names(&frames), &frames[1].data["status"]), (vec!["turn", "status"], &json!("active")));
    world.patch("/api/conversations/c1", json!({"status": "completed"})).await;
    let frames = client.until("status").await;
    assert_eq!(frames.last().unwrap().data["status"], "completed");
    let log = vec![said("t1.m", "t1", "a1", &session, "late")];
    world.speak(&session, Talk { log, turns: vec![done(&session)], ..Talk::default() }).await;
    let rest = client.rest().await;
    assert_eq!(names(&rest), ["message", "turn", "end"], "what is under way is seen to its end");
    assert_eq!(rest[2].data["cursor"], json!(rest[0].id));
}

/// Id and status of the turns that the next frames tell of, by id.
async fn told(client: &mut Client, count: usize) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let frame = client.until("turn").await.pop().unwrap();
        let text = |field: &str| frame.data["turn"][field].as_str().unwrap().to_owned();
        seen.push((text("turn_id"), text("status")));
    }
    seen.sort();
    seen
}

/// Turns `{name}{n}` of these numbers, by age, all active or all done.
fn turns(session: &str, name: &str, numbers: std::ops::Range<i64>, is_active: bool) -> Vec<Turn> {
    let one = |n: i64| {
        let whole = if is_active { turn("t1", session, "m1") } else { done(session) };
        Turn { turn_id: TurnId::parse(&format!("{name}{n}")).unwrap(), created_at_ms: 1_000 + n, ..whole }
    };
    numbers.map(one).collect()
}

/// More than one look tells of: the others are read one by one.
#[tokio::test(start_paused = true)]
async fn whoever_was_told_that_turns_began_is_told_that_all_of_them_ended() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let mut client = Client::open(&world, "").await;
    world.speak(&session, Talk { turns: turns(&session, "t", 0..40, true), ..Talk::default() }).await;
    let began = told(&mut client, 40).await;
    assert!(began.iter().all(|(_, status)| status == "active"), "{began:?}");
    // They end between two looks, and others that are younger begin and end with them.
    let log = (40..60).map(|n| said(&format!("m{n}"), &format!("u{n}"), "a1", &session, "hi")).collect();
    let ended = [turns(&session, "t", 0..40, false), turns(&session, "u", 40..60, false)].concat();
    world.speak(&session, Talk { log, turns: ended.clone(), ..Talk::default() }).await;
    let mut expected: Vec<_> = ended.iter().map(|turn| (turn.turn_id.to_string(), "completed".to_owned())).collect();
    expected.sort();
    assert_eq!(told(&mut client, 60).await, expected);
    world.patch("/api/conversations/c1", json!({"status": "completed"})).await;
    assert!(!names(&client.rest().await).contains(&"turn"), "each is told once");
}

/// The log has all that they said; that they ended is told of the youngest.
#[tokio::test(start_paused = true)]
async fn of_turns_that_ended_long_ago_the_youngest_are_told() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let log = (0..40).map(|n| said(&format!("m{n}"), &format!("t{n}"), "a1", &session, "hi")).collect();
    world.speak(&session, Talk { log, turns: turns(&session, "t", 0..40, false), ..Talk::default() }).await;
    world.patch("/api/conversations/c1", json!({"status": "completed"})).await;
    let frames = Client::open(&world, "").await.rest().await;
    let of = |name: &str| frames.iter().filter(|frame| frame.event == name).collect::<Vec<_>>();
    assert_eq!(of("message").len(), 40);
    let ids: Vec<&str> = of("turn").iter().map(|frame| frame.data["turn"]["turn_id"].as_str().unwrap()).collect();
    assert_eq!(ids, (8..40).map(|n| format!("t{n}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn wrong_cursors_and_too_many_streams_are_refused() {
    let config = crate::Config { streams_max: 1, ..crate::Config::default() };
    let world = World::with(|deps| Deps { config, ..deps }).await;
    world.converse("c1", &["a1"]).await;
    for after in ["x", "9223372036854775808", "18446744073709551615"] {
        let reply = world.get(&format!("/api/conversations/c1/events?after={after}")).await;
        assert_eq!(reply.refusal(), ("invalid_request".into(), vec!["after".to_owned()]), "{after}");
    }
    let mut again = request(Method::GET, "/api/conversations/c1/events", READ, Body::empty());
    again.headers_mut().insert("last-event-id", "18446744073709551615".parse().unwrap());
    assert_eq!(world.send(again).await.refusal().1, ["Last-Event-ID"]);
    let open = Client::open(&world, "").await;
    assert_eq!(world.get("/api/conversations/c1/events").await.problem(), "too_many_requests");
    drop(open);
    let mut client = Client::open(&world, "").await;
    client.until("event").await;
    assert!(world.tasks.shut_down(Duration::from_secs(5)).await);
    assert!(client.next().await.is_none(), "no end: the conversation goes on elsewhere");
}
