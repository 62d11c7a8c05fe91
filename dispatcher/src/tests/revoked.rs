//! What is open when its token is revoked ends within seconds, and nothing else does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, BodyDataStream};
use axum::http::{Method, StatusCode};
use domain::failure::Failure;
use domain::ports::{Scope, TokenRow, Tokens};
use futures::{SinkExt, StreamExt};
use schemas::id::Namespace;
use schemas::problem::Code;
use schemas::session::SessionStatus;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::socket::serve;
use super::world::{ACT, READ, World, request, token_row};
use crate::Deps;
use crate::caller::Caller;

/// What is promised are five seconds.
const SOON: Duration = Duration::from_secs(6);

async fn open(world: &World, token: &str, path: &str) -> BodyDataStream {
    let response = world.app.clone().oneshot(request(Method::GET, path, token, Body::empty())).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    response.into_body().into_data_stream()
}

/// Reads on until something was sent, which must be soon.
async fn until(body: &mut BodyDataStream, what: &str) {
    let read = async {
        let mut text = String::new();
        while !text.contains(what) {
            let chunk = body.next().await.unwrap_or_else(|| panic!("no {what}, and the end, after {text}")).unwrap();
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    };
    timeout(SOON, read).await.unwrap_or_else(|_| panic!("no {what}"));
}

/// Reads to the end, which must be soon; returns what still came.
async fn rest(body: &mut BodyDataStream) -> String {
    let read = async {
        let mut text = String::new();
        while let Some(chunk) = body.next().await {
            text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
        text
    };
    timeout(SOON, read).await.expect("the stream ends")
}

#[tokio::test(start_paused = true)]
async fn streams_end_with_their_token_and_others_go_on() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let paths = [format!("/api/sessions/{session}/events"), "/api/conversations/c1/events".to_owned()];
    let (mut ending, mut staying) = (Vec::new(), Vec::new());
    for path in &paths {
        ending.push(open(&world, ACT, path).await);
        staying.push(open(&world, READ, path).await);
    }
    assert!(world.store.remove(ACT).await.unwrap());
    for body in &mut ending {
        rest(body).await;
    }
    for path in &paths {
        assert_eq!(world.get_as(ACT, path).await.status, StatusCode::UNAUTHORIZED, "nor is it opened again");
    }
    world.commit(&session, 1, SessionStatus::Running).await;
    world.post("/api/conversations/c1/messages", json!({"text": "still here"})).await;
    for (body, what) in staying.iter_mut().zip(["step 0", "still here"]) {
        until(body, what).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_buffered_is_not_sent_any_more() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let mut body = open(&world, ACT, "/api/sessions/s1/events").await;
    world.commit("s1", 3, SessionStatus::Running).await;
    until(&mut body, "created").await;
    assert!(world.store.remove(ACT).await.unwrap());
    sleep(SOON).await;
    assert_eq!(rest(&mut body).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_changed_is_looked_at_anew() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let mut body = open(&world, ACT, "/api/sessions/s1/events").await;
    world.store.put(&token_row(ACT, Namespace::default_ns(), vec![Scope::Read])).await.unwrap();
    rest(&mut body).await;
    let mut body = open(&world, ACT, "/api/sessions/s1/events").await;
    sleep(2 * SOON).await;
    world.commit("s1", 1, SessionStatus::Running).await;
    until(&mut body, "step 0").await;
}

/// The tokens of a store that is away at times.
struct Shaky {
    tokens: Arc<dyn Tokens>,
    away: Arc<AtomicBool>,
}

#[async_trait]
impl Tokens for Shaky {
    async fn put(&self, token: &TokenRow) -> Result<(), Failure> {
        self.tokens.put(token).await
    }

    async fn all(&self) -> Result<Vec<TokenRow>, Failure> {
        if self.away.load(Ordering::Relaxed) {
            return Err(Failure::unavailable("the store is away"));
        }
        self.tokens.all().await
    }

    async fn remove(&self, name: &str) -> Result<bool, Failure> {
        self.tokens.remove(name).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_ends_no_stream() {
    let away = Arc::new(AtomicBool::new(false));
    let shaky = |tokens| Arc::new(Shaky { tokens, away: away.clone() });
    let world = World::with(|deps| Deps { tokens: shaky(deps.tokens.clone()), ..deps }).await;
    world.create("s1", "a1", "count").await;
    let mut body = open(&world, ACT, "/api/sessions/s1/events").await;
    away.store(true, Ordering::Relaxed);
    assert!(world.store.remove(ACT).await.unwrap());
    sleep(4 * SOON).await;
    world.commit("s1", 1, SessionStatus::Running).await;
    until(&mut body, "step 0").await;
    away.store(false, Ordering::Relaxed);
    rest(&mut body).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_is_refused() {
    let world = World::new().await;
    let begun = Instant::now();
    let revoke = async {
        sleep(Duration::from_secs(1)).await;
        assert!(world.store.remove(ACT).await.unwrap());
    };
    let (reply, ()) = tokio::join!(world.post_as(ACT, "/api/pools/python/claim?wait_s=20", json!({})), revoke);
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::UNAUTHORIZED, "unauthorized"));
    assert!(begun.elapsed() < SOON + Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn whose_token_is_gone_may_do_nothing() {
    let revoked = CancellationToken::new();
    let row = token_row("t", Namespace::default_ns(), vec![Scope::Admin]);
    let caller = Caller::of(&row, &revoked).unwrap();
    assert!(caller.need(Scope::Admin).is_ok());
    revoked.cancel();
    assert_eq!(caller.need(Scope::Read).unwrap_err().0.code, Code::Unauthorized);
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(address: SocketAddr, path: &str) -> Socket {
    let request = format!("ws://{address}{path}?token={ACT}").into_client_request().unwrap();
    connect_async(request).await.unwrap().0
}

/// The code that a socket is closed with.
async fn closed(socket: &mut Socket) -> Option<u16> {
    loop {
        if let Message::Close(frame) = socket.next().await.unwrap().unwrap() {
            return frame.map(|frame| frame.code.into());
        }
    }
}

#[tokio::test]
async fn sockets_are_closed_with_their_token_and_take_nothing_more() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let address = serve(&world).await;
    let mut watching = connect(address, &format!("/sessions/{session}")).await;
    let mut talking = connect(address, "/conversations/c1").await;
    assert!(world.store.remove(ACT).await.unwrap());
    // A stranger makes the gateway look at the store without delay, if the last one was not just here.
    sleep(Duration::from_millis(300)).await;
    assert_eq!(world.get_as("stranger", "/api/sessions").await.status, StatusCode::UNAUTHORIZED);
    let late = json!({"type": "message", "text": "too late"}).to_string();
    talking.send(Message::Text(late.into())).await.unwrap();
    for socket in [&mut watching, &mut talking] {
        let code = timeout(SOON, closed(socket)).await.expect("it is closed");
        assert_eq!(code, Some(1008));
    }
    let said = world.get("/api/conversations/c1/messages").await;
    assert_eq!(said.status, StatusCode::OK, "{}", said.text);
    assert!(!said.text.contains("too late"), "{}", said.text);
}
