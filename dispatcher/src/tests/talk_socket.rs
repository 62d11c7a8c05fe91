//! The WebSocket of a conversation, over a real socket and in both directions.

use std::net::SocketAddr;

use domain::chat::ChatDelta;
use domain::ports::{ConversationKey, Live, News};
use futures::{SinkExt, StreamExt};
use schemas::conversation::Talk;
use schemas::id::{ConversationId, MessageId, Namespace, TurnId};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::socket::serve;
use super::turns::{said, turn};
use super::world::{ACT, OTHER, READ, World};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(address: SocketAddr, token: &str) -> Socket {
    let request = format!("ws://{address}/conversations/c1?token={token}").into_client_request().unwrap();
    connect_async(request).await.unwrap().0
}

async fn next(socket: &mut Socket) -> Value {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The next frame of a type.
async fn of(socket: &mut Socket, kind: &str) -> Value {
    loop {
        let frame = next(socket).await;
        if frame["type"] == kind {
            return frame;
        }
    }
}

async fn ask(socket: &mut Socket, frame: Value) -> Value {
    socket.send(Message::Text(frame.to_string().into())).await.unwrap();
    of(socket, "answer").await
}

#[tokio::test]
async fn frames_go_out_and_messages_come_in() {
    let world = World::new().await;
    let session = world.converse("c1", &["a1"]).await.remove(0);
    let address = serve(&world).await;
    let (mut one, mut two) = (connect(address, ACT).await, connect(address, READ).await);
    assert_eq!(next(&mut two).await["type"], "status");
    let answer = ask(&mut one, json!({"type": "message", "id": "r1", "text": "hi", "message_id": "m1"})).await;
    assert_eq!((&answer["id"], &answer["posted"]["message_id"]), (&json!("r1"), &json!("m1")));
    assert_eq!(answer["posted"]["responders"][0]["outcome"], "turn");
    assert_eq!(of(&mut two, "message").await["message"]["text"], "hi");
    world.speak(&session, Talk { turns: vec![turn("t1", &session, "m1")], ..Talk::default() }).await;
    assert_eq!(of(&mut two, "turn").await["turn"]["status"], "active");
    let key =
        ConversationKey { namespace: Namespace::default_ns(), conversation_id: ConversationId::parse("c1").unwrap() };
    let delta = News::Delta {
        turn_id: TurnId::parse("t1").unwrap(),
        message_id: MessageId::parse("t1.m").unwrap(),
        attempt: 1,
        index: 0,
        delta: ChatDelta::Reasoning { part: 0, text: "hm".into() },
    };
    world.live.tell(&key, delta);
    let token = of(&mut two, "token").await;
    assert_eq!((&token["kind"], &token["text"]), (&json!("reasoning"), &json!("hm")));
    let cancelled = ask(&mut one, json!({"type": "cancel_turn", "turn_id": "t1"})).await;
    assert_eq!((&cancelled["cancelled"]["accepted"], cancelled.get("problem")), (&json!(true), None));
    world.speak(&session, Talk { log: vec![said("t1.m", "t1", "a1", &session, "hm.")], ..Talk::default() }).await;
    let (first, second) = (of(&mut one, "message").await, of(&mut two, "message").await);
    let answer = if first["message"]["message_id"] == "m1" { of(&mut one, "message").await } else { first };
    assert_eq!(answer, second, "both see the same");
}

#[tokio::test]
async fn what_a_client_sends_is_checked_and_the_socket_stays() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    let address = serve(&world).await;
    let mut socket = connect(address, ACT).await;
    for (frame, code, field) in [
        (json!({"type": "message", "txt": "x"}), "invalid_request", "txt"),
        (json!({"type": "shout"}), "invalid_request", "type"),
        (json!([1]), "invalid_request", "frame"),
        (json!({"type": "cancel_turn"}), "invalid_request", "turn_id"),
        (json!({"type": "message", "text": "x", "id": 7}), "invalid_request", "id"),
    ] {
        let answer = ask(&mut socket, frame.clone()).await;
        assert_eq!(
            (&answer["problem"]["code"], &answer["problem"]["errors"][0]["field"]),
            (&json!(code), &json!(field)),
            "{frame}"
        );
    }
    let unknown = ask(&mut socket, json!({"type": "cancel_turn", "turn_id": "none", "id": "r2"})).await;
    assert_eq!((&unknown["problem"]["code"], &unknown["id"]), (&json!("turn_not_found"), &json!("r2")));
    socket.send(Message::Text("{".into())).await.unwrap();
    assert_eq!(of(&mut socket, "answer").await["problem"]["code"], "invalid_json");
    let fine = ask(&mut socket, json!({"type": "message", "text": "x"})).await;
    assert_eq!(fine["posted"]["responders"][0]["outcome"], "turn");
    let mut reader = connect(address, READ).await;
    let refused = ask(&mut reader, json!({"type": "message", "text": "x"})).await;
    assert_eq!(refused["problem"]["code"], "forbidden", "reading is not writing");
}

#[tokio::test]
async fn the_end_is_a_clean_close_and_refusals_come_before_the_upgrade() {
    let world = World::new().await;
    world.converse("c1", &["a1"]).await;
    let address = serve(&world).await;
    let mut socket = connect(address, READ).await;
    world.patch("/api/conversations/c1", json!({"status": "completed"})).await;
    of(&mut socket, "end").await;
    let close = loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Close(frame) => break frame.map(|frame| u16::from(frame.code)),
            _ => continue,
        }
    };
    assert_eq!(close, Some(1000));
    for (path, status) in [
        ("/conversations/c1".to_owned(), 401),
        (format!("/conversations/c1?token={OTHER}"), 404),
        (format!("/conversations/c1?token={READ}&after=x"), 400),
    ] {
        match connect_async(format!("ws://{address}{path}").into_client_request().unwrap()).await {
            Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), status, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
    let plain = world.get("/conversations/c1").await;
    assert!(plain.text.contains("/events"), "plain HTTP is told where to go: {}", plain.text);
}
