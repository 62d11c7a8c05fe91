//! Budgets of namespaces, sessions and turns: who is over one asks a person and fails for nothing; a yes lets it go
//! on, and a no ends the turns that asked.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::asking::{decide, questions, waiting};
use super::by_hand::{self, claim, finish};
use super::desk::{asked, converse, ended, item, said, say};
use crate::harness::Harness;

/// What turns, sessions and the namespace may cost; far more than any request is estimated to.
const COST: f64 = 100.0;
/// Tokens of an expensive reply, which cost 150: over the budget, and within twice of it.
const MUCH: u64 = 150_000;
/// The time of turns and sessions; a turn that waits for nobody needs a fraction of it.
const SECONDS: u64 = 5;
/// Until it is over, by the fleet's clock as well.
const LONG: Duration = Duration::from_millis(SECONDS * 1_000 + 200);

/// Agents that may use something each, and `ben`, who is not bound himself.
fn definitions() -> Vec<Value> {
    let agent = |id: &str, budgets: Value| {
        let persona = json!({"system_prompt": "You help.", "model_profile_id": "m", "tool_ids": ["dig"],
            "constraints": {"budgets": budgets}});
        item("agent", json!({"id": id, "name": id, "project_ids": ["p1"], "persona_inline": persona}))
    };
    let mut definitions = vec![
        item("library", json!({"id": "desk", "name": "Desk"})),
        item("project", json!({"id": "p1", "name": "P1"})),
        item(
            "model_profile",
            json!({"id": "m", "name": "M", "provider": "scripted", "model_id": "scripted",
                "cost_per_1k_input_tokens": 1.0, "cost_per_1k_output_tokens": 0.0}),
        ),
    ];
    definitions.extend(by_hand::tool("dig"));
    definitions.extend([
        agent("ben", json!({})),
        agent("amy", json!({"max_cost_per_turn": COST})),
        agent("eve", json!({"max_cost_per_session": COST})),
        agent("hal", json!({"max_seconds_per_turn": SECONDS})),
        agent("ida", json!({"max_seconds_per_session": SECONDS})),
        agent("max", json!({"max_moves_per_session": 1_000})),
    ]);
    definitions
}

/// A fleet with these settings in its file, and the record of what models are asked.
async fn open(settings: &str) -> (Harness, PathBuf) {
    let folder = tempfile::TempDir::new().expect("a temporary directory").keep();
    let [script, file, record] = ["script.json", "settings.toml", "requests.jsonl"].map(|name| folder.join(name));
    let used = |tokens: u64| json!({"input_tokens": tokens, "output_tokens": 0});
    let rules = json!([
        {"when": {"last": "tool"}, "reply": {"text": "It is {{result}}.", "usage": used(10)}},
        {"when": {"contains": "dig"}, "reply": {"tool_calls": [{"name": "dig", "arguments": {}}], "usage": used(MUCH)}},
        {"when": {"contains": "spend"}, "reply": {"text": "Spent.", "usage": used(MUCH)}},
        {"when": {"contains": "count the sheep"}, "reply": {"usage": used(MUCH),
            "frame": {"next_step": "next", "state": {"...": "{{state}}"}, "text": "One more."}}}
    ]);
    let otherwise = json!({"text": "I heard {{prompt}}.", "usage": used(10)});
    let whole = json!({"record": record, "rules": rules, "otherwise": otherwise});
    std::fs::write(&script, whole.to_string()).expect("written");
    std::fs::write(&file, settings).expect("written");
    let [script, file] = [&script, &file].map(|path| path.to_str().expect("a plain path"));
    let fleet = Harness::start_in(&[("STEPFLEET_SCRIPT", script), ("STEPFLEET_CONFIG", file)]).await;
    let answer = fleet.post("/api/definitions", &json!(definitions())).await;
    assert!(answer.status.is_success(), "{answer:?}");
    (fleet, record)
}

/// Says something that is answered without a question.
async fn answered(fleet: &Harness, conversation: &str, text: &str) {
    let row = ended(fleet, &say(fleet, conversation, text).await).await;
    assert_eq!((&row["status"], &row["error"]), (&json!("completed"), &Value::Null), "{row}");
}

/// The one question of a conversation, which begins like this and names the bound; the turn waits, and has not failed.
async fn question(fleet: &Harness, conversation: &str, turn: &str, (met, bound): (&str, &str)) -> Value {
    let waits = waiting(fleet, turn).await;
    let row = &waits["turn"];
    assert_eq!((&row["status"], &row["error"]), (&json!("active"), &Value::Null), "{row}");
    let mut open = questions(fleet, conversation).await;
    assert_eq!(open.len(), 1, "{open:?}");
    let question = open.remove(0);
    let words = question["question"].as_str().expect("words");
    assert!(words.starts_with(met) && words.contains(&format!("({bound})")), "{words}");
    question
}

/// Says yes, with which a turn comes to its end.
async fn allow(fleet: &Harness, question: &Value, turn: &str) {
    let yes = decide(fleet, question, "approve").await;
    assert!(yes.status.is_success(), "{yes:?}");
    let row = ended(fleet, turn).await;
    assert_eq!((&row["status"], &row["error"]), (&json!("completed"), &Value::Null), "{row}");
}

/// Says no, which ends a turn, and is told as the reason.
async fn forbid(fleet: &Harness, question: &Value, turn: &str) {
    let no = decide(fleet, question, "deny").await;
    assert!(no.status.is_success(), "{no:?}");
    let row = ended(fleet, turn).await;
    assert_eq!((&row["status"], &row["cancelled"]), (&json!("failed"), &json!(false)), "{row}");
    assert_eq!(row["error"]["code"], "budget_exhausted", "{row}");
}

#[tokio::test]
async fn a_namespace_over_its_budget_asks_in_each_session_for_itself() {
    let (fleet, record) = open(&format!("[budgets.default]\nmax_cost = {COST:.1}\n")).await;
    converse(&fleet, "c-one", &["ben"]).await;
    converse(&fleet, "c-two", &["ben"]).await;
    answered(&fleet, "c-one", "spend a lot").await;
    let spending = fleet.get("/api/spending").await;
    assert_eq!((&spending["cost"], &spending["budget"]["max_cost"]), (&json!(150.0), &json!(COST)), "{spending}");

    let about = ("The namespace has cost 150 of 100", "max_cost of the namespace");
    let (one, two) = (say(&fleet, "c-one", "hello").await, say(&fleet, "c-two", "hello").await);
    let (first, second) = (question(&fleet, "c-one", &one, about).await, question(&fleet, "c-two", &two, about).await);
    assert_eq!(asked(&record).len(), 1, "no model is asked meanwhile");
    allow(&fleet, &first, &one).await;
    assert_eq!(said(&fleet, "c-one").await[3].1, "I heard hello.");
    answered(&fleet, "c-one", "and again").await;
    assert_eq!(waiting(&fleet, &two).await["turn"]["status"], "active", "a yes is for the session that asked");
    forbid(&fleet, &second, &two).await;
    assert_eq!(asked(&record).len(), 3, "whoever was not allowed to asked no model");

    // The session goes on: its next turn asks anew.
    let three = say(&fleet, "c-two", "hello again").await;
    let third = question(&fleet, "c-two", &three, ("The namespace has cost 150.02 of 100", about.1)).await;
    allow(&fleet, &third, &three).await;
}

#[tokio::test]
async fn a_loop_counts_too_and_is_paused_until_a_person_resumes_it() {
    let (fleet, record) = open(&format!("[budgets.default]\nmax_cost = {COST:.1}\n")).await;
    let task =
        json!({"moniker": "run_step", "task": "count the sheep", "max_steps": 2, "config": {"model_profile": "m"}});
    fleet.create("sheep", task).await;
    fleet.wait_status("sheep", "paused").await;
    let why = fleet.get("/api/sessions/sheep/why").await;
    let summary = why["summary"].as_str().expect("a summary");
    assert!(summary.starts_with("It is paused by budgets: The namespace has cost 150 of 100, and the next"), "{why}");
    assert!(summary.contains("(max_cost of the namespace); once it is resumed, it may use a cost of 100"), "{why}");
    let spending = fleet.get("/api/spending").await;
    assert_eq!((&spending["cost"], &spending["moves"]), (&json!(150.0), &json!(1)), "by the prices of the profile");
    // A conversation of the same namespace finds it used up.
    converse(&fleet, "c-one", &["ben"]).await;
    let turn = say(&fleet, "c-one", "hello").await;
    question(&fleet, "c-one", &turn, ("The namespace has cost 150 of 100", "max_cost of the namespace")).await;
    assert_eq!(asked(&record).len(), 1);
    fleet.tell("sheep", "resume", json!({})).await;
    fleet.wait_status("sheep", "stopped").await;
    assert_eq!((fleet.steps("sheep").await.len(), asked(&record).len()), (2, 2));
    // The calls are events of the session, wherever they are read from.
    fleet.wait_archived().await;
    let (ok, out, problem) = fleet.cli(&["tail", "sheep", "--json"]).await;
    assert!(ok, "{problem}");
    let events = out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let calls: Vec<Value> = events.filter(|event| event["type"] == "provider_call").collect();
    assert_eq!(calls.len(), 2, "{out}");
    assert_eq!((&calls[0]["data"]["cost"], &calls[0]["data"]["model"]), (&json!(150.0), &json!("script")), "{out}");
}

#[tokio::test]
async fn what_each_session_of_a_namespace_may_use_counts_whatever_its_persona_says() {
    let (fleet, record) = open("[budgets.default.each]\nmax_moves_per_session = 1\n").await;
    for agent in ["ben", "max"] {
        let conversation = format!("c-{agent}");
        converse(&fleet, &conversation, &[agent]).await;
        answered(&fleet, &conversation, "hello").await;
        let turn = say(&fleet, &conversation, "hello again").await;
        let about = ("This session has used 1 of 1 moves", "max_moves_per_session");
        let asked = question(&fleet, &conversation, &turn, about).await;
        allow(&fleet, &asked, &turn).await;
    }
    assert_eq!(asked(&record).len(), 4, "each reply was asked for once");
}

#[tokio::test]
async fn a_turn_over_its_cost_asks_before_its_model_is_told_what_the_tool_found() {
    let (fleet, record) = open("").await;
    converse(&fleet, "c-turn", &["amy"]).await;
    let about = ("This turn has cost 150 of 100", "max_cost_per_turn");
    for requests in [1, 3] {
        let turn = say(&fleet, "c-turn", "dig for it").await;
        let task = claim(&fleet).await;
        finish(&fleet, &task, &json!({"found": 42})).await;
        let asked_about = question(&fleet, "c-turn", &turn, about).await;
        assert_eq!(asked(&record).len(), requests, "each turn has a budget of its own, and one reply so far");
        match requests {
            1 => allow(&fleet, &asked_about, &turn).await,
            _ => forbid(&fleet, &asked_about, &turn).await,
        }
    }
    assert_eq!(asked(&record).len(), 3, "whoever was not allowed to asked no model");
    let texts: Vec<String> = said(&fleet, "c-turn").await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["dig for it", "It is {\"found\":42}.", "dig for it"]);
}

#[tokio::test]
async fn turns_over_the_cost_of_their_session_share_one_question() {
    let (fleet, record) = open("").await;
    converse(&fleet, "c-session", &["eve"]).await;
    // It is known only afterwards what a reply costs.
    answered(&fleet, "c-session", "spend a lot").await;
    let one = say(&fleet, "c-session", "hello").await;
    let two = say(&fleet, "c-session", "are you there?").await;
    waiting(&fleet, &one).await;
    let about = ("This session has cost 150 of 100", "max_cost_per_session");
    let shared = question(&fleet, "c-session", &two, about).await;
    assert_eq!(asked(&record).len(), 1, "no model is asked meanwhile");
    allow(&fleet, &shared, &one).await;
    assert_eq!(ended(&fleet, &two).await["status"], "completed", "one yes was for both");
    answered(&fleet, "c-session", "and again").await;
    assert_eq!(asked(&record).len(), 4);
}

#[tokio::test]
async fn a_turn_and_a_session_whose_time_is_over_ask_and_have_it_anew_after_a_yes() {
    let (fleet, _) = open("").await;
    converse(&fleet, "c-turn", &["hal"]).await;
    converse(&fleet, "c-session", &["ida"]).await;
    answered(&fleet, "c-session", "hello").await;
    let turn = say(&fleet, "c-turn", "dig for it").await;
    let task = claim(&fleet).await;
    tokio::time::sleep(LONG).await;
    finish(&fleet, &task, &json!({"found": 42})).await;
    let about = ("This turn has taken ", "max_seconds_per_turn");
    let late = question(&fleet, "c-turn", &turn, about).await;
    let (used, limit) = (late["request"]["used"].as_f64(), late["request"]["limit"].as_u64());
    assert!(used >= Some(SECONDS as f64) && limit == Some(SECONDS), "{late}");
    allow(&fleet, &late, &turn).await;
    assert_eq!(said(&fleet, "c-turn").await[1].1, "It is {\"found\":42}.");

    let about = ("This session has taken ", "max_seconds_per_session");
    let refused = say(&fleet, "c-session", "hello again").await;
    let asked = question(&fleet, "c-session", &refused, about).await;
    forbid(&fleet, &asked, &refused).await;
    let allowed = say(&fleet, "c-session", "and again").await;
    let asked = question(&fleet, "c-session", &allowed, about).await;
    allow(&fleet, &asked, &allowed).await;
    answered(&fleet, "c-session", "and once more").await;
}
