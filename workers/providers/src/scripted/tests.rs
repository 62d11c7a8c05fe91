//! Scripts: rules in order, replies in turn, problems with their place.

use domain::effect::Outcome;
use domain::moniker::{self, Decision, StepInput};
use schemas::frame::{FrameIn, FrameOut, StepToken};
use schemas::json::Json;
use schemas::session::SessionSpec;
use serde_json::json;
use tokio::time::Instant;

use super::*;

fn scripted(script: Value) -> Scripted {
    Scripted::new(Script::parse(&script.to_string()).expect("a script"), None).expect("no file")
}

fn request(prompt: &str) -> ModelRequest {
    ModelRequest { profile: None, system: String::new(), prompt: prompt.to_owned(), max_tokens: 9, json: false }
}

async fn say(scripted: &Scripted, prompt: &str) -> String {
    match scripted.ask("k", &request(prompt)).await {
        Ok(answer) => answer.text,
        Err((error, attempts)) => format!("{} after {attempts}", error.class.as_str()),
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
    let fast = ModelRequest { profile: Some("fast".to_owned()), ..request("x") };
    assert_eq!(script.ask("k", &fast).await.expect("an answer").text, "quick");
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
    assert_eq!(say(&script, "c").await, "cut after 3");
    assert_eq!(say(&script, "nothing fits").await, "invalid after 1");
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
    let answer = script.ask("k", &request("p")).await.expect("an answer").outcome("scripted");
    assert_eq!(answer["tool_calls"], json!([{"id": "call_1", "name": "look", "arguments": {"q": "x"}}]));
    assert_eq!((&answer["finish"], &answer["text"]), (&json!("tool_calls"), &json!("")));
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

#[test]
fn requests_are_recorded_as_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script.json");
    std::fs::write(&path, r#"{"record": "got.jsonl", "otherwise": {"text": "ok"}}"#).expect("written");
    let script = Scripted::load(&path, None).expect("a script");
    script.recorder.record("n:s:1:0", &request("hello"), Some(None));
    let text = std::fs::read_to_string(folder.path().join("got.jsonl")).expect("recorded");
    let line: Value = serde_json::from_str(text.trim()).expect("one line");
    assert_eq!((&line["n"], &line["key"], &line["prompt"]), (&json!(1), &json!("n:s:1:0"), &json!("hello")));
    let missing = Scripted::load(&folder.path().join("no.json"), None).expect_err("missing");
    assert!(missing.contains("no.json"), "{missing}");
}

/// Runs a moniker on the built-in script until it is done, at most `steps` steps.
async fn run(name: &str, task: Option<&str>, state: Value, steps: usize) -> Vec<FrameOut> {
    let script = Scripted::built_in(None).expect("the built-in script");
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
    for _ in 0..steps {
        let mut outcomes = Vec::new();
        let out = loop {
            let input = StepInput { frame: &frame, spec: &spec, arrival: None, outcomes: &outcomes };
            match moniker.decide(&input) {
                Decision::Finish { out, .. } => break out,
                Decision::Perform(domain::effect::Effect::Model(request)) => {
                    let answer = script.ask("k", &request).await.expect("an answer");
                    outcomes.push(Outcome::Ok(answer.outcome("scripted")));
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
