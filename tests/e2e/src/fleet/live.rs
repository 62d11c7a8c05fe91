//! What one gateway accepts is told by another as it is committed: over server-sent events and over a
//! WebSocket, from the beginning and from a cursor.

use std::time::{Duration, Instant};

use futures::StreamExt;
use reqwest::Response;
use schemas::limits::STREAM_POLL_MS;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::Fleet;
use crate::harness::{Harness, WAIT_MAX, assert_chain};

/// From before the action is accepted until every stream has told the step. A stream that was not told of
/// a commit would find it at its next poll, which is later for most steps.
const SOON: Duration = Duration::from_secs(2);
const _: () = assert!(2 * SOON.as_millis() < STREAM_POLL_MS as u128);
/// As long as steps are watched, streams that are told of nothing have polled.
const WATCHED: Duration = Duration::from_millis(STREAM_POLL_MS + 1_000);
/// Between two inputs: they fall at all points of the time between two polls.
const PACE: Duration = Duration::from_millis(400);
const SESSION: &str = "live";

#[tokio::test]
#[ignore = "needs PostgreSQL and RabbitMQ: `ops/test fleet` runs it"]
async fn steps_of_an_action_of_one_gateway_are_told_by_another_at_once() {
    let fleet = Fleet::start().await;
    let (here, there) = (fleet.here(), fleet.there());
    here.create(SESSION, json!({ "moniker": "echo" })).await;
    here.wait_status(SESSION, "running").await;
    let mut streams = vec![Stream::events(there, 0).await, Stream::socket(there, 0).await];
    // Until they have told something, they may still be opening.
    say(here, &mut streams, "to begin with").await;
    watch(here, &mut streams).await;

    // From a cursor on they tell the same, and go on live.
    let (cursor, last) = (streams[0].cursor() / 2, streams[0].cursor());
    for mut late in [Stream::events(there, cursor).await, Stream::socket(there, cursor).await] {
        while late.cursor() < last {
            late.read_on().await;
        }
        assert_eq!(late.behind(cursor), streams[0].behind(cursor), "from cursor {cursor} on");
        streams.push(late);
    }
    let took = say(here, &mut streams, "to end with").await;
    assert!(took < SOON, "the last step came {took:?} after its action");
    let steps = there.steps(SESSION).await;
    assert_chain(&steps);
    let made: Vec<&Value> = steps.iter().map(|step| &step["text"]).collect();
    let told: Vec<&Value> = streams[0].told.iter().filter(|event| event["type"] == "step").collect();
    assert_eq!(told.iter().map(|event| &event["step"]["text"]).collect::<Vec<_>>(), made);
}

/// Posts inputs for longer than a stream waits until it polls, each of which must be told soon.
async fn watch(here: &Harness, streams: &mut [Stream]) {
    let begun = Instant::now();
    while begun.elapsed() < WATCHED {
        let text = format!("after {:?}", begun.elapsed());
        let took = say(here, streams, &text).await;
        assert!(took < SOON, "a step came {took:?} after its action");
        tokio::time::sleep(PACE).await;
    }
}

/// Posts an input, and waits until every stream has told its step; how long that took.
async fn say(here: &Harness, streams: &mut [Stream], text: &str) -> Duration {
    let asked = Instant::now();
    here.tell(SESSION, "input", json!({ "text": text })).await;
    for stream in streams {
        while stream.read_on().await["step"]["text"] != text {}
    }
    asked.elapsed()
}

/// The events of the session, as a client of a gateway gets them.
struct Stream {
    line: Line,
    /// Where it began.
    after: u64,
    told: Vec<Value>,
}

enum Line {
    Events { response: Box<Response>, rest: Vec<u8> },
    Socket(Box<WebSocketStream<MaybeTlsStream<TcpStream>>>),
}

impl Stream {
    async fn events(client: &Harness, after: u64) -> Self {
        // The harness's own client gives no request more time than a test may wait.
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let url = format!("{}/api/sessions/{SESSION}/events", client.base_url);
        let request = http.get(url).bearer_auth(&client.token).header("last-event-id", after.to_string());
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status().as_u16(), 200);
        let line = Line::Events { response: Box::new(response), rest: Vec::new() };
        Self { line, after, told: Vec::new() }
    }

    async fn socket(client: &Harness, after: u64) -> Self {
        let address = client.base_url.replacen("http", "ws", 1);
        let url = format!("{address}/sessions/{SESSION}?after={after}&token={}", client.token);
        let (socket, _) = tokio_tungstenite::connect_async(url).await.expect("a WebSocket");
        Self { line: Line::Socket(Box::new(socket)), after, told: Vec::new() }
    }

    fn cursor(&self) -> u64 {
        self.after + self.told.len() as u64
    }

    /// Kinds and texts of what it told behind a cursor.
    fn behind(&self, cursor: u64) -> Vec<(&Value, &Value)> {
        let later = self.told.iter().filter(|event| event["offset"].as_u64() > Some(cursor));
        later.map(|event| (&event["type"], &event["step"]["text"])).collect()
    }

    /// The next event, which must be the one that follows.
    async fn read_on(&mut self) -> &Value {
        let event = tokio::time::timeout(WAIT_MAX, self.line.event()).await.expect("a further event");
        assert_eq!(event["offset"], self.cursor() + 1, "each once and in order: {event}");
        self.told.push(event);
        &self.told[self.told.len() - 1]
    }
}

impl Line {
    async fn event(&mut self) -> Value {
        match self {
            Self::Events { response, rest } => server_sent(response, rest).await,
            Self::Socket(socket) => loop {
                let message = socket.next().await.expect("no end").expect("a connection that stays");
                if let Message::Text(text) = message {
                    return serde_json::from_str(&text).expect("JSON");
                }
            },
        }
    }
}

async fn server_sent(response: &mut Response, rest: &mut Vec<u8>) -> Value {
    loop {
        while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = rest.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&event);
            // What has no data is a sign of life.
            if let Some(data) = text.lines().find_map(|line| line.strip_prefix("data:")) {
                return serde_json::from_str(data).expect("JSON");
            }
        }
        let bytes = response.chunk().await.expect("a connection that stays").expect("no end");
        rest.extend_from_slice(&bytes);
    }
}
