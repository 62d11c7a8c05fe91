//! Scripts: rules in order, replies in turn, problems with their place.

use domain::chat::{
    CallContext, ChatCall, ChatDelta, ChatOutcome, ChatRequest, ErrorCategory, Message, ModelTarget, NativeRequest,
    Parameters, Part, Role, ToolChoice, ToolSpec,
};
use domain::effect::Outcome;
use domain::moniker::model::asking::value_of;
use domain::moniker::{self, Decision, StepInput};
use schemas::frame::{FrameIn, FrameOut, StepToken};
use schemas::id::{AgentId, Namespace, SessionId, SessionKey};
use schemas::json::Json;
use schemas::session::SessionSpec;
use serde_json::json;
use tokio::time::Instant;

use std::sync::Arc;

use domain::chat::Prices;
use domain::ports::DeltaSink;

use super::*;
use crate::chat::{self, Source, Target};
use crate::net::Net;

fn scripted(script: Value) -> Arc<Scripted> {
    Arc::new(Scripted::new(Script::parse(&script.to_string()).expect("a script"), None).expect("no file"))
}

fn request(prompt: &str) -> ChatRequest {
    ChatRequest {
        parameters: Parameters { max_tokens: Some(9), ..Parameters::default() },
        ..ChatRequest::ask("", prompt)
    }
}

async fn call(
    scripted: &Arc<Scripted>,
    request: ChatRequest,
    profile: Option<&str>,
    sink: Option<&Heard>,
) -> ChatOutcome {
    make(scripted, &call_of(request, profile), sink).await
}

fn call_of(request: ChatRequest, profile: Option<&str>) -> ChatCall {
    let target = profile.map_or(ModelTarget::Default, |name| ModelTarget::Named(name.to_owned()));
    let context = CallContext { conversation_id: "c".to_owned(), turn_id: "t".to_owned(), ..CallContext::default() };
    ChatCall { id: "k".to_owned(), target, request, context, once: false }
}

async fn make(scripted: &Arc<Scripted>, call: &ChatCall, sink: Option<&Heard>) -> ChatOutcome {
    let target = Target {
        source: Source::Scripted(Arc::clone(scripted)),
        prices: Prices::default(),
        parameters: Parameters::default(),
    };
    let net = Net::new(true).expect("a client");
    chat::chat(&net, &target, call, sink.map(|heard| heard as &dyn DeltaSink)).await
}

async fn say_of(scripted: &Arc<Scripted>, request: ChatRequest) -> String {
    let outcome = call(scripted, request, None, None).await;
    match outcome.result {
        Ok(reply) => reply.text(),
        Err(failure) => {
            let attempts = outcome.record.outcome.expect("an end").attempts;
            format!("{} after {attempts}", failure.category.as_str())
        }
    }
}

async fn say(scripted: &Arc<Scripted>, prompt: &str) -> String {
    say_of(scripted, request(prompt)).await
}

/// What was told, with the milliseconds since the start.
struct Heard(Instant, Mutex<Vec<(u128, String)>>);

impl Heard {
    fn new() -> Self {
        Self(Instant::now(), Mutex::new(Vec::new()))
    }

    fn all(&self) -> Vec<(u128, String)> {
        self.1.lock().expect("unpoisoned").clone()
    }

    fn words(&self) -> Vec<String> {
        self.all().into_iter().map(|(_, word)| word).collect()
    }
}

impl DeltaSink for Heard {
    fn delta(&self, _attempt: u32, _index: u64, delta: ChatDelta) {
        let word = match delta {
            ChatDelta::Text { text, .. } => text,
            ChatDelta::Reasoning { text, .. } => format!("({text})"),
            ChatDelta::ToolCall { name, arguments, .. } => format!("[{}{arguments}]", name.unwrap_or_default()),
            ChatDelta::Usage { usage } => format!("{}+{}", usage.input_tokens, usage.output_tokens),
        };
        self.1.lock().expect("unpoisoned").push((self.0.elapsed().as_millis(), word));
    }

    fn retract(&self, attempt: u32) {
        self.1.lock().expect("unpoisoned").push((self.0.elapsed().as_millis(), format!("-{attempt}")));
    }
}

#[tokio::test]
async fn the_first_fitting_rule_answers() {
    let script = scripted(json!({
        "rules": [
            {"when": {"contains": ["joke", "cats"]}, "times": 1, "reply": {"text": "meow"}},
            {"when": {"glob": "tell*dogs", "call": 2}, "reply": {"text": "woof woof"}},
            {"when": {"contains": "joke"}, "reply": {"text": "ha"}},
            {"when": {"profile": "fast"}, "reply": {"text": "quick"}},
        ],
        "otherwise": {"text": "what?"},
    }));
    assert_eq!(say(&script, "a joke about cats").await, "meow");
    assert_eq!(say(&script, "a joke about cats").await, "ha");
    assert_eq!(say(&script, "tell me of dogs").await, "what?");
    assert_eq!(say(&script, "tell me of dogs").await, "woof woof");
    let fast = call(&script, request("x"), Some("fast"), None).await;
    assert_eq!(fast.result.expect("an answer").text(), "quick");
    let rules: Vec<Option<usize>> = script.requests().into_iter().map(|r| r.rule).collect();
    assert_eq!(rules, [Some(0), Some(2), None, Some(1), Some(3)]);
}

#[tokio::test(start_paused = true)]
async fn failures_and_delays_take_their_course() {
    let script = scripted(json!({"rules": [
        {"when": {"contains": "a"}, "times": 1, "reply": {"fail": {"class": "rate_limit", "retry_after_ms": 3000}}},
        {"when": {"contains": "a"}, "reply": {"text": "at last", "delay_ms": 250}},
        {"when": {"contains": "b"}, "reply": {"fail": {"class": "auth"}}},
        {"when": {"contains": "c"}, "reply": {"fail": {"class": "cut"}}},
    ]}));
    let start = Instant::now();
    assert_eq!(say(&script, "a").await, "at last");
    assert_eq!(start.elapsed().as_millis(), 3_250);
    assert_eq!(say(&script, "b").await, "auth after 1");
    assert_eq!(say(&script, "c").await, "transient after 3");
    assert_eq!(say(&script, "nothing fits").await, "validation after 1");
    assert_eq!(script.requests().len(), 7, "each attempt is a request");
}

#[tokio::test]
async fn replies_rotate_and_placeholders_are_filled() {
    let script = scripted(json!({"rules": [{"replies": [
        {"frame": {"next_step": "s/{{n}}", "state": {"...": "{{state}}", "n": "{{n}}"}, "text": "about {{subject|nothing}}"}},
        {"text": "{{guidance.a.b|none}} {{state.list}} {{profile|-}} {{step}} {{"},
    ]}]}));
    let ask = |frame: Value| format!("x\n\n# Frame\n{frame}");
    let first: Value =
        serde_json::from_str(&say(&script, &ask(json!({"step": "start", "state": {"k": [1]}}))).await).expect("json");
    assert_eq!(first, json!({"next_step": "s/1", "state": {"k": [1], "n": 1}, "text": "about nothing"}));
    let second =
        say(&script, &ask(json!({"step": "s/1", "state": {"list": [1, 2]}, "guidance": {"a": {"b": "yes"}}}))).await;
    assert_eq!(second, "yes [1,2] - s/1 {{");
}

#[tokio::test]
async fn tool_calls_are_part_of_the_outcome() {
    let script =
        scripted(json!({"otherwise": {"tool_calls": [{"name": "look", "arguments": {"q": "{{subject|x}}"}}]}}));
    let answer = value_of(&call(&script, request("p"), None, None).await.result.expect("an answer"));
    assert_eq!(answer["tool_calls"], json!([{"id": "call_1", "name": "look", "arguments": {"q": "x"}}]));
    assert_eq!((&answer["finish"], &answer["text"]), (&json!("tool_calls"), &json!("")));
}

#[tokio::test(start_paused = true)]
async fn replies_are_told_word_by_word() {
    let script = scripted(json!({"otherwise": {"reasoning": "let me see", "text": "one two\nthree", "delay_ms": 100,
        "delta_ms": 10, "usage": {"input_tokens": 7, "output_tokens": 5}, "finish": "length",
        "tool_calls": [{"name": "look", "arguments": {"query": "all there is"}}]}}));
    let heard = Heard::new();
    let reply = call(&script, request("hello"), None, Some(&heard)).await.result.expect("an answer");
    let words =
        ["(let )", "(me )", "(see)", "one ", "two\n", "three", "[look]", "[{\"query\":\"all th]", "[ere is\"}]", "7+5"];
    assert_eq!(heard.words(), words);
    let times: Vec<u128> = heard.all().into_iter().map(|(at, _)| at).collect();
    assert_eq!(times, (0..10).map(|n| 100 + 10 * n).collect::<Vec<u128>>());
    assert_eq!((reply.text().as_str(), reply.finish.as_str(), reply.parts.len()), ("one two\nthree", "length", 3));
    assert!(script.requests()[0].streaming && script.requests()[0].run_id == "c:t");
}

#[tokio::test(start_paused = true)]
async fn a_reply_may_break_off_in_the_middle() {
    let script = scripted(json!({"rules": [
        {"times": 1, "reply": {"text": "one two three", "fail": {"class": "cut", "after": 2}}},
        {"times": 1, "reply": {"text": "one two three", "fail": {"class": "overloaded", "after": 1}}},
    ], "otherwise": {"text": "one two"}}));
    let heard = Heard::new();
    let outcome = call(&script, request("hello"), None, Some(&heard)).await;
    assert_eq!(outcome.result.expect("an answer").text(), "one two");
    assert_eq!(heard.words(), ["one ", "two ", "-1", "one ", "-2", "one ", "two", "2+2"]);
    assert_eq!(heard.all()[5].0, 1_500);
}

#[tokio::test(start_paused = true)]
async fn failures_have_the_class_of_real_ones() {
    for (class, category) in [
        ("rate_limit", ErrorCategory::RateLimit),
        ("timeout", ErrorCategory::Transient),
        ("safety", ErrorCategory::Safety),
        ("quota", ErrorCategory::Quota),
        ("auth", ErrorCategory::Auth),
        ("invalid", ErrorCategory::Validation),
    ] {
        let script = scripted(json!({"otherwise": {"fail": {"class": class}}}));
        let failure = call(&script, request("x"), None, None).await.result.expect_err("a failure");
        assert_eq!(failure.category, category);
        assert_eq!(script.requests().len(), if category.is_infrastructure() { 3 } else { 1 });
    }
}

/// As at a door: who says so has begun nothing, but in the middle of an answer.
#[tokio::test(start_paused = true)]
async fn what_may_happen_once_alone_is_tried_again_where_it_was_turned_away() {
    let at_once = json!({"fail": {"class": "rate_limit"}});
    let amid = json!({"text": "one two three", "fail": {"class": "rate_limit", "after": 1}});
    for (fail, times) in [(at_once, 3), (amid, 1)] {
        let script = scripted(json!({ "otherwise": fail }));
        let once = ChatCall { once: true, ..call_of(request("x"), None) };
        make(&script, &once, Some(&Heard::new())).await.result.expect_err("a failure");
        assert_eq!(script.requests().len(), times, "{fail}");
    }
}

/// A round of tools: the model asked, somebody answered.
fn answered(result: &str, choice: Option<ToolChoice>) -> ChatRequest {
    let mut asked = ChatRequest::ask("be kind", "what is the weather?");
    asked.messages.push(Message::text(Role::Assistant, "let me look"));
    asked.messages.push(Message::new(Role::Tool, vec![Part::tool_result("c", result, false)]));
    asked.tools.push(ToolSpec { name: "look".to_owned(), description: String::new(), input_schema: json!({}) });
    asked.parameters.tool_choice = choice;
    asked
}

#[tokio::test]
async fn rules_follow_a_conversation() {
    let script = scripted(json!({"rules": [
        {"when": {"tools": false}, "reply": {"text": "last words"}},
        {"when": {"last": "tool", "result": "sun*", "system": "kind"}, "reply": {"text": "It is {{result}}: {{prompt}}"}},
        {"when": {"last": "tool"}, "reply": {"tool_calls": [{"name": "look", "arguments_text": "{\"q\": "}]}},
    ], "otherwise": {"text": "unheard of"}}));
    assert_eq!(say_of(&script, answered("sunny", None)).await, "It is sunny: what is the weather?");
    assert_eq!(say_of(&script, answered("sunny", Some(ToolChoice::None))).await, "last words");
    let reply = call(&script, answered("rain", None), None, None).await.result.expect("an answer");
    assert_eq!(reply.tool_calls().next().and_then(|call| call.invalid.as_deref()), Some("{\"q\": "));
    assert_eq!(script.requests()[0].results, "sunny");
}

#[tokio::test]
async fn native_requests_are_understood_whosever_they_are() {
    let script = scripted(json!({"rules": [
        {"when": {"result": "sunny", "system": "kind"}, "reply": {"text": "so it is sunny"}},
        {"when": {"contains": "weather", "last": "user"}, "reply": {"text": "let me look"}}
    ]}));
    let tool = json!([{"type": "tool_result", "tool_use_id": "c", "content": "sunny"}]);
    let bodies = [
        (
            "anthropic",
            json!({"system": "be kind", "messages": [{"role": "user", "content": "the weather?"}]}),
            json!({"role": "assistant", "content": [{"type": "tool_use"}]}),
            json!({"role": "user", "content": tool}),
        ),
        (
            "openai",
            json!({"messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "the weather?"}]}),
            json!({"role": "assistant", "content": null}),
            json!({"role": "tool", "content": "sunny"}),
        ),
        (
            "openai_responses",
            json!({"instructions": "be kind", "input": [{"role": "user", "content": "the weather?"}]}),
            json!({"type": "function_call"}),
            json!({"type": "function_call_output", "output": "sunny"}),
        ),
        (
            "gemini",
            json!({"systemInstruction": {"parts": [{"text": "be kind"}]},
            "contents": [{"role": "user", "parts": [{"text": "the weather?"}]}]}),
            json!({"role": "model", "parts": [{"functionCall": {}}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"response": {"result": "sunny"}}}]}),
        ),
    ];
    for (provider, mut body, asked, answer) in bodies {
        let native = |body: &Value| ChatRequest {
            native: Some(NativeRequest { provider: provider.to_owned(), body: body.clone() }),
            ..ChatRequest::default()
        };
        assert_eq!(say_of(&script, native(&body)).await, "let me look", "{provider}");
        let name = ["messages", "contents", "input"].into_iter().find(|name| body[*name].is_array()).expect("a list");
        body[name].as_array_mut().expect("a list").extend([asked, answer]);
        assert_eq!(say_of(&script, native(&body)).await, "so it is sunny", "{provider}");
    }
}

#[test]
fn a_bad_script_is_explained_with_its_place() {
    for (script, part) in [
        ("{\"rules\": [\n  {\"reply\": {\"txt\": \"a\"}}]}", "line 2 column"),
        ("{\"rules\": [", "line 1 column"),
        ("{}", "neither rules nor otherwise"),
        ("{\"rules\": [{}]}", "rules[0]: give either reply or replies"),
        ("{\"rules\": [{\"reply\": {\"delay_ms\": 5}}]}", "rules[0].reply: give text, frame"),
        ("{\"otherwise\": {\"text\": \"{{sbject}}\"}}", "otherwise: text: {{sbject}} is no placeholder"),
        ("{\"rules\": [{\"when\": {\"glob\": \"[\"}, \"reply\": {\"text\": \"a\"}}]}", "rules[0].when.glob:"),
        ("{\"rules\": [{\"reply\": {\"fail\": {\"class\": \"boom\"}}}]}", "unknown variant `boom`"),
    ] {
        let problem = Script::parse(script).expect_err(script);
        assert!(problem.contains(part), "{script}: {problem}");
    }
}

#[tokio::test]
async fn requests_are_recorded_as_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.json");
    std::fs::write(&path, r#"{"record": "got.jsonl", "otherwise": {"text": "ok"}}"#).expect("written");
    let script = Arc::new(Scripted::load(&path, None).expect("a script"));
    assert_eq!(say(&script, "hello").await, "ok");
    let text = std::fs::read_to_string(folder.path().join("got.jsonl")).expect("recorded");
    let line: Value = serde_json::from_str(text.trim()).expect("one line");
    assert_eq!((&line["n"], &line["key"], &line["prompt"]), (&json!(1), &json!("k"), &json!("hello")));
    assert_eq!((&line["run_id"], &line["max_tokens"], &line["messages"]), (&json!("c:t"), &json!(9), &json!(1)));
    let missing = Scripted::load(&folder.path().join("no.json"), None).expect_err("missing");
    assert!(missing.contains("no.json"), "{missing}");
}

/// Runs a moniker on the built-in script until it is done, at most `steps` steps.
async fn run(name: &str, task: Option<&str>, state: Value, steps: usize) -> Vec<FrameOut> {
    let script = Arc::new(Scripted::built_in(None).expect("the built-in script"));
    let moniker = moniker::find(name).expect("a moniker");
    let spec = SessionSpec {
        moniker: name.to_owned(),
        task: task.map(str::to_owned),
        config: Json::of(&json!({})),
        stop_on_done: true,
        max_steps: None,
        max_runtime_ms: None,
        loop_interval_ms: 0,
        conversation_id: None,
        parent: None,
    };
    let mut frame = FrameIn { step: StepToken::start(), state: moniker.initial_state(&spec, state), guidance: None };
    let mut outs: Vec<FrameOut> = Vec::new();
    let session = SessionKey::new(Namespace::default_ns(), SessionId::parse("s-1").expect("an id"));
    let agent = AgentId::parse("agent-1").expect("an id");
    for _ in 0..steps {
        let mut outcomes = Vec::new();
        let out = loop {
            let input = StepInput {
                session: &session,
                agent: &agent,
                frame: &frame,
                spec: &spec,
                arrival: None,
                answer: None,
                outcomes: &outcomes,
            };
            match moniker.decide(&input) {
                Decision::Finish { out, .. } => break out,
                Decision::Perform(domain::effect::Effect::Model(request)) => {
                    let asked = ChatRequest::ask(&request.system, &request.prompt);
                    let answer = call(&script, asked, None, None).await.result.expect("an answer");
                    outcomes.push(Outcome::Ok(value_of(&answer)));
                }
                other => panic!("{other:?}"),
            }
        };
        assert!(outcomes.len() == 1, "the first answer is a valid frame");
        frame = FrameIn { step: out.next_step.clone(), state: out.state.clone(), guidance: None };
        outs.push(out);
        if outs.last().is_some_and(|out| out.done) {
            break;
        }
    }
    outs
}

#[tokio::test]
async fn the_built_in_script_carries_the_presets() {
    let jokes = run("tell_a_joke", None, json!({}), 12).await;
    assert_eq!(jokes.len(), 12);
    assert!(jokes.iter().all(|out| out.text.as_deref().is_some_and(|text| text.contains("cats")) && !out.done));
    assert_eq!((jokes[11].next_step.as_str(), &jokes[11].state["told"]), ("joke/12", &json!(12)));
    assert_ne!(jokes[0].text, jokes[1].text);
    for (name, state, steps) in
        [("summarize", json!({"subject": "tides"}), 2), ("research", json!({"subject": "tides"}), 5)]
    {
        let outs = run(name, None, state, 9).await;
        assert_eq!(outs.len(), steps, "{name}");
        assert!(outs.iter().all(|out| out.text.as_deref().is_some_and(|text| text.contains("tides"))), "{outs:?}");
        assert!(outs.last().is_some_and(|out| out.done));
    }
    let generic = run("run_step", Some("Do it."), json!({"a": 1}), 9).await;
    assert_eq!((generic.len(), &generic[2].state), (3, &json!({"a": 1, "steps": 3})));
}

#[tokio::test]
async fn the_built_in_script_says_in_a_conversation_what_it_is_and_how_to_connect_a_model() {
    let script = Arc::new(Scripted::built_in(None).expect("the built-in script"));
    let said = say(&script, "What can\n  you do?").await;
    for part in [
        "scripted",
        "“What can you do?”",
        "environment of the workers",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "OPENAI_BASE_URL",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("next_step"), "{said}");
    let long = say(&script, &"word ".repeat(500)).await;
    assert!(long.contains("word …”") && long.len() < said.len() + 300, "{long}");
    assert!(say(&script, " ").await.contains("“nothing”"));
    let summary = say_of(&script, ChatRequest::ask(domain::compact::SYSTEM, "What came after it: a lot")).await;
    assert!(summary.contains("no summary") && !summary.contains("a lot"), "{summary}");
}
