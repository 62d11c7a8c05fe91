//! A context that becomes shorter, piece by piece: first what was said before the turn, then the turn's own first
//! reply. What a model is shown no more is archived and summed up for it by then (C1), no piece that is recorded is
//! asked for again, and nothing is gone from the transcript.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use domain::chat::{ChatCall, Part};
use domain::definition::NewDefinition;
use domain::memory::MemoryFilter;
use domain::ports::{ActionCall, Memories, MemoryListQuery};
use schemas::conversation::{LogKind, LogRecord};
use schemas::definition::DefinitionKind;
use schemas::id::Namespace;
use schemas::json::Json;
use schemas::memory::{Memory, MemoryOwner};
use serde_json::{Value, json};
use testkit::contract::build::agent_id;
use testkit::contract::words::record;
use testkit::crash::Run;
use testkit::fake::MemStore;
use testkit::fake::tools::Work;
use testkit::unreliable::CrashPoint;

use super::check::{check, said, shown};
use super::history::{History, SUMMED_UP};
use super::script::{ATTEMPT, PLAIN, Script, agent, call, is_summary, new, tool};
use super::{Drilled, Ended, every, person, played};

static SCRIPT: Script = Script { agents: &["ida"], said: "go on", definitions, before, reply, object, work, ..PLAIN };

/// What was said before, each so long that not all of it goes into a request: seven times 800 tokens, and half of
/// the window is 5,000.
const TOPICS: [&str; 7] = ["topic1", "topic2", "topic3", "topic4", "topic5", "topic6", "topic7"];
const TOPIC_CHARS: usize = 3_200;
const WINDOW_TOKENS: u64 = 10_000;
/// What the turn finds: two of 1,700 tokens, which are too much as well.
const FINDS: [&str; 2] = ["find1", "find2"];
const FIND_CHARS: usize = 6_800;
/// When the conversation began.
const BEGAN_MS: i64 = 1_700_000_000_000;
/// Summaries in the order of the log, and how far they go. Five topics are old; the sixth piece puts one batch in the
/// place of the first four. Then comes a piece of the turn.
const SUMMARIES: [(&str, u64); 7] = [
    ("t1.summary.1", 1),
    ("t1.summary.2", 2),
    ("t1.summary.3", 3),
    ("t1.summary.4", 4),
    ("t1.summary.5", 5),
    ("t1.summary.6", 5),
    ("t1.summary.8", 1),
];
/// More than there can be.
const MEMORIES_MAX: usize = 100;

/// One crash at every `stride`th call, before and after it.
///
/// # Errors
/// The first crash that changes history.
pub fn drill_compaction(stride: usize) -> Result<Drilled, String> {
    every(stride, play)
}

async fn play(crash: Option<CrashPoint>) -> (Run<History>, Drilled) {
    let ended = played(&SCRIPT, crash, person::nobody).await;
    let drilled = check(&ended).await;
    summed_up(&ended).await;
    told(&ended).await;
    (ended.run().await, drilled)
}

/// One message at a time is summed up, and two stay.
fn definitions() -> Vec<NewDefinition> {
    let mut all = Vec::from(tool("dig", "idempotent", &json!({})));
    let model = json!({"id": "small", "name": "Small", "provider": "scripted", "model_id": "scripted",
                       "model_max_tokens": WINDOW_TOKENS, "parameters": {"max_tokens": 500}});
    all.push(new(DefinitionKind::ModelProfile, &model));
    let compaction = json!({"chunk_size": 1, "keep_recent": 2, "clip_first": 1, "clip_last": 1});
    let persona = json!({"system_prompt": "You dig.", "model_profile_id": "small", "tool_ids": ["dig"],
                         "context_budget": 0.5, "compaction": compaction});
    all.push(agent("ida", &persona));
    all
}

fn before() -> Vec<LogRecord> {
    let said = TOPICS.iter().zip(1..).map(|(topic, n)| {
        let id = format!("old{n}");
        let body = json!({"message_id": id, "sender_type": "user", "role": "user", "event_type": "utterance",
                          "text": long(topic, TOPIC_CHARS)});
        let at_ms = BEGAN_MS + 1_000 * n;
        LogRecord { agent_id: None, at_ms, body: Json::of(&body), ..record(LogKind::Message, &id) }
    });
    said.collect()
}

/// A text that is known by its first word, and is whole as long as more than that is there.
fn long(mark: &str, chars: usize) -> String {
    format!("{mark} {}", "x".repeat(chars))
}

fn is_whole(words: &str, mark: &str) -> bool {
    words.contains(&format!("{mark} x"))
}

/// Who sums up names whatever it is told of.
fn reply(asked: &ChatCall) -> Vec<Part> {
    if is_summary(asked) {
        let words = SCRIPT.words(asked);
        let marks: Vec<&str> = TOPICS.into_iter().chain(FINDS).filter(|mark| words.contains(mark)).collect();
        return vec![Part::text(marks.join(" "))];
    }
    match asked.id.as_str() {
        "t1.1" => vec![call("dig-1", "dig", FINDS[0])],
        "t1.2" => vec![call("dig-2", "dig", FINDS[1])],
        _ => vec![Part::text("All is found.")],
    }
}

fn work(_: MemStore, call: ActionCall) -> Work {
    Box::pin(async move {
        tokio::time::sleep(ATTEMPT).await;
        let what = call.request.input["what"].as_str().unwrap_or_default();
        Ok(json!({ "found": long(what, FIND_CHARS) }))
    })
}

/// Invariant C1, at the moment when a model is asked.
fn object(store: &MemStore, asked: &ChatCall) -> Option<String> {
    if is_summary(asked) {
        return None;
    }
    let found = match asked.id.as_str() {
        "t1.1" => 0,
        "t1.2" => 1,
        _ => FINDS.len(),
    };
    let words = SCRIPT.words(asked);
    let archive: String = at_once(archived(store)).into_iter().map(|one| one.content).collect();
    let mut marks = TOPICS.iter().chain(&FINDS[..found]);
    let is_kept = |mark: &str| is_whole(&words, mark) || (words.contains(mark) && archive.contains(mark));
    let lost = marks.find(|mark| !is_kept(mark))?;
    Some(format!("C1: {} is asked without {lost}, or that is not in the archive: {archive}", asked.id))
}

async fn archived(store: &MemStore) -> Vec<Memory> {
    let owner = MemoryOwner { namespace: Namespace::default_ns(), agent_id: agent_id("ida") };
    let filter = MemoryFilter { kinds: vec![SUMMED_UP.to_owned()], ..MemoryFilter::default() };
    let query = MemoryListQuery { filter, after: None, limit: MEMORIES_MAX };
    Memories::list(store, &owner, &query).await.expect("no faults are scripted").rows
}

/// What the store answers, which never waits.
fn at_once<T>(read: impl Future<Output = T>) -> T {
    match pin!(read).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found,
        Poll::Pending => panic!("the store waits"),
    }
}

/// Each piece is recorded once, and the archive has the batches of the last ones, and no others.
async fn summed_up(ended: &Ended) {
    let Ended { place, at, .. } = ended;
    let rows = place.log().await;
    let rows = rows.iter().filter(|row| row.record.kind == LogKind::Summary);
    let made: Vec<(&str, Value)> = rows.map(|row| (row.record.id.as_str(), row.record.body.to_value())).collect();
    let upto: Vec<(&str, u64)> = made.iter().map(|(id, body)| (*id, body["upto"].as_u64().unwrap_or(0))).collect();
    assert_eq!(upto, SUMMARIES, "{at}");
    let mut batches: Vec<&Value> =
        made[made.len() - 2..].iter().filter_map(|(_, body)| body["batches"].as_array()).flatten().collect();
    let archive = archived(&place.world.store).await;
    for kept in &archive {
        let is_of = |batch: &&Value| batch["label"].as_str() == kept.label.as_deref();
        let batch = batches.iter().position(is_of).map(|nth| batches.remove(nth));
        let summary = batch.and_then(|batch| batch["summary"].as_str()).unwrap_or_default();
        assert!(batch.is_some() && kept.content.ends_with(summary), "{at}: {kept:?} is not of {batch:?}");
    }
    assert!(batches.is_empty() && archive.len() == 3, "{at}: {batches:?} are not in {archive:?}");
}

/// The model is told in short, and people are shown all of it.
async fn told(ended: &Ended) {
    let Ended { place, at, .. } = ended;
    let (first, last) = (shown(place, "t1.1"), shown(place, "t1.3"));
    assert!(!is_whole(&first, TOPICS[4]) && is_whole(&first, TOPICS[5]), "{at}: {first}");
    assert!(!is_whole(&last, FINDS[0]) && is_whole(&last, FINDS[1]), "{at}: {last}");
    let said = said(place).await;
    let starts: Vec<&str> = said.iter().map(|line| line.split(" x").next().unwrap_or_default()).collect();
    let mut expected: Vec<String> = TOPICS.iter().map(|topic| format!("user: {topic}")).collect();
    expected.extend(["user: go on".to_owned(), "ida: All is found.".to_owned()]);
    assert_eq!(starts, expected, "{at}");
}
