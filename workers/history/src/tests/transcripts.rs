//! Messages, moves and records in LanceDB: each once, whatever is repeated, by whomever, and after whatever upkeep.

use std::ops::RangeInclusive;

use domain::conversation::kept::{KeptRecords, LogPlace};
use domain::ports::TranscriptArchive;
use schemas::conversation::{LogKind, LogRecord, LogRow};
use schemas::id::Namespace;
use schemas::json::Json;
use serde_json::json;
use testkit::contract::build::namespace;
use testkit::contract::words::{conversation_id, record, turn_id};

use super::gate::Gate;
use super::*;
use crate::predicate::{ascending, of_log};
use crate::query::{Page, fetch};

fn at(conversation: &str, offset: u64) -> LogPlace {
    LogPlace { namespace: Namespace::default_ns(), conversation_id: conversation_id(conversation), offset }
}

/// In turns: a note, a reply that calls a tool, and the tool's result.
fn row(offset: u64) -> LogRow {
    let (kind, body) = match offset % 3 {
        1 => (LogKind::Note, json!({"text": "be quick"})),
        2 => (LogKind::Move, json!({"move": offset / 3 + 1, "reasoning": "hm", "tool_calls": [{"id": "k1"}]})),
        _ => (LogKind::ToolResult, json!({"move": offset / 3, "tool_call_id": "k1", "result": "a cat"})),
    };
    let (turn_id, body) = (Some(turn_id("t1")), Json::of(&body));
    LogRow { offset, record: LogRecord { turn_id, body, ..record(kind, &format!("r{offset}")) } }
}

fn kept(conversation: &str, offsets: RangeInclusive<u64>) -> KeptRecords {
    let mut kept = KeptRecords::default();
    for offset in offsets {
        kept.add(&at(conversation, offset), &row(offset)).expect("a record");
    }
    kept
}

async fn add(archive: &LanceArchive, records: &KeptRecords) {
    archive.add_records(records.clone()).await.expect("the archive takes records");
}

/// What there is of a log must be exactly its first `count` records.
async fn assert_exact(archive: &LanceArchive, conversation: &str, count: u64, what: &str) {
    let found = archive.record_ids(&at(conversation, 0), u64::MAX).await.expect("a read");
    assert_eq!(found, kept(conversation, 1..=count).ids(), "{what}");
}

#[tokio::test]
async fn records_that_come_again_are_there_once() {
    let dir = TempDir::new().expect("a directory");
    let archive = open(&dir, OpenOptions::default()).await;
    add(&archive, &kept("c1", 1..=4)).await;
    add(&archive, &kept("c1", 1..=4)).await;
    drop(archive);
    let archive = open(&dir, OpenOptions::default()).await;
    // A batch of which a part is there, and of several logs.
    let mut batch = kept("c1", 3..=9);
    let other = kept("c2", 1..=5);
    batch.messages.extend(other.messages);
    batch.moves.extend(other.moves);
    batch.records.extend(other.records);
    add(&archive, &batch).await;
    add(&archive, &batch).await;
    assert_exact(&archive, "c1", 9, "all in all").await;
    assert_exact(&archive, "c2", 5, "beside it").await;
    let part = archive.record_ids(&at("c1", 4), 6).await.expect("a read");
    assert_eq!(part, kept("c1", 5..=6).ids());
    // The same names in another namespace are others.
    let mut foreign = kept("c1", 1..=2);
    foreign.messages.iter_mut().for_each(|row| row.place.namespace = namespace("other"));
    foreign.moves.iter_mut().for_each(|row| row.place.namespace = namespace("other"));
    foreign.records.iter_mut().for_each(|row| row.place.namespace = namespace("other"));
    add(&archive, &foreign).await;
    assert_exact(&archive, "c1", 9, "beside another namespace").await;
    let theirs = archive.record_ids(&LogPlace { namespace: namespace("other"), ..at("c1", 0) }, 9).await;
    assert_eq!(theirs.expect("a read"), foreign.ids());
}

#[tokio::test]
async fn what_others_left_behind_a_batch_is_found() {
    let dir = TempDir::new().expect("a directory");
    let (one, other) = (open(&dir, OpenOptions::default()).await, open(&dir, OpenOptions::default()).await);
    // More than the next batch, and never recorded.
    add(&one, &kept("c1", 1..=9)).await;
    add(&other, &kept("c1", 1..=4)).await;
    add(&other, &kept("c1", 5..=12)).await;
    add(&other, &kept("c1", 13..=15)).await;
    assert_exact(&other, "c1", 15, "after a crash").await;
    // Somebody else has the role for a while.
    add(&one, &kept("c1", 14..=18)).await;
    add(&one, &kept("c1", 19..=21)).await;
    add(&other, &kept("c1", 16..=24)).await;
    add(&other, &kept("c1", 25..=27)).await;
    assert_exact(&other, "c1", 27, "after two changes").await;
    other.maintain().await.expect("upkeep");
    add(&other, &kept("c1", 26..=30)).await;
    assert_exact(&other, "c1", 30, "after upkeep").await;
}

#[tokio::test]
async fn results_are_rows_of_their_own() {
    let dir = TempDir::new().expect("a directory");
    let archive = open(&dir, OpenOptions::default()).await;
    add(&archive, &kept("c1", 1..=2)).await;
    add(&archive, &kept("c1", 3..=6)).await;
    let mut told = Vec::new();
    let page = Page {
        filter: Some(of_log(&at("c1", 0), 9)),
        columns: &["log_offset", "turn_id", "sequence", "tool_calls", "tool_results"],
        order: Some(ascending("log_offset")),
        offset: 0,
        limit: None,
    };
    fetch(&archive.0.moves, page, |cells| {
        for row in 0..cells.rows() {
            assert_eq!(cells.text("turn_id", row)?, Some("t1"));
            let has = |name: &str| cells.text(name, row).map(|text| text.is_some());
            told.push((cells.count("sequence", row)?, has("tool_calls")?, has("tool_results")?));
        }
        Ok(())
    })
    .await
    .expect("a read");
    assert_eq!(told, [(1, true, false), (1, false, true), (2, true, false), (2, false, true)]);
}

/// Of the step that said something its message has all columns; of what nobody's step said they are empty.
#[tokio::test]
async fn what_a_step_said_is_there_with_its_step() {
    let dir = TempDir::new().expect("a directory");
    let archive = open(&dir, OpenOptions::default()).await;
    let said = json!({"message_id": "s.iteration.4", "sender_type": "agent", "role": "assistant", "agent_id": "a",
        "session_id": "s", "text": "done", "data": {"n": 1}, "event_type": "utterance", "iteration": 4,
        "step_token": "n/4", "next_step_token": "n/5", "status": "ok", "notes": "slow"});
    let asked = json!({"message_id": "m1", "sender_type": "user", "role": "user", "text": "go",
        "event_type": "utterance"});
    let mut batch = KeptRecords::default();
    for (offset, body) in [(1, asked), (2, said)] {
        let id = body["message_id"].as_str().expect("an id").to_owned();
        let record = LogRecord { body: Json::of(&body), ..record(LogKind::Message, &id) };
        batch.add(&at("c1", offset), &LogRow { offset, record }).expect("a message");
    }
    add(&archive, &batch).await;
    let texts = ["session_id", "data", "step_token", "next_step_token", "status", "notes"];
    let page = Page {
        filter: Some(of_log(&at("c1", 0), 2)),
        columns: &["log_offset", "session_id", "data", "iteration", "step_token", "next_step_token", "status", "notes"],
        order: Some(ascending("log_offset")),
        offset: 0,
        limit: None,
    };
    let mut told = Vec::new();
    fetch(&archive.0.messages, page, |cells| {
        for row in 0..cells.rows() {
            let mut cell = Vec::new();
            for name in texts {
                cell.push(cells.text(name, row)?.unwrap_or("-").to_owned());
            }
            told.push((cells.long("iteration", row)?, cell.join(" ")));
        }
        Ok(())
    })
    .await
    .expect("a read");
    assert_eq!(told, [(None, "- - - - - -".to_owned()), (Some(4), "s {\"n\":1} n/4 n/5 ok slow".to_owned())]);
}

#[tokio::test]
async fn bodies_come_back_as_they_were_written() {
    let dir = TempDir::new().expect("a directory");
    let archive = open(&dir, OpenOptions::default()).await;
    let mut batch = kept("c1", 1..=6);
    // Not as a value would be written again.
    let body = Json::parse("{\"n\": 1.50, \"a\" : \"\\u0000 \u{1F600} 'x'\"}".to_owned()).expect("JSON");
    batch.records[0].record.body = body.clone();
    add(&archive, &batch).await;
    let (mut foreign, mut other) = (kept("c1", 1..=6), kept("c2", 1..=6));
    foreign.records.iter_mut().for_each(|row| row.place.namespace = namespace("other"));
    foreign.records.append(&mut other.records);
    add(&archive, &KeptRecords { records: foreign.records, ..KeptRecords::default() }).await;
    let bodies = async |offsets: &[u64]| {
        let mut found = archive.bodies(&at("c1", 0), offsets).await.expect("a read");
        found.sort_by_key(|kept| kept.offset);
        found
    };
    let found = bodies(&[6, 2, 1, 77]).await;
    let told: Vec<_> = found.iter().map(|kept| (kept.offset, kept.id.as_str())).collect();
    assert_eq!(told, [(2, "r2"), (6, "r6")], "what was asked for and is there");
    assert_eq!((found[0].body.as_str(), &found[1].body), (body.as_str(), &row(6).record.body));
    assert!(bodies(&[]).await.is_empty());
    assert!(bodies(&[7, 8]).await.is_empty());
}

#[tokio::test]
async fn a_writer_that_wakes_up_late_adds_nothing_twice() {
    let options = OpenOptions::default();
    let mut points = 0;
    loop {
        let dir = TempDir::new().expect("a directory");
        let uri = dir.path().join("history").display().to_string();
        let fresh = LanceArchive::open(&uri, options.clone()).await.expect("it opens");
        let gate = Gate::default();
        let late = gate.open(&uri, &options).await;
        let (old, successor) = (kept("c1", 1..=4), fresh.clone());
        gate.arm(points, async move {
            add(&successor, &kept("c1", 1..=9)).await;
            successor.maintain().await.expect("upkeep");
        })
        .await;
        let done = late.add_records(old.clone()).await;
        if !gate.has_opened().await {
            done.expect("undisturbed");
            break;
        }
        let what = format!("before commit {points}");
        assert_exact(&fresh, "c1", 9, &what).await;
        late.add_records(old.clone()).await.expect("on top of what is there now");
        assert_exact(&fresh, "c1", 9, &what).await;
        points += 1;
    }
    assert_eq!(points, 3, "one commit to each table");
}

#[tokio::test]
async fn upkeep_bounds_files_and_hides_no_record() {
    let dir = TempDir::new().expect("a directory");
    let options = OpenOptions { keep_versions: std::time::Duration::ZERO, ..OpenOptions::default() };
    let archive = open(&dir, options).await;
    for round in 0..70 {
        add(&archive, &kept("c1", 3 * round + 1..=3 * round + 3)).await;
        if round % 7 == 6 {
            archive.maintain().await.expect("upkeep");
        }
    }
    archive.maintain().await.expect("upkeep");
    for (what, dataset, indexes) in [
        ("messages", archive.0.messages.dataset().await, archive.0.messages.table.list_indices().await),
        ("moves", archive.0.moves.dataset().await, archive.0.moves.table.list_indices().await),
        ("records", archive.0.records.dataset().await, archive.0.records.table.list_indices().await),
    ] {
        let fragments = dataset.expect("a table").get_fragments().len();
        assert!(fragments < 64, "{what} has {fragments} fragments");
        assert_eq!(indexes.expect("a read").len(), if what == "moves" { 2 } else { 1 }, "{what}");
    }
    // Found by the index: nothing is added again.
    add(&archive, &kept("c1", 1..=212)).await;
    assert_exact(&archive, "c1", 212, "after upkeep").await;
}
