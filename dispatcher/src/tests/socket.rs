//! The WebSocket of a session, over a real socket.

use std::net::SocketAddr;

use futures::{SinkExt, StreamExt};
use schemas::session::SessionStatus;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::world::{READ, World};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub async fn serve(world: &World) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = world.app.clone();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

fn to(address: SocketAddr, path: &str, header: Option<(&'static str, &str)>) -> Request {
    let mut request = format!("ws://{address}{path}").into_client_request().unwrap();
    if let Some((name, value)) = header {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

/// Events up to the close frame, and its code.
async fn read(mut socket: Socket) -> (Vec<Value>, Option<u16>) {
    let mut events = Vec::new();
    while let Some(message) = socket.next().await {
        match message.unwrap() {
            Message::Text(text) => events.push(serde_json::from_str(&text).unwrap()),
            Message::Close(frame) => return (events, frame.map(|frame| frame.code.into())),
            _ => {}
        }
    }
    (events, None)
}

fn offsets(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["offset"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn frames_are_the_events_of_the_stream() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 3, SessionStatus::Running).await;
    let address = serve(&world).await;
    let authorization = format!("Bearer {READ}");
    let request = to(address, "/sessions/s1?after=1", Some(("authorization", &authorization)));
    let (mut socket, _) = connect_async(request).await.unwrap();
    let first: Value = match socket.next().await.unwrap().unwrap() {
        Message::Text(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!((&first["offset"], &first["step"]["text"]), (&Value::from(2), &Value::from("step 0")));
    socket.send(Message::Ping("hello".into())).await.unwrap();
    world.commit("s1", 2, SessionStatus::Completed).await;
    let (events, code) = read(socket).await;
    assert_eq!(offsets(&events), [3, 4, 5, 6, 7, 8, 8]);
    assert_eq!((&events.last().unwrap()["type"], code), (&Value::from("end"), Some(1000)));
}

#[tokio::test]
async fn the_token_may_come_as_subprotocol_or_in_the_query() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 1, SessionStatus::Completed).await;
    let address = serve(&world).await;
    let offered = format!("stepfleet, bearer.{READ}");
    let request = to(address, "/sessions/s1", Some(("sec-websocket-protocol", &offered)));
    let (socket, response) = connect_async(request).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "stepfleet", "the token is not echoed");
    assert_eq!(offsets(&read(socket).await.0), [1, 2, 3, 3]);
    let (socket, _) = connect_async(to(address, &format!("/sessions/s1?token={READ}"), None)).await.unwrap();
    assert_eq!(offsets(&read(socket).await.0), [1, 2, 3, 3]);
}

#[tokio::test]
async fn refusals_come_before_the_upgrade() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let address = serve(&world).await;
    for (path, status) in [
        ("/sessions/s1".to_owned(), 401),
        ("/sessions/s1?token=wrong".to_owned(), 401),
        (format!("/sessions/none?token={READ}"), 404),
        (format!("/sessions/s1?token={READ}&after=x"), 400),
    ] {
        match connect_async(to(address, &path, None)).await {
            Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), status, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
    let reply = world.get("/sessions/s1").await;
    assert_eq!(reply.problem(), "invalid_request");
    assert!(reply.text.contains("/events"), "plain HTTP is told where to go");
}

#[tokio::test]
async fn the_end_of_the_process_is_a_clean_close() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let address = serve(&world).await;
    let (socket, _) = connect_async(to(address, &format!("/sessions/s1?token={READ}"), None)).await.unwrap();
    world.tasks.stop().cancel();
    let (events, code) = read(socket).await;
    assert_eq!((events.len(), code), (0, Some(1013)));
}
