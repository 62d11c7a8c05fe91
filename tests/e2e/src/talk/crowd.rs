//! Many conversations at a time, each with a stream of its own: no piece of a reply is lost, doubled, out of order
//! or in the wrong stream.

use std::time::Instant;

use futures::future::{LocalBoxFuture, join_all};
use futures::{FutureExt, StreamExt, stream};
use reqwest::{Client as Http, Response};
use serde_json::{Value, json};

use super::client::{Client, to_the_end};
use super::desk::{converse, item, open_on, said, say};
use crate::harness::{Harness, WAIT_MAX};

const STREAMS: usize = 300;
/// Requests under way at a time.
const REQUESTS: usize = 32;
/// Before the first piece of a reply, and between two: the last reply begins well before the first one ends.
const THINKS_MS: u64 = 2_000;
const PACE_MS: u64 = 500;
/// What is told after the question, which differs from conversation to conversation.
const TOLD: &str = "is what I was asked, and I tell it word by word";

/// Frames with the times of their arrival, up to the end of the turn.
type Told = Vec<(Instant, Value)>;

fn conversation(number: usize) -> String {
    format!("crowd-{number}")
}

fn asked(number: usize) -> String {
    format!("Question {number}")
}

fn answer(number: usize) -> String {
    format!("{} {TOLD}", asked(number))
}

#[tokio::test]
async fn three_hundred_streams_at_a_time_tell_each_piece_once_and_in_order() {
    let text = format!("{{{{prompt}}}} {TOLD}");
    let script = json!({"rules": [], "otherwise": {"text": text, "delay_ms": THINKS_MS, "delta_ms": PACE_MS}});
    let persona = json!({"system_prompt": "You help.", "model_profile_id": "m"});
    let definitions = [
        item("project", json!({"id": "p1", "name": "P1"})),
        item("model_profile", json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "scripted"})),
        item("agent", json!({"id": "ben", "name": "Ben", "project_ids": ["p1"], "persona_inline": persona})),
    ];
    let (harness, _) = open_on(script, &definitions).await;
    let fleet = &harness;
    // The harness's own client gives no request more time than a test may wait.
    let http = Http::builder().no_proxy().build().expect("a client");
    let opened = stream::iter(0..STREAMS).map(|number| listen(fleet, &http, number)).buffered(REQUESTS);
    let streams: Vec<LocalBoxFuture<'static, Told>> = opened.collect().await;
    let said_to = stream::iter(0..STREAMS)
        .map(|number| async move { say(fleet, &conversation(number), &asked(number)).await })
        .buffered(REQUESTS)
        .collect::<Vec<String>>();
    let (told, turns) = tokio::join!(join_all(streams), said_to);
    for (number, (told, turn)) in told.iter().zip(&turns).enumerate() {
        judge(told, number, turn);
    }
    let begun = told.iter().filter_map(|told| told.iter().find(|(_, frame)| frame["type"] == "token"));
    let ends = told.iter().filter_map(|told| told.last());
    let (last_begun, first_end) = (begun.map(|(at, _)| at).max(), ends.map(|(at, _)| at).min());
    assert!(last_begun < first_end, "all replies are under way at a time: {last_begun:?}, {first_end:?}");
    let kept: Vec<_> = stream::iter(0..STREAMS)
        .map(|number| async move { said(fleet, &conversation(number)).await })
        .buffered(REQUESTS)
        .collect()
        .await;
    let pair = |who: &str, text: String| (who.to_owned(), text);
    for (number, kept) in kept.into_iter().enumerate() {
        assert_eq!(kept, [pair("user", asked(number)), pair("agent", answer(number))], "the transcript");
    }
}

/// A conversation, and who listens to it from now on: by server-sent events, or over a WebSocket.
async fn listen(fleet: &Harness, http: &Http, number: usize) -> LocalBoxFuture<'static, Told> {
    let conversation = conversation(number);
    converse(fleet, &conversation, &["ben"]).await;
    if number.is_multiple_of(2) {
        Events::open(fleet, http, &conversation).await.follow().boxed_local()
    } else {
        Client::connect(fleet, &conversation).await.follow().boxed_local()
    }
}

/// The frames of one stream: the reply in pieces, then whole, then the end of the turn.
fn judge(told: &[(Instant, Value)], number: usize, turn: &str) {
    let frames: Vec<&Value> = told.iter().map(|(_, frame)| frame).collect();
    let whole = answer(number);
    let id = conversation(number);
    assert!(frames.iter().all(|frame| frame["conversation_id"] == id), "frames of {id} alone: {frames:?}");
    let is_gap = |frame: &&Value| frame["type"] == "lag" || frame["type"] == "retract";
    assert!(!frames.iter().any(is_gap), "nothing is left out or taken back: {frames:?}");

    let of =
        |is_it: &dyn Fn(&Value) -> bool| -> Vec<usize> { (0..frames.len()).filter(|at| is_it(frames[*at])).collect() };
    let messages = of(&|frame: &Value| frame["type"] == "message" && frame["message"]["sender_type"] == "agent");
    let &[said] = messages.as_slice() else { panic!("one message of the agent: {frames:?}") };
    let message = &frames[said]["message"];
    assert_eq!(message["text"], whole, "{frames:?}");

    let pieces = of(&|frame: &Value| frame["type"] == "token");
    let texts: Vec<&str> = pieces.iter().filter_map(|at| frames[*at]["text"].as_str()).collect();
    let words: Vec<&str> = whole.split_inclusive(char::is_whitespace).collect();
    assert_eq!(texts, words, "each piece once and in order");
    for (index, at) in pieces.iter().enumerate() {
        let piece = frames[*at];
        assert!(*at < said, "no piece after the whole: {frames:?}");
        assert_eq!((&piece["index"], &piece["kind"]), (&json!(index), &json!("text")), "{frames:?}");
        assert_eq!((&piece["message_id"], &piece["turn_id"]), (&message["message_id"], &json!(turn)), "{frames:?}");
        assert_eq!(piece["attempt"], frames[pieces[0]]["attempt"], "{frames:?}");
    }
    let end = frames[frames.len() - 1];
    assert!(end["turn"]["turn_id"] == turn && said < frames.len() - 1, "{frames:?}");
    let offsets: Vec<u64> = frames.iter().filter_map(|frame| frame["offset"].as_u64()).collect();
    assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "{offsets:?}");
}

/// A client of the event stream of a conversation.
struct Events {
    response: Response,
    /// Bytes of an event that is not whole yet.
    rest: Vec<u8>,
}

impl Events {
    /// Connected, and told how the conversation stands.
    async fn open(fleet: &Harness, http: &Http, conversation: &str) -> Self {
        let url = format!("{}/api/conversations/{conversation}/events", fleet.base_url);
        let response = http.get(url).bearer_auth(&fleet.token).send().await.expect("an answer");
        assert!(response.status().is_success(), "{response:?}");
        let mut events = Self { response, rest: Vec::new() };
        let first = events.frame().await;
        assert_eq!(first["type"], "status", "{first}");
        events
    }

    async fn follow(mut self) -> Told {
        to_the_end(async || self.frame().await).await
    }

    async fn frame(&mut self) -> Value {
        loop {
            while let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.rest.drain(..end + 2).collect();
                let text = String::from_utf8_lossy(&event);
                // What has no data is a sign of life.
                if let Some(data) = text.lines().find_map(|line| line.strip_prefix("data:")) {
                    return serde_json::from_str(data).expect("JSON");
                }
            }
            let read = tokio::time::timeout(WAIT_MAX, self.response.chunk()).await.expect("a further event");
            self.rest.extend_from_slice(&read.expect("a connection that stays").expect("no end"));
        }
    }
}
