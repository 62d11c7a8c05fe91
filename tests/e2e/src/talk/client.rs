//! A client on the WebSocket of a conversation.

use std::time::Instant;

use futures::StreamExt;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::harness::{Harness, WAIT_MAX};

/// Whatever is said from now on is told to it as it happens.
pub struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    /// Connected, and told how the conversation stands.
    pub async fn connect(fleet: &Harness, conversation: &str) -> Self {
        let address = fleet.base_url.replacen("http", "ws", 1);
        let url = format!("{address}/conversations/{conversation}?token={}", fleet.token);
        let (socket, _) = tokio_tungstenite::connect_async(url).await.expect("a WebSocket");
        let mut client = Self(socket);
        let first = client.frame().await;
        assert_eq!(first["type"], "status", "{first}");
        client
    }

    /// Frames with the times of their arrival, up to the one that says that a turn is completed.
    pub async fn follow(mut self) -> Vec<(Instant, Value)> {
        to_the_end(async || self.frame().await).await
    }

    async fn frame(&mut self) -> Value {
        let read = async {
            loop {
                let message = self.0.next().await.expect("no end").expect("a connection that stays");
                if let Message::Text(text) = message {
                    return text;
                }
            }
        };
        let text = tokio::time::timeout(WAIT_MAX, read).await.expect("a further frame");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// The frames of a stream with the times of their arrival, up to the one that says that a turn is completed.
pub async fn to_the_end(mut next: impl AsyncFnMut() -> Value) -> Vec<(Instant, Value)> {
    let mut told = Vec::new();
    loop {
        let frame = next().await;
        let is_last = frame["type"] == "turn" && frame["turn"]["status"] == "completed";
        told.push((Instant::now(), frame));
        if is_last {
            return told;
        }
    }
}
