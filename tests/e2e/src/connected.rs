//! A fresh fleet with a model: the agent that is there answers in the words of a server that others wrote, and
//! nothing of it is scripted.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use serde_json::Value;
use tempfile::TempDir;

use crate::cli::{assert_says, told};
use crate::harness::Harness;
use crate::services::DATABASE;

/// The servers of `ops/model-servers`, for one test.
struct Servers {
    dir: TempDir,
}

impl Servers {
    fn start() -> Self {
        let servers = Self { dir: TempDir::new().expect("a temporary directory") };
        let started = servers.run("up", &["--parent", &std::process::id().to_string()]);
        assert!(started.success(), "ops/model-servers says why");
        servers
    }

    fn run(&self, what: &str, args: &[&str]) -> ExitStatus {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ops/model-servers");
        Command::new(script).arg(what).arg(self.dir.path()).args(args).status().expect("a shell")
    }

    /// What one of them is set as, by the variable with its address.
    fn base_url(&self, variable: &str) -> String {
        let text = std::fs::read_to_string(self.dir.path().join("models.env")).expect("their addresses");
        let address =
            text.lines().find_map(|line| line.strip_prefix("export ")?.strip_prefix(variable)?.strip_prefix('='));
        format!("{}/v1", address.unwrap_or_else(|| panic!("{variable} is not in {text}")))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.run("down", &[]);
    }
}

/// What can be done is asked of the agent that a fleet with these variables has. Fails unless it answers in these words,
/// from this model of that server.
async fn assert_answers(envs: &[(&str, &str)], base_url: &str, model: &str, words: &str) -> Harness {
    let fleet = Harness::start_in(envs).await;
    let provider = fleet.get("/health").await["provider"].clone();
    assert_eq!(provider, format!("openai ({model} at {base_url})"));
    if fleet.setting(DATABASE).is_some() {
        return fleet; // A shared database is prepared by `migrate`, which defines nobody.
    }
    let out = told(&fleet, &["say", "hello", "What can you do?", "--with", "guide"]).await;
    assert_says(&out, &[words]);
    let page = fleet.get("/api/conversations/hello/messages").await;
    let answer = &page["items"][1];
    assert!(answer["text"].as_str().is_some_and(|text| text.contains(words)), "{page}");
    let turn = fleet.get(&format!("/api/turns/{}", answer["turn_id"].as_str().expect("a turn"))).await;
    let calls = turn["provider_calls"].as_array().expect("its calls");
    let is_its = |call: &Value| call["provider"] == "openai" && call["model"] == model;
    assert!(!calls.is_empty() && calls.iter().all(is_its), "{turn}");
    for text in [out, page.to_string(), turn.to_string()] {
        assert!(!text.contains("scripted"), "{text}");
    }
    fleet
}

#[tokio::test]
async fn an_address_is_enough_for_the_agent_to_answer_with_a_model_that_is_there() {
    let servers = Servers::start();
    let base_url = servers.base_url("LLMOCK_URL");
    // It has a list, with this one first, and tells in every answer which was asked for.
    let fleet = assert_answers(&[("OPENAI_BASE_URL", &base_url)], &base_url, "gpt-4o", "gpt-4o").await;
    assert_says(&fleet.log(), &["gpt-4o", "STEPFLEET_MODEL"]);
}

#[tokio::test]
async fn a_server_that_lists_nothing_answers_to_the_usual_model_or_to_the_one_that_is_named() {
    let servers = Servers::start();
    let base_url = servers.base_url("LLM_MOCK_API_URL");
    let mut envs = vec![("OPENAI_BASE_URL", base_url.as_str()), ("OPENAI_API_KEY", "sk-of-the-test")];
    let fleet = assert_answers(&envs, &base_url, "gpt-5-mini", "unheard of").await;
    assert_says(&fleet.log(), &["404", "STEPFLEET_MODEL"]);
    envs.push(("STEPFLEET_MODEL", "openai/own/model"));
    let fleet = assert_answers(&envs, &base_url, "own/model", "unheard of").await;
    assert!(!fleet.log().contains("STEPFLEET_MODEL"), "nobody is asked, and nothing is left to be set");
}
