//! A client that never gives up: it sends its actions one after the other, under ids of its own,
//! and sends one again until it has an answer.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Harness;

/// An action that was accepted.
pub struct Sent {
    pub id: String,
    pub verb: &'static str,
    pub body: Value,
}

/// One client with one session.
pub struct Client {
    pub session: String,
    pub sent: Vec<Sent>,
    moniker: &'static str,
    chance: StdRng,
    paused: bool,
    /// Sent, and no answer yet.
    open: Option<(&'static str, Value)>,
}

impl Client {
    pub fn new(number: usize, seed: u64) -> Self {
        let moniker = if number.is_multiple_of(2) { "echo" } else { "count" };
        Self {
            session: format!("{moniker}-{number}"),
            sent: Vec::new(),
            moniker,
            chance: StdRng::seed_from_u64(seed),
            paused: false,
            open: None,
        }
    }

    pub fn echoes(&self) -> bool {
        self.moniker == "echo"
    }

    /// Sends actions until it is dropped.
    pub async fn work(&mut self, fleet: &Harness) {
        loop {
            if self.open.is_none() {
                let verb = self.next_verb();
                self.open = Some((verb, self.body(verb)));
            }
            self.finish_open(fleet).await;
        }
    }

    /// Gets the last answers, lets the session go on, and ends it once it has taken everything.
    pub async fn settle(&mut self, fleet: &Harness) {
        if self.sent.is_empty() && self.open.is_none() {
            self.open = Some(("create", self.body("create")));
        }
        self.finish_open(fleet).await;
        // Guidance that waits behind a pause is processed only once the session goes on.
        self.send(fleet, "resume").await;
        for sent in &self.sent {
            fleet.wait_processed(&sent.id).await;
        }
        self.send(fleet, "destroy").await;
    }

    async fn send(&mut self, fleet: &Harness, verb: &'static str) {
        self.open = Some((verb, self.body(verb)));
        self.finish_open(fleet).await;
    }

    fn next_verb(&mut self) -> &'static str {
        if self.sent.is_empty() {
            return "create";
        }
        if self.paused {
            // Guidance and inputs may wait behind a pause, but not for ever.
            return if self.chance.random_bool(0.5) { "resume" } else { self.load() };
        }
        if self.chance.random_bool(0.15) { "pause" } else { self.load() }
    }

    fn load(&self) -> &'static str {
        if self.echoes() { "input" } else { "interrupt" }
    }

    fn body(&self, verb: &'static str) -> Value {
        let id = format!("{}-{}", self.session, self.sent.len());
        let payload = match verb {
            "create" => json!({ "moniker": self.moniker, "loop_interval_ms": 5 }),
            "input" => json!({ "text": id }),
            "interrupt" => json!({ "guidance": { "set": self.sent.len() * 1_000_000 } }),
            _ => json!({}),
        };
        json!({ "type": verb, "action_id": id, "session_id": self.session, "agent_id": "kill", "payload": payload })
    }

    /// Sends what is open until there is an answer.
    async fn finish_open(&mut self, fleet: &Harness) {
        let Some((verb, body)) = self.open.clone() else { return };
        loop {
            // No answer, or only half of one: it may have been accepted, and it may not.
            let answer = fleet.try_request(Method::POST, "/api/actions", Some(&body)).await;
            if answer.as_ref().is_ok_and(|answer| answer.status == StatusCode::TOO_MANY_REQUESTS) {
                // Not accepted, and known not to be: its id is free for something else.
                self.open = None;
                return;
            }
            if let Ok(answer) = answer
                && (answer.status.is_success() || answer.status.is_client_error())
            {
                assert!(answer.status.is_success(), "{body}: {}", answer.body);
                self.paused = if verb == "pause" { true } else { self.paused && verb != "resume" };
                let id = body["action_id"].as_str().expect("an id").to_owned();
                self.sent.push(Sent { id, verb, body });
                self.open = None;
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}
