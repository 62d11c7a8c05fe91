//! A live follower of one session or conversation: it reads the stream, hangs up now and then, and comes back at
//! another gateway with the id of the last event.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::Value;

use super::World;
use crate::diary::now_ms;
use crate::seen::{Heard, Stream};
use crate::sse::Parser;

/// Heartbeats come every 15 s.
const SILENCE: Duration = Duration::from_secs(40);
/// After the end of the run.
const PATIENCE: Duration = Duration::from_secs(400);

/// What has a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Session,
    Conversation,
}

impl Subject {
    fn plural(self) -> &'static str {
        match self {
            Self::Session => "sessions",
            Self::Conversation => "conversations",
        }
    }

    /// Of one connection; conversations are short.
    fn events_max(self) -> usize {
        match self {
            Self::Session => 400,
            Self::Conversation => 40,
        }
    }
}

/// Follows what has this id and begins so many milliseconds after the load.
pub async fn run(world: Arc<World>, (subject, id, start_ms): (Subject, String, u64), mut dice: StdRng, began: Instant) {
    let wait = (start_ms + 300).saturating_sub(began.elapsed().as_millis() as u64);
    world.rest(wait).await;
    let mut stream = Stream { session: id, ..Stream::default() };
    let mut ended: Option<Instant> = None;
    while !stream.ended {
        if world.is_over() {
            let since = *ended.get_or_insert_with(Instant::now);
            // A story that never began has no session.
            if since.elapsed() > PATIENCE || (stream.items.is_empty() && since.elapsed() > SILENCE) {
                break;
            }
        }
        let gateway = stream.connections as usize + stream.session.len();
        stream.connections += 1;
        let events_max = dice.random_range(5..subject.events_max());
        if connect(&world, subject, gateway, events_max, &mut stream).await.is_err() {
            tokio::time::sleep(Duration::from_millis(dice.random_range(50..400))).await;
        }
    }
    let streams = match subject {
        Subject::Session => &world.streams,
        Subject::Conversation => &world.talk_streams,
    };
    if let Ok(mut streams) = streams.lock()
        && (stream.ended || !stream.items.is_empty())
    {
        streams.push(stream);
    }
}

/// One connection, until it breaks, falls silent, or has brought so many events.
async fn connect(
    world: &World,
    subject: Subject,
    gateway: usize,
    events_max: usize,
    stream: &mut Stream,
) -> Result<()> {
    let url = format!("{}/api/{}/{}/events", world.api.of(gateway), subject.plural(), stream.session);
    let mut request = world.api.request(reqwest::Method::GET, url);
    if let Some(last) = stream.items.last() {
        request = request.header("Last-Event-ID", last.offset.to_string());
    }
    let response = tokio::time::timeout(Duration::from_secs(12), request.send()).await??;
    if response.status().as_u16() != 200 {
        bail!("{}", response.status());
    }
    let (mut bytes, mut parser, mut events) = (response.bytes_stream(), Parser::default(), 0);
    loop {
        let chunk = tokio::time::timeout(SILENCE, bytes.next()).await?.context("the end of the connection")??;
        for event in parser.feed(&chunk) {
            if event.kind == "end" {
                stream.ended = true;
                return Ok(());
            }
            // Pieces of replies and the states of turns have no place in the log.
            let Some(heard) = heard(&event.data)? else { continue };
            stream.items.push(heard);
            events += 1;
            // Whatever else has arrived comes again.
            if events >= events_max {
                return Ok(());
            }
        }
    }
}

fn heard(data: &str) -> Result<Option<Heard>> {
    let event: Value = serde_json::from_str(data)?;
    let Some(offset) = event["offset"].as_u64() else { return Ok(None) };
    let named = [&event["step"]["id"], &event["data"]["action_id"], &event["message"]["message_id"]];
    let what = named.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned();
    let kind = event["type"].as_str().context("a type")?.to_owned();
    Ok(Some(Heard { offset, kind, what, at_ms: now_ms() }))
}
