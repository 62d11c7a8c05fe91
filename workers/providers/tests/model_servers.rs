//! The adapters against two model servers that others wrote (`ops/model-servers`), for every
//! provider that they speak: texts, tools, thoughts, and faults on demand.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use domain::chat::{
    CallContext, ChatCall, ChatDelta, ChatOutcome, ChatReply, ChatRequest, ErrorCategory, Finish, Message, ModelTarget,
    Part, Role, ToolChoice, ToolSpec,
};
use domain::ports::{DeltaSink, Models};
use providers::{Performer, Profile, ProvidersConfig};
use serde_json::{Value, json};

/// The variables with the servers' addresses; the servers live as long as this process.
fn address(name: &str) -> &'static str {
    static SERVERS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    let variables = SERVERS.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/model-servers");
        let me = std::process::id().to_string();
        let dir = std::env::temp_dir().join(format!("stepfleet-models-{me}"));
        let started = Command::new(script).arg("up").arg(&dir).args(["--parent", &me]).status();
        assert!(started.expect("a shell").success(), "ops/model-servers says why");
        let text = std::fs::read_to_string(dir.join("models.env")).expect("their addresses");
        let variable = |line: &str| {
            let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        text.lines().filter_map(variable).collect()
    });
    &variables[name]
}

/// A provider at one of the servers.
#[derive(Debug, Clone, Copy)]
struct Place {
    provider: &'static str,
    server: &'static str,
    path: &'static str,
}

const FAULTY: [Place; 4] = [
    Place { provider: "openai", server: "LLMOCK_URL", path: "/v1" },
    Place { provider: "openai_responses", server: "LLMOCK_URL", path: "/v1" },
    Place { provider: "anthropic", server: "LLMOCK_URL", path: "/anthropic" },
    Place { provider: "gemini", server: "LLMOCK_URL", path: "/gemini" },
];
const RULED: [Place; 3] = [
    Place { provider: "openai", server: "LLM_MOCK_API_URL", path: "/v1" },
    Place { provider: "openai_responses", server: "LLM_MOCK_API_URL", path: "/v1" },
    Place { provider: "anthropic", server: "LLM_MOCK_API_URL", path: "" },
];

/// What was told of the latest attempt, and which attempts were taken back.
#[derive(Default)]
struct Heard {
    text: Mutex<BTreeMap<u32, String>>,
    retracted: Mutex<Vec<u32>>,
}

impl DeltaSink for Heard {
    fn delta(&self, attempt: u32, _index: u64, delta: ChatDelta) {
        if let ChatDelta::Text { text, .. } = delta {
            self.text.lock().expect("unpoisoned").entry(attempt).or_default().push_str(&text);
        }
    }

    fn retract(&self, attempt: u32) {
        self.retracted.lock().expect("unpoisoned").push(attempt);
    }
}

/// One model of its own for each test: faults are for a model.
async fn ask(place: Place, model: &str, request: ChatRequest, heard: Option<&Heard>) -> ChatOutcome {
    let profile = Profile {
        provider: place.provider.to_owned(),
        model: model.to_owned(),
        base_url: Some(format!("{}{}", address(place.server), place.path)),
        api_key_env: Some("TEST_KEY".to_owned()),
        ..Profile::default()
    };
    let lookup = |name: &str| (name == "TEST_KEY").then(|| "sk-of-the-test".to_owned());
    let config = ProvidersConfig::from_env(lookup, BTreeMap::from([("it".to_owned(), profile)]));
    let performer = Performer::new(&config).expect("a performer");
    let call = ChatCall {
        id: format!("call-{model}"),
        target: ModelTarget::Named("it".to_owned()),
        request,
        context: CallContext::default(),
        once: false,
    };
    performer.chat(&call, heard.map(|heard| heard as &dyn DeltaSink)).await
}

fn replied(place: Place, outcome: ChatOutcome) -> ChatReply {
    outcome.result.unwrap_or_else(|failure| panic!("{place:?}: {failure:?}"))
}

fn offering(prompt: &str) -> ChatRequest {
    let tool = |name: &str, schema: Value| ToolSpec {
        name: name.to_owned(),
        description: "tells the weather of a city".to_owned(),
        input_schema: schema,
    };
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let mut request = ChatRequest::ask("be brief", prompt);
    request.tools = vec![tool("get_weather", city), tool("get_time", json!({"type": "object", "properties": {}}))];
    request
}

/// The request that goes on behind a reply, with a result for each call.
fn answered(mut request: ChatRequest, reply: &ChatReply) -> ChatRequest {
    request.messages.push(reply.message());
    let results = reply.tool_calls().map(|call| Part::tool_result(call.id.clone(), "{\"sky\": \"blue\"}", false));
    request.messages.push(Message::new(Role::Tool, results.collect()));
    request
}

/// Orders faults for the requests of a model.
async fn order(faults: Value) {
    let url = format!("{}/_llmock/scenario", address("LLMOCK_URL"));
    let answer = reqwest::Client::new().post(url).json(&json!({"behaviors": faults})).send().await.expect("an answer");
    let status = answer.status();
    assert!(status.is_success(), "{status}: {}", answer.text().await.unwrap_or_default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_come_whole_and_streamed_alike() {
    for place in FAULTY.into_iter().chain(RULED) {
        let heard = Heard::default();
        let streamed = replied(place, ask(place, "plain", ChatRequest::ask("", "hello you"), Some(&heard)).await);
        let whole = replied(place, ask(place, "plain", ChatRequest::ask("", "hello you"), None).await);
        assert!(!whole.text().is_empty(), "{place:?}");
        assert_eq!((streamed.text(), streamed.finish), (whole.text(), Finish::Stop), "{place:?}");
        assert_eq!(heard.text.lock().expect("unpoisoned")[&1], whole.text(), "{place:?}");
        assert!(streamed.usage.is_some_and(|usage| usage.output_tokens > 0), "{place:?}");
        assert!(heard.retracted.lock().expect("unpoisoned").is_empty(), "{place:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s101_tools_are_called_and_their_results_understood() {
    for place in FAULTY {
        let heard = Heard::default();
        for sink in [Some(&heard), None] {
            let request = offering("what is the weather in the city?");
            let reply = replied(place, ask(place, "tools", request.clone(), sink).await);
            assert_eq!(reply.finish, Finish::ToolUse, "{place:?}");
            let call = reply.tool_calls().next().expect("a call");
            assert_eq!((call.name.as_str(), call.invalid.as_deref()), ("get_weather", None), "{place:?}");
            assert!(call.input["city"].is_string() && !call.id.is_empty(), "{place:?}: {call:?}");
            let last = replied(place, ask(place, "tools", answered(request, &reply), sink).await);
            assert_eq!(last.finish, Finish::Stop, "{place:?}: {last:?}");
            assert!(!last.text().is_empty(), "{place:?}");
        }
        let mut silent = offering("what is the weather?");
        silent.parameters.tool_choice = Some(ToolChoice::None);
        assert_eq!(replied(place, ask(place, "tools", silent, None).await).finish, Finish::Stop, "{place:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_once_and_thoughts_are_kept_apart() {
    for place in RULED {
        for heard in [Some(&Heard::default()), None] {
            let request = offering("the weather, please");
            let reply = replied(place, ask(place, "m", request.clone(), heard).await);
            assert_eq!((reply.text().as_str(), reply.finish), ("Let me look.", Finish::ToolUse), "{place:?}");
            let calls: Vec<(&str, &str, &Value)> =
                reply.tool_calls().map(|call| (call.id.as_str(), call.name.as_str(), &call.input)).collect();
            let (first, second) = (json!({"city": "Zürich", "days": [1, 2]}), json!({}));
            assert_eq!(calls, [("call_a", "get_weather", &first), ("call_b", "get_time", &second)], "{place:?}");
            let last = replied(place, ask(place, "m", answered(request, &reply), heard).await);
            assert_eq!(last.text(), "It is sunny at noon.", "{place:?}");

            let reply = replied(place, ask(place, "m", ChatRequest::ask("", "think hard"), heard).await);
            assert_eq!(reply.text(), "Größe: 42 🦀", "{place:?}");
            let usage = reply.usage.as_ref().map(|usage| (usage.input_tokens, usage.output_tokens));
            assert_eq!(usage, Some((11, 7)), "{place:?}");
            let thoughts = reply.parts.iter().find_map(|part| match part {
                Part::Reasoning(thoughts) => Some(thoughts.text.as_str()),
                _ => None,
            });
            // Chat Completions itself has no thoughts.
            let expected = (place.provider != "openai").then_some("Let me count.");
            assert_eq!(thoughts, expected, "{place:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_streams_are_never_replies() {
    for (number, place) in FAULTY.into_iter().enumerate() {
        for kind in ["truncate", "disconnect", "malformed"] {
            for after in [0, 1, 4] {
                let model = format!("broken-{number}-{kind}-{after}");
                // Long enough for every fault to come in the middle, at both attempts.
                let text = "one two three four five six seven eight nine ten";
                let only = json!({"model": model});
                let fault = json!({"type": "stream_fault", "kind": kind, "after_chunks": after, "match": only});
                order(json!([{"type": "reply", "text": text, "times": 2, "match": only}, fault])).await;
                let (heard, what) = (Heard::default(), format!("{place:?} {kind} after {after}"));
                let outcome = ask(place, &model, ChatRequest::ask("", "count"), Some(&heard)).await;
                assert_eq!(outcome.record.outcome.as_ref().map(|told| told.attempts), Some(2), "{what}");
                let reply = replied(place, outcome);
                let (told, retracted) =
                    (heard.text.lock().expect("unpoisoned"), heard.retracted.lock().expect("unpoisoned"));
                assert_eq!((reply.text().as_str(), told[&2].as_str()), (text, text), "{what}");
                assert!(!told.contains_key(&1) || *retracted == [1], "{what}: {retracted:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_have_their_category() {
    for (number, place) in FAULTY.into_iter().enumerate() {
        for (status, times, expected) in [
            (429, 1, Ok(2)),
            (503, 2, Ok(3)),
            (500, 3, Err((ErrorCategory::Transient, 3))),
            (401, 1, Err((ErrorCategory::Auth, 1))),
            (400, 1, Err((ErrorCategory::Validation, 1))),
        ] {
            let model = format!("failing-{number}-{status}");
            order(json!([{"type": "fail", "status": status, "times": times, "match": {"model": model}}])).await;
            let outcome = ask(place, &model, ChatRequest::ask("", "hello"), Some(&Heard::default())).await;
            let attempts = outcome.record.outcome.map_or(0, |told| told.attempts);
            let got = outcome.result.map(|_| attempts).map_err(|failure| (failure.category, attempts));
            assert_eq!(got, expected, "{place:?} {status}");
        }
    }
    for place in RULED {
        let category =
            async |words| ask(place, "m", ChatRequest::ask("", words), None).await.result.map_err(|f| f.category);
        assert_eq!(category("too fast").await.expect_err("a failure"), ErrorCategory::RateLimit, "{place:?}");
        assert_eq!(category("no key").await.expect_err("a failure"), ErrorCategory::Auth, "{place:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_that_are_no_json_are_marked() {
    // Gemini's arguments are JSON by construction.
    for (number, place) in FAULTY.into_iter().enumerate().filter(|(_, place)| place.provider != "gemini") {
        let model = format!("garbled-{number}");
        order(json!([{"type": "tool_fault", "kind": "malformed_arguments", "match": {"model": model}}])).await;
        let reply = replied(place, ask(place, &model, offering("what is the weather?"), Some(&Heard::default())).await);
        let call = reply.tool_calls().next().expect("a call");
        assert!(call.invalid.is_some() && call.input == json!({}), "{place:?}: {call:?}");
    }
}
