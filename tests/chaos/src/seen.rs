//! What a run saw of the fleet from outside: all that the checker knows. It is kept in
//! `observed.json`, so that a run can be judged again.

pub mod journal;
pub mod outage;
pub mod talk;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::journal::Journal;
use self::outage::{Outage, Post, Said};
use self::talk::{Asked, Talk, Verdict};
use crate::diary::Bar;

/// Everything that was sent, answered and read. Times are milliseconds since 1970, by the clock of
/// the harness unless said otherwise.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Seen {
    pub seed: u64,
    pub sent: Vec<Sent>,
    /// Rows of the ledger by action id, for everything that was sent.
    pub actions: BTreeMap<String, Row>,
    pub sessions: Vec<Session>,
    pub calls: Vec<Call>,
    pub streams: Vec<Stream>,
    pub owners: Vec<Owner>,
    pub takeovers: Vec<Takeover>,
    #[serde(default)]
    pub talks: Vec<Talk>,
    /// Calls of the harness's own tools, as its server saw them.
    #[serde(default)]
    pub tools: Vec<Call>,
    #[serde(default)]
    pub asked: Vec<Asked>,
    /// What a person said to agents that asked, by the id of the question.
    #[serde(default)]
    pub verdicts: BTreeMap<String, Verdict>,
    /// None in records of earlier releases.
    #[serde(default)]
    pub journal: Option<Journal>,
    /// Tries of clients to have actions accepted.
    #[serde(default)]
    pub posts: Vec<Post>,
    #[serde(default)]
    pub outages: Vec<Outage>,
    #[serde(default)]
    pub said: Vec<Said>,
    /// What was broken, and when. Empty in records of earlier releases.
    #[serde(default)]
    pub faults: Vec<Bar>,
    pub fleet: Fleet,
}

/// An action as its client sent it, and what the client was told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sent {
    pub id: String,
    pub session: String,
    pub kind: String,
    /// Unique text of an input or of guidance.
    pub mark: Option<String>,
    pub told: Told,
    /// Over AMQP there is no answer, and no order that the client knows.
    pub amqp: bool,
    pub at_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    Accepted,
    /// With a problem of this code.
    Refused(String),
    /// Given to the broker, which confirmed it.
    Confirmed,
    /// No answer until the end of all patience.
    Nothing,
}

/// A row of the ledger, as `GET /api/actions/{id}` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub kind: String,
    pub lane: String,
    pub seq: Option<u64>,
    pub processed: bool,
    pub outcome: Option<String>,
    pub code: Option<String>,
}

/// A session and its whole history.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Session {
    pub id: String,
    pub moniker: String,
    pub status: String,
    pub shard: u64,
    pub last_offset: u64,
    /// Status and cause when the fleet was idle, before what was left was destroyed.
    pub idle: Option<Idle>,
    /// The stream from its first event, read after the end.
    pub items: Vec<Item>,
    /// Iteration and id of each step, as `GET /api/agent-steps` lists them.
    pub listed: Vec<(u64, String)>,
}

/// How a session stood when nothing was left to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Idle {
    pub status: String,
    /// The kind of the cause; empty if there was none.
    pub cause: String,
    pub summary: String,
    pub overdue_ms: i64,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub offset: u64,
    /// `step`, `created`, `status`, `action` or `end`.
    pub kind: String,
    /// By the clock of the worker that committed it.
    pub at_ms: i64,
    pub step: Option<Step>,
    pub status: Option<String>,
    pub action: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub id: String,
    pub iteration: u64,
    pub token: String,
    pub next: String,
    pub status: String,
    pub text: Option<String>,
    /// The `mark` of the guidance.
    pub guidance: Option<String>,
    /// The number that guidance set, for `count`.
    pub set: Option<i64>,
    pub error: Option<String>,
}

/// A call of the `http` moniker, or of a tool, as the harness's own server saw it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    pub key: String,
    pub session: String,
    /// Whether it must not be made twice.
    pub once: bool,
    /// What the server did: `answered`, `failed` or `dropped`.
    pub answer: String,
    pub at_ms: i64,
}

/// What a live follower of a session, or of a conversation, received, over all its connections.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Stream {
    pub session: String,
    pub connections: u64,
    pub items: Vec<Heard>,
    pub ended: bool,
}

/// An event as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    pub offset: u64,
    pub kind: String,
    /// The id of the step, of the action, or of the message.
    pub what: String,
    pub at_ms: i64,
}

/// An owner of a shard that was seen; only changes are kept, in the order in which they were seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Owner {
    pub shard: u64,
    pub owner: Option<String>,
    pub epoch: i64,
    pub at_ms: i64,
}

/// From a fault of a worker to the next step of sessions it had.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Takeover {
    pub fault: String,
    pub worker: String,
    pub at_ms: i64,
    /// Whether it was the only fault at that time.
    pub alone: bool,
    /// Pulse sessions of the shards it owned.
    pub sessions: Vec<String>,
    /// For each of them; none if it never moved again.
    pub gaps_ms: Vec<Option<i64>>,
}

/// The fleet as a whole, during the run and at its end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fleet {
    /// Whether all actions were processed within the time allowed after the last fault.
    pub idle: bool,
    pub pending: u64,
    /// At the end: shard, owner, milliseconds left.
    pub shards: Vec<(u64, Option<String>, i64)>,
    pub workers: Vec<String>,
    pub health: String,
    /// Highest value of each gauge and sum of each counter that must be 0, by name and process.
    pub alarms: BTreeMap<String, f64>,
    /// Gauges that must be 0 at the end.
    pub gauges: BTreeMap<String, f64>,
    /// Lines of logs that must not be.
    pub log_lines: Vec<String>,
    /// Of `stepfleet doctor --verify-history --json`.
    pub doctor: Option<Doctor>,
    /// Markers of garbage that was published, and those found among the dead letters.
    pub garbage: Vec<String>,
    pub dead: Vec<String>,
    /// What went wrong with clients and processes in a way that nobody may see.
    pub complaints: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Doctor {
    pub sessions: u64,
    pub steps: u64,
    pub broken: u64,
    pub findings: Vec<String>,
    /// What each check says of the services, versions among it. Empty in records of earlier releases.
    #[serde(default)]
    pub said: Vec<String>,
    /// Checks that are not well, but for the dead letters that the run makes itself.
    pub unwell: Vec<String>,
}

impl Session {
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.items.iter().filter_map(|item| item.step.as_ref())
    }
}
