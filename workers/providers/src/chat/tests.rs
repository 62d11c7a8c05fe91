//! Calls against a small server of our own: pieces as they arrive, attempts, records, secrets.
//! Time is paused; server and client share one thread, so that it only moves when both wait.

use std::sync::Mutex;
use std::time::Duration;

use domain::chat::{CallContext, ChatDelta, ChatRequest, ErrorCategory, Finish, Part, ProviderCallRecord, ToolCall};
use domain::retry::SILENCE_MS;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::config::{Secret, Vendor};
use crate::fake_server::{FakeServer, Say};

/// Keeps what it is told, and when.
struct Listener {
    start: Instant,
    heard: Mutex<Vec<(u128, String)>>,
    dropped: Mutex<Vec<ProviderCallRecord>>,
}

impl Listener {
    fn new() -> Self {
        Self { start: Instant::now(), heard: Mutex::default(), dropped: Mutex::default() }
    }

    fn note(&self, what: String) {
        self.heard.lock().expect("unpoisoned").push((self.start.elapsed().as_millis(), what));
    }

    /// `<attempt>.<index> <text>`, and `-<attempt>` for what is taken back. Figures are left out.
    fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("unpoisoned").iter().map(|(_, what)| what.clone()).collect()
    }

    fn times(&self) -> Vec<u128> {
        self.heard.lock().expect("unpoisoned").iter().map(|(at, _)| *at).collect()
    }
}

impl DeltaSink for Listener {
    fn delta(&self, attempt: u32, index: u64, delta: ChatDelta) {
        match delta {
            ChatDelta::Text { text, .. } => self.note(format!("{attempt}.{index} {text}")),
            ChatDelta::Reasoning { text, .. } => self.note(format!("{attempt}.{index} ({text})")),
            ChatDelta::ToolCall { name, arguments, .. } => {
                self.note(format!("{attempt}.{index} {}{arguments}", name.unwrap_or_default()));
            }
            ChatDelta::Usage { .. } => {}
        }
    }

    fn retract(&self, attempt: u32) {
        self.note(format!("-{attempt}"));
    }

    fn dropped(&self, record: ProviderCallRecord) {
        self.dropped.lock().expect("unpoisoned").push(record);
    }
}

fn target(vendor: Vendor, server: &FakeServer) -> Target {
    let prices =
        Prices { cost_per_1k_input_tokens: Some(1.0), cost_per_1k_output_tokens: Some(10.0), ..Prices::default() };
    let endpoint = Endpoint { prices, ..Endpoint::new(vendor, "m-1", &server.url, Secret::new("sk-hidden")) };
    Target { prices, parameters: Parameters::default(), source: Source::Endpoint(Arc::new(endpoint)) }
}

fn call() -> ChatCall {
    let context = CallContext {
        conversation_id: "c-1".to_owned(),
        turn_id: "t-2".to_owned(),
        agent: "scorer".to_owned(),
        parent_turn_id: Some("t-1".to_owned()),
        request_class: None,
        metadata: json!({"cohort": "private-note"}).as_object().expect("an object").clone(),
    };
    let request = ChatRequest::ask("", "hello");
    ChatCall { id: "call-1".to_owned(), target: ModelTarget::Default, request, context, once: false }
}

/// Anthropic's stream: a head, pieces of one text, an end.
fn events(words: &[&str]) -> Vec<String> {
    let event = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default());
    let mut events = vec![
        event(json!({"type": "message_start", "message": {"id": "msg_1", "model": "m-1b", "content": [],
            "usage": {"input_tokens": 3_000, "output_tokens": 1}}})),
        event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
    ];
    events.extend(words.iter().map(|word| {
        event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}))
    }));
    events.push(event(json!({"type": "content_block_stop", "index": 0})));
    events.push(event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 200}})));
    events.push(event(json!({"type": "message_stop"})));
    events
}

fn stream(events: &[String]) -> Say {
    Say::Stream(events.iter().map(|event| (0, event.clone())).collect(), true)
}

/// Ends without an end, after some events.
fn cut(count: usize) -> Say {
    Say::Stream(events(&["half"]).into_iter().take(count).map(|event| (0, event)).collect(), false)
}

fn refusal(status: u16, headers: &'static str, body: Value) -> Say {
    Say::Answer(status, headers, body.to_string())
}

async fn ask(replies: Vec<Say>, listener: Option<&Listener>) -> (ChatOutcome, FakeServer) {
    let server = FakeServer::start(replies).await;
    let net = Net::new(true).expect("a client");
    let sink = listener.map(|listener| listener as &dyn DeltaSink);
    (chat(&net, &target(Vendor::Anthropic, &server), &call(), sink).await, server)
}

fn failed(outcome: &ChatOutcome) -> (ErrorCategory, u32) {
    let failure = outcome.result.as_ref().expect_err("a failure");
    let told = outcome.record.outcome.as_ref().expect("an end");
    assert_eq!((told.ok, told.error_category), (false, Some(failure.category)));
    assert_eq!(failure.retriable, failure.category.is_infrastructure());
    (failure.category, told.attempts)
}

#[tokio::test(start_paused = true)]
async fn every_piece_is_passed_on_when_it_arrives() {
    let mut pieces: Vec<(u64, String)> = events(&["one ", "two"]).into_iter().map(|event| (0, event)).collect();
    pieces[3].0 = 60_000;
    let listener = Listener::new();
    let (outcome, server) = ask(vec![Say::Stream(pieces, true)], Some(&listener)).await;
    let reply = outcome.result.expect("a reply");
    assert_eq!(
        (reply.text().as_str(), reply.finish, reply.request_id.as_deref()),
        ("one two", Finish::Stop, Some("Req_1"))
    );
    assert_eq!(listener.heard(), ["1.1 one ", "1.2 two"], "the first piece is of figures");
    let times = listener.times();
    assert!(times[0] < 1_000 && times[1] >= 60_000, "{times:?}");
    let body: Value = serde_json::from_str(&server.requests()[0].body).expect("json");
    assert_eq!(body["stream"], true);
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_attempt_told_is_taken_back() {
    let listener = Listener::new();
    let broken = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let mut overloaded = events(&["nearly"]);
    overloaded.truncate(3);
    overloaded.push(format!("event: error\ndata: {broken}\n\n"));
    let replies = vec![cut(3), stream(&overloaded), stream(&events(&["whole"]))];
    let (outcome, server) = ask(replies, Some(&listener)).await;
    assert_eq!(outcome.result.expect("a reply").text(), "whole");
    assert_eq!(listener.heard(), ["1.1 half", "-1", "2.1 nearly", "-2", "3.1 whole"]);
    let times = listener.times();
    assert!(times[1] < 500, "taken back before the wait: {times:?}");
    assert!((500..600).contains(&times[2]) && (1_500..1_700).contains(&times[4]), "{times:?}");
    assert_eq!((server.requests().len(), outcome.record.outcome.map(|o| o.attempts)), (3, Some(3)));
}

/// Tokens in and out of a call, and its attempts that were lost.
fn used(record: &ProviderCallRecord) -> (Option<(u64, u64)>, Value) {
    let usage = record.usage.as_ref().map(|usage| (usage.input_tokens, usage.output_tokens));
    (usage, record.response_metadata.get("lost_attempts").cloned().unwrap_or_default())
}

fn lost(attempt: u32, input: u64, output: u64, estimated: bool) -> Value {
    json!({"attempt": attempt, "input_tokens": input, "output_tokens": output, "estimated": estimated})
}

#[tokio::test(start_paused = true)]
async fn what_lost_attempts_have_used_is_in_the_record() {
    let replies = vec![cut(3), cut(0), stream(&events(&["whole"]))];
    let (outcome, _server) = ask(replies, Some(&Listener::new())).await;
    // The first one told what it had read, and "half" is a token; of the second, nothing is known but the request.
    let all = json!([lost(1, 3_000, 1, false), lost(2, 2, 0, true)]);
    assert_eq!(used(&outcome.record), (Some((6_002, 201)), all));
    assert_eq!(outcome.record.cost, Some(8.012), "6,002 in at 1, 201 out at 10, for each thousand");
    let own = outcome.result.expect("a reply").usage.expect("told");
    assert_eq!((own.input_tokens, own.output_tokens), (3_000, 200), "the reply tells of itself alone");
    assert_eq!(outcome.record.usage.expect("known").breakdown, own.breakdown);
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_has_used_what_was_worked_on_and_nothing_that_was_refused() {
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "no"}});
    let estimated = |n: u32| (1..=n).map(|attempt| lost(attempt, 2, 0, true)).collect::<Value>();
    let mut overloaded = events(&["nearly"]);
    overloaded.truncate(3);
    overloaded.push(format!("event: error\ndata: {}\n\n", error("overloaded_error")));
    let nearly: Value = (1..=3).map(|attempt| lost(attempt, 3_000, 2, true)).collect();
    for (reply, expected) in [
        (Say::Silence, (Some((6, 0)), estimated(3))),
        (Say::Cut, (Some((6, 0)), estimated(3))),
        (stream(&overloaded), (Some((9_000, 6)), nearly)),
        (stream(&[format!("data: {}\n\n", error("overloaded_error"))]), (None, Value::Null)),
        (Say::HangUp, (None, Value::Null)),
        (refusal(529, "", error("overloaded_error")), (None, Value::Null)),
        (refusal(400, "", error("invalid_request_error")), (None, Value::Null)),
    ] {
        let what = format!("{reply:?}");
        let (outcome, _server) = ask(vec![reply], Some(&Listener::new())).await;
        assert!(outcome.result.is_err(), "{what}");
        assert_eq!(used(&outcome.record), expected, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_stream_is_a_failure_however_late_it_is_cut() {
    for count in 0..6 {
        for orderly in [true, false] {
            let Say::Stream(pieces, _) = cut(count) else { unreachable!("a stream") };
            let (outcome, server) = ask(vec![Say::Stream(pieces, orderly)], Some(&Listener::new())).await;
            assert_eq!(failed(&outcome), (ErrorCategory::Transient, 3), "{count} {orderly}");
            assert_eq!(server.requests().len(), 3);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn infrastructure_is_tried_three_times_and_business_once() {
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "no"}});
    for (reply, category, attempts, took_ms) in [
        (refusal(529, "", error("overloaded_error")), ErrorCategory::Transient, 3, 1_500),
        (refusal(429, "", error("rate_limit_error")), ErrorCategory::RateLimit, 3, 1_500),
        (refusal(429, "retry-after: 7\r\n", error("rate_limit_error")), ErrorCategory::RateLimit, 3, 14_000),
        (refusal(429, "retry-after: 60\r\n", error("rate_limit_error")), ErrorCategory::RateLimit, 3, 120_000),
        (refusal(429, "retry-after: 61\r\n", error("rate_limit_error")), ErrorCategory::RateLimit, 1, 0),
        (Say::HangUp, ErrorCategory::Transient, 3, 1_500),
        (Say::Silence, ErrorCategory::Transient, 3, 361_500),
        (refusal(401, "", error("authentication_error")), ErrorCategory::Auth, 1, 0),
        (refusal(400, "", error("invalid_request_error")), ErrorCategory::Validation, 1, 0),
        (refusal(402, "", error("billing_error")), ErrorCategory::Quota, 1, 0),
        (stream(&[format!("data: {}\n\n", error("billing_error"))]), ErrorCategory::Quota, 1, 0),
        (
            stream(&[
                events(&[])[0].clone(),
                format!(
                    "data: {}\n\n",
                    json!({"type": "message_delta",
            "delta": {"stop_reason": "refusal"}})
                ),
                "data: {\"type\": \"message_stop\"}\n\n".to_owned(),
            ]),
            ErrorCategory::Safety,
            1,
            0,
        ),
        (Say::Answer(200, "content-type: application/json\r\n", "<html>".to_owned()), ErrorCategory::Unknown, 1, 0),
    ] {
        let (start, what) = (Instant::now(), format!("{reply:?}"));
        let (outcome, server) = ask(vec![reply], Some(&Listener::new())).await;
        assert_eq!(failed(&outcome), (category, attempts), "{what}");
        assert_eq!(server.requests().len(), attempts as usize, "{what}");
        let took = start.elapsed().as_millis();
        assert!((took_ms..took_ms + 200).contains(&took), "{what} took {took} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_stalls_is_cut_and_asked_for_again() {
    let stall = |at: usize| {
        let mut stalled: Vec<(u64, String)> = events(&["one"]).into_iter().map(|event| (0, event)).collect();
        stalled[at].0 = 10_000_000;
        Say::Stream(stalled, true)
    };
    // After a piece, and after the head alone.
    let told = ["1.1 one", "-1", "2.1 one", "-2", "3.1 one", "-3"];
    for (at, heard) in [(3, &told[..]), (0, &told[..0])] {
        let (start, listener) = (Instant::now(), Listener::new());
        let (outcome, server) = ask(vec![stall(at)], Some(&listener)).await;
        assert_eq!(failed(&outcome), (ErrorCategory::Transient, 3));
        assert_eq!(listener.heard(), heard, "{at}");
        assert_eq!(server.requests().len(), 3);
        assert_eq!(start.elapsed().as_millis(), 3 * u128::from(SILENCE_MS) + 1_500);
        let message = outcome.result.expect_err("no reply").message;
        assert!(message.contains("nothing came for 90 s"), "{message}");
    }
    let (outcome, _server) = ask(vec![stall(3), stream(&events(&["whole"]))], Some(&Listener::new())).await;
    assert_eq!(outcome.result.expect("a reply").text(), "whole");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_and_taken_back() {
    let mut slow: Vec<(u64, String)> = events(&["one", "two"]).into_iter().map(|event| (0, event)).collect();
    slow[3].0 = 60_000;
    let listener = Listener::new();
    let call = ask(vec![Say::Stream(slow, true)], Some(&listener));
    assert!(tokio::time::timeout(Duration::from_secs(5), call).await.is_err(), "cancelled");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(listener.heard(), ["1.1 one", "-1"], "and nothing after it");
    let dropped = listener.dropped.lock().expect("unpoisoned").clone();
    let [record] = dropped.as_slice() else { panic!("once: {dropped:?}") };
    assert_eq!(used(record), (Some((3_000, 1)), json!([lost(1, 3_000, 1, false)])));
    assert_eq!((record.id.as_str(), record.cost), ("call-1", Some(3.01)));
    let end = record.outcome.as_ref().expect("an end");
    assert_eq!((end.ok, end.error_category, end.attempts), (false, None, 1));
    assert_eq!(record.response_metadata["error"], "cancelled");
}

/// A call for its answer alone.
struct Whole(Listener);

impl DeltaSink for Whole {
    fn delta(&self, attempt: u32, index: u64, delta: ChatDelta) {
        self.0.delta(attempt, index, delta);
    }

    fn retract(&self, attempt: u32) {
        self.0.retract(attempt);
    }

    fn wants_pieces(&self) -> bool {
        false
    }

    fn dropped(&self, record: ProviderCallRecord) {
        self.0.dropped(record);
    }
}

#[tokio::test(start_paused = true)]
async fn who_wants_no_pieces_gets_none_and_hears_of_the_end() {
    let server = FakeServer::start(vec![Say::Silence]).await;
    let (net, whole) = (Net::new(true).expect("a client"), Whole(Listener::new()));
    let target = target(Vendor::Anthropic, &server);
    let call = call();
    let asked = chat(&net, &target, &call, Some(&whole));
    assert!(tokio::time::timeout(Duration::from_secs(5), asked).await.is_err(), "cancelled");
    let body: Value = serde_json::from_str(&server.requests()[0].body).expect("json");
    assert_ne!(body["stream"], true);
    let dropped = whole.0.dropped.lock().expect("unpoisoned").clone();
    assert_eq!((dropped.len(), used(&dropped[0]).0, whole.0.heard().len()), (1, Some((2, 0)), 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_stream_is_heard_all_the_same() {
    let body = json!({"content": [{"type": "text", "text": "whole"},
        {"type": "tool_use", "id": "t", "name": "look", "input": {"q": 1}}], "stop_reason": "tool_use"});
    let listener = Listener::new();
    let json = Say::Answer(200, "Content-Type: application/json\r\n", body.to_string());
    let (outcome, _server) = ask(vec![json], Some(&listener)).await;
    let reply = outcome.result.expect("a reply");
    assert_eq!((reply.finish, reply.usage), (Finish::ToolUse, None));
    assert_eq!(listener.heard(), ["1.0 whole", "1.1 look{\"q\":1}"]);
    assert_eq!(outcome.record.cost, None, "nobody knows");
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_no_json_come_back_as_they_are() {
    let chunk = |delta: Value, finish: Value| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
    };
    let piece =
        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "look", "arguments": "{\"q\": oops"}}]});
    let pieces = [chunk(piece, Value::Null), chunk(json!({}), json!("tool_calls")), "data: [DONE]\n\n".to_owned()];
    let server = FakeServer::start(vec![stream(&pieces)]).await;
    let net = Net::new(true).expect("a client");
    let outcome = chat(&net, &target(Vendor::Openai, &server), &call(), Some(&Listener::new())).await;
    let expected = ToolCall {
        id: "c".to_owned(),
        name: "look".to_owned(),
        input: json!({}),
        invalid: Some("{\"q\": oops".to_owned()),
        signature: None,
    };
    assert_eq!(outcome.result.expect("a reply").parts, [Part::ToolCall(expected)]);
}

#[tokio::test(start_paused = true)]
async fn the_record_tells_all_and_the_provider_is_told_none_of_it() {
    let (outcome, server) = ask(vec![stream(&events(&["whole"]))], Some(&Listener::new())).await;
    let record = outcome.record;
    assert_eq!(
        (record.id.as_str(), record.conversation_id.as_str(), record.turn_id.as_str()),
        ("call-1", "c-1", "t-2")
    );
    assert_eq!((record.provider.as_str(), record.model.as_str()), ("anthropic", "m-1"));
    assert_eq!(
        (record.correlation_id.as_deref(), record.parent_correlation_id.as_deref()),
        (Some("c-1:t-2"), Some("c-1:t-1"))
    );
    assert_eq!(record.request_id.as_deref(), Some("Req_1"));
    assert_eq!(record.request_metadata["extensions"]["ai.streaming"], true);
    assert_eq!(record.request_metadata["agent_context"]["runId"], Value::Null, "field names are of this platform");
    assert_eq!(record.request_metadata["agent_context"]["run_id"], "c-1:t-2");
    assert_eq!(record.request_metadata["metadata"]["cohort"], "private-note");
    assert_eq!(record.response_metadata["finish"], "stop");
    assert_eq!((record.cost, record.usage.map(|usage| usage.total_tokens)), (Some(5.0), Some(3_200)));
    let told = record.outcome.expect("an end");
    assert_eq!((told.ok, told.status, told.error_category, told.attempts), (true, Some(200), None, 1));
    assert!(record.finished_at_ms.is_some_and(|end| end >= record.started_at_ms));
    let request = &server.requests()[0];
    for private in ["private-note", "c-1", "t-2", "scorer", "call-1", "ai.provider"] {
        assert!(!request.body.contains(private) && !request.head.contains(private), "{private}: {request:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_key_is_in_no_error_and_no_record() {
    let said = |text: String| json!({"type": "error", "error": {"type": "sk-hidden", "message": text}});
    let long = format!("{}sk-hidden", "x".repeat(495));
    let echo: [Say; 4] = [
        refusal(401, "request-id: sk-hidden\r\n", said("bad key sk-hidden".to_owned())),
        refusal(400, "", said(long.clone())),
        stream(&[format!("data: {}\n\n", said(long))]),
        Say::Answer(500, "", format!("{}sk-hidden", "y".repeat(195))),
    ];
    for reply in echo {
        let (outcome, server) = ask(vec![reply], Some(&Listener::new())).await;
        let shown = format!("{outcome:?} {}", json!(outcome.record));
        assert!(!shown.contains("sk-hid"), "{shown}");
        assert!(server.requests()[0].head.contains("x-api-key: sk-hidden"), "it was sent all the same");
    }
}

/// Two calls, one after the other: the second one need not wait for a connection.
#[tokio::test]
async fn a_stream_that_was_read_leaves_its_connection_to_the_next() {
    let server = FakeServer::keeping(events(&["Hi"])).await;
    let target = target(Vendor::Anthropic, &server);
    let net = Net::new(true).expect("a client");
    for _ in 0..2 {
        let outcome = chat(&net, &target, &call(), Some(&Listener::new())).await;
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}
