//! Server-sent events: each committed event once, in order, from any cursor, with an end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, BodyDataStream};
use axum::http::{Method, StatusCode};
use domain::ports::{ConversationKey, Listening, Live, News, Notice, Subscription};
use futures::StreamExt;
use schemas::id::SessionKey;
use schemas::session::SessionStatus;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::world::{READ, World, request};
use crate::{Config, Deps};

/// A client that reads frames one by one.
struct Client {
    body: BodyDataStream,
    rest: String,
}

#[derive(Debug)]
struct Frame {
    id: u64,
    event: String,
    data: Value,
}

impl Client {
    async fn open(world: &World, path: &str) -> Self {
        let response = world.app.clone().oneshot(request(Method::GET, path, READ, Body::empty())).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body().into_data_stream(), rest: String::new() }
    }

    /// The next frame; `None` when the stream is over. Heartbeats are passed over.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = self.rest.find("\n\n") {
                let text: String = self.rest.drain(..end + 2).collect();
                match parse(&text) {
                    Some(frame) => return Some(frame),
                    None => continue,
                }
            }
            let chunk = self.body.next().await?.unwrap();
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn take(&mut self, count: usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        for _ in 0..count {
            frames.push(self.next().await.expect("another frame"));
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
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    let data = field("data")?;
    Some(Frame {
        id: field("id")?.parse().unwrap(),
        event: field("event")?.to_owned(),
        data: serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}")),
    })
}

fn offsets(frames: &[Frame]) -> Vec<u64> {
    frames.iter().map(|frame| frame.id).collect()
}

/// Checks that frames are all that follows `after`, and that they end as they should.
fn check_whole(frames: &[Frame], after: u64, last: u64) {
    let (end, rest) = frames.split_last().expect("an end");
    assert_eq!((end.event.as_str(), end.id), ("end", last.max(after)));
    assert_eq!(offsets(rest), (after + 1..=last).collect::<Vec<_>>());
    for frame in rest {
        assert_eq!((&frame.data["type"], &frame.data["offset"]), (&json!(frame.event), &json!(frame.id)));
        assert_eq!(frame.data.get("step").is_some(), frame.event == "step");
        assert_eq!(frame.data.get("data").is_some(), frame.event != "step");
    }
}

/// created, 6 steps, status | 4 steps | 1 step, status: 14 offsets, the first 8 in the archive.
async fn ended() -> World {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 6, SessionStatus::Running).await;
    world.archive_all().await;
    world.commit("s1", 4, SessionStatus::Running).await;
    world.commit("s1", 1, SessionStatus::Completed).await;
    world
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_is_sent_whole_from_any_cursor() {
    let world = ended().await;
    for after in 0..=14 {
        let frames = Client::open(&world, &format!("/api/sessions/s1/events?after={after}")).await.rest().await;
        check_whole(&frames, after, 14);
    }
    world.archive_all().await;
    let frames = Client::open(&world, "/api/sessions/s1/events").await.rest().await;
    check_whole(&frames, 0, 14);
    assert_eq!((&frames[0].event, &frames[7].event), (&"created".to_owned(), &"status".to_owned()));
    assert_eq!(frames[1].data["step"]["text"], "step 0");
    assert_eq!(frames[1].data["step"]["state"], json!({"n": 1}), "line breaks of stored JSON do no harm");
}

#[tokio::test(start_paused = true)]
async fn the_last_event_id_wins_over_the_address() {
    let world = ended().await;
    let mut request = request(Method::GET, "/api/sessions/s1/events?after=2", READ, Body::empty());
    request.headers_mut().insert("last-event-id", "12".parse().unwrap());
    let response = world.app.clone().oneshot(request).await.unwrap();
    let client = Client { body: response.into_body().into_data_stream(), rest: String::new() };
    check_whole(&client.rest().await, 12, 14);
}

#[tokio::test(start_paused = true)]
async fn a_live_session_is_followed_to_its_end() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let mut client = Client::open(&world, "/api/sessions/s1/events").await;
    world.commit("s1", 2, SessionStatus::Running).await;
    let mut frames = client.take(4).await;
    for steps in [1, 3, 0, 2] {
        world.commit("s1", steps, SessionStatus::Running).await;
    }
    frames.extend(client.take(6).await);
    world.commit("s1", 0, SessionStatus::Paused).await;
    world.commit("s1", 0, SessionStatus::Running).await;
    world.commit("s1", 1, SessionStatus::Stopped).await;
    frames.extend(client.rest().await);
    check_whole(&frames, 0, 14);
}

#[tokio::test(start_paused = true)]
async fn a_session_in_error_stays_open_because_it_may_be_resumed() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 1, SessionStatus::Error).await;
    let mut client = Client::open(&world, "/api/sessions/s1/events").await;
    assert_eq!(offsets(&client.take(3).await), [1, 2, 3]);
    assert!(tokio::time::timeout(Duration::from_secs(12), client.next()).await.is_err());
    world.commit("s1", 1, SessionStatus::Running).await;
    assert_eq!(offsets(&client.take(2).await), [4, 5]);
}

#[tokio::test(start_paused = true)]
async fn lost_and_repeated_notices_do_no_harm() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let mut client = Client::open(&world, "/api/sessions/s1/events").await;
    let first = world.commit_silently("s1", 1, SessionStatus::Running).await;
    let second = world.commit_silently("s1", 1, SessionStatus::Running).await;
    // The second comes alone, then both once more, out of order.
    for notice in [&second, &first, &second] {
        world.live.publish(vec![Notice::clone(notice)]);
    }
    assert_eq!(offsets(&client.take(4).await), [1, 2, 3, 4]);
    // Nobody tells of the third at all.
    world.commit_silently("s1", 1, SessionStatus::Running).await;
    let frame = tokio::time::timeout(Duration::from_secs(6), client.next()).await.expect("it is noticed in time");
    assert_eq!(frame.unwrap().id, 5);
}

/// A source that is always gone.
pub(super) struct Deaf;

#[async_trait]
impl Live for Deaf {
    fn publish(&self, _: Vec<Notice>) {}

    fn subscribe(&self, _: &SessionKey) -> Box<dyn Subscription> {
        Box::new(Deaf)
    }

    fn tell(&self, _: &ConversationKey, _: News) {}

    fn listen(&self, _: &ConversationKey) -> Box<dyn Listening> {
        Box::new(Deaf)
    }
}

#[async_trait]
impl Listening for Deaf {
    async fn next(&mut self) -> Option<News> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        None
    }
}

#[async_trait]
impl Subscription for Deaf {
    async fn next(&mut self) -> Option<Notice> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        None
    }
}

#[tokio::test(start_paused = true)]
async fn without_notices_the_journal_is_read() {
    let world = World::with(|deps| Deps { live: Arc::new(Deaf), ..deps }).await;
    world.create("s1", "a1", "count").await;
    let mut client = Client::open(&world, "/api/sessions/s1/events").await;
    world.commit("s1", 2, SessionStatus::Running).await;
    assert_eq!(offsets(&client.take(4).await), [1, 2, 3, 4]);
    world.commit("s1", 1, SessionStatus::Completed).await;
    check_whole(&client.rest().await, 4, 6);
}

#[tokio::test(start_paused = true)]
async fn many_clients_see_the_same() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let mut clients = Vec::new();
    for after in [0, 0, 3, 5] {
        clients.push((after, Client::open(&world, &format!("/api/sessions/s1/events?after={after}")).await));
    }
    for _ in 0..5 {
        world.commit("s1", 50, SessionStatus::Running).await;
    }
    world.commit("s1", 50, SessionStatus::Completed).await;
    for (after, client) in clients {
        check_whole(&client.rest().await, after, 303);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_says_that_it_is_alive() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let mut client = Client::open(&world, "/api/sessions/s1/events").await;
    let chunk = client.body.next().await.unwrap().unwrap();
    assert_eq!(std::str::from_utf8(&chunk).unwrap(), ": alive\n\n");
}

#[tokio::test(start_paused = true)]
async fn open_streams_are_bounded_and_given_back() {
    let config = Config { streams_max: 2, ..Config::default() };
    let world = World::with(|deps| Deps { config, ..deps }).await;
    world.create("s1", "a1", "count").await;
    let one = Client::open(&world, "/api/sessions/s1/events").await;
    let _two = Client::open(&world, "/api/sessions/s1/events").await;
    let reply = world.get("/api/sessions/s1/events").await;
    assert_eq!((reply.status.as_u16(), reply.problem().as_str()), (429, "too_many_requests"));
    drop(one);
    Client::open(&world, "/api/sessions/s1/events").await;
}

#[tokio::test(start_paused = true)]
async fn streams_close_when_the_process_ends() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 1, SessionStatus::Running).await;
    let mut client = Client::open(&world, "/api/sessions/s1/events").await;
    assert_eq!(offsets(&client.take(3).await), [1, 2, 3]);
    assert!(world.tasks.shut_down(Duration::from_secs(5)).await);
    assert!(client.next().await.is_none(), "no end event: the session goes on elsewhere");
}

#[tokio::test(start_paused = true)]
async fn wrong_cursors_are_refused() {
    let world = ended().await;
    let (small, large) = ("after=9223372036854775808", "after=18446744073709551615");
    for query in ["after=x", "after=-1", "afer=1", "after=1&after=2", small, large] {
        let reply = world.get(&format!("/api/sessions/s1/events?{query}")).await;
        assert_eq!(reply.problem(), "invalid_request", "{query}");
    }
    for id in ["12a", "", "-1", "9223372036854775808", "18446744073709551615", "18446744073709551616"] {
        let reply = world.send(again(id)).await;
        assert_eq!(reply.refusal(), ("invalid_request".into(), vec!["Last-Event-ID".to_owned()]), "{id}");
    }
}

/// As a browser that comes back.
fn again(id: &str) -> axum::http::Request<Body> {
    let mut request = request(Method::GET, "/api/sessions/s1/events", READ, Body::empty());
    request.headers_mut().insert("last-event-id", id.parse().unwrap());
    request
}

#[tokio::test(start_paused = true)]
async fn behind_the_largest_cursor_is_nothing_but_the_end() {
    let world = ended().await;
    let largest = i64::MAX as u64;
    let frames = Client::open(&world, &format!("/api/sessions/s1/events?after={largest}")).await.rest().await;
    check_whole(&frames, largest, 14);
    let response = world.app.clone().oneshot(again(&largest.to_string())).await.unwrap();
    let client = Client { body: response.into_body().into_data_stream(), rest: String::new() };
    check_whole(&client.rest().await, largest, 14);
}
