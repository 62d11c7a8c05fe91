//! What is archived and old loses its bodies, and readers of both places notice nothing.

use std::sync::Arc;

use domain::conversation::kept::KeptRecords;
use domain::ports::{Conversations, LogQuery, LookQuery, TranscriptArchive};
use domain::read::ArchivedConversations;
use schemas::conversation::{LogKind, LogRecord, LogRow};
use schemas::json::Json;
use serde_json::json;

use super::*;
use crate::fake::MemArchive;

const HOUR_MS: u64 = 3_600_000;
/// Written later than any clock says.
const YOUNG_MS: i64 = 9_000_000_000_000;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    what_is_archived_and_old_is_heavy(&make().await).await;
    pages_of_heavy_records_go_through_all_logs(&make().await).await;
    light_records_have_the_size_of_their_bodies(&make().await).await;
    nothing_heavy_is_passed_over(&make().await).await;
    readers_of_both_places_find_all(&make().await).await;
}

/// A record with much in it, written long ago.
fn big(kind: LogKind, id: &str) -> LogRecord {
    let body = Json::of(&json!({"id": id, "text": "é".repeat(200), "message_id": id}));
    LogRecord { at_ms: 1, body, turn_id: Some(turn_id("t1")), ..record(kind, id) }
}

fn young(record: LogRecord) -> LogRecord {
    LogRecord { at_ms: YOUNG_MS, ..record }
}

fn saying(log: Vec<LogRecord>) -> Talk {
    Talk { log, ..Talk::default() }
}

async fn heavy(ports: &Ports, older_than_ms: u64, after: Option<&LogPlace>, limit: usize) -> Vec<(LogPlace, LogRow)> {
    let rows = ports.transcripts.heavy_records(older_than_ms, after, limit, usize::MAX).await.expect("a read");
    rows.into_iter().map(|(place, row)| (place, row.expect("a record"))).collect()
}

async fn offsets(ports: &Ports, older_than_ms: u64) -> Vec<u64> {
    heavy(ports, older_than_ms, None, 100).await.iter().map(|(place, _)| place.offset).collect()
}

async fn lightened(ports: &Ports, stretches: &[Stretch]) {
    ports.transcripts.lighten_records(stretches).await.expect("lightened");
}

/// Of one conversation: a log of all kinds, archived.
async fn talked(ports: &Ports) -> Vec<LogRow> {
    ports.talker("s1", "c1").await;
    let records = LogKind::ALL.map(|kind| big(kind, kind.as_str())).into();
    ports.say(&worker("w1"), "s1", saying(records)).await;
    let rows = ports.log_of("c1").await;
    recorded(ports, &[stretch("c1", 1, rows.len() as u64)]).await;
    rows
}

async fn what_is_archived_and_old_is_heavy(ports: &Ports) {
    ports.talker("s1", "c1").await;
    let log = vec![
        big(LogKind::Move, "m1"),
        big(LogKind::Note, "n1"),
        big(LogKind::ProviderCall, "p1"),
        young(big(LogKind::Move, "m2")),
        big(LogKind::Move, "m3"),
    ];
    ports.say(&worker("w1"), "s1", saying(log)).await;
    assert!(heavy(ports, 0, None, 100).await.is_empty(), "nothing is archived");
    recorded(ports, &[stretch("c1", 1, 4)]).await;
    assert_eq!(offsets(ports, 0).await, [1, 2, 3, 4]);
    assert_eq!(offsets(ports, HOUR_MS).await, [1, 2, 3]);
    recorded(ports, &[stretch("c1", 5, 5)]).await;
    assert_eq!(offsets(ports, HOUR_MS).await, [1, 2, 3], "up to the first that is young");
    let rows: Vec<LogRow> = heavy(ports, 0, None, 100).await.into_iter().map(|(_, row)| row).collect();
    let mut whole = ports.log_of("c1").await;
    whole[1].record.body = Json::null();
    assert_eq!(rows, whole, "but for bodies that stay");
    lightened(ports, &[stretch("c1", 1, 3)]).await;
    assert_eq!((offsets(ports, 0).await, offsets(ports, HOUR_MS).await), (vec![4, 5], vec![]));
    assert!(waiting(ports).await.is_empty());
}

async fn pages_of_heavy_records_go_through_all_logs(ports: &Ports) {
    let owner = worker("w1");
    for (session, conversation) in [("s1", "c1"), ("s2", "c2"), ("s3", "c3"), ("s4", "c4")] {
        ports.talker(session, conversation).await;
    }
    let moves = |ids: &[&str]| ids.iter().map(|id| big(LogKind::Move, id)).collect::<Vec<_>>();
    ports.say(&owner, "s1", saying(moves(&["m1", "m2", "m3"]))).await;
    // Young from its beginning, and from its middle on.
    let late = moves(&["m1", "m2"]).into_iter().map(young).collect();
    ports.say(&owner, "s2", saying(late)).await;
    let late = moves(&["m1"]).into_iter().chain(moves(&["m2"]).into_iter().map(young)).collect();
    ports.say(&owner, "s3", saying(late)).await;
    ports.say(&owner, "s4", saying(moves(&["m1", "m2"]))).await;
    let ends = [("c1", 3), ("c2", 2), ("c3", 2), ("c4", 2)];
    recorded(ports, &ends.map(|(conversation, upto)| stretch(conversation, 1, upto))).await;
    lightened(ports, &[stretch("c1", 1, 1)]).await;
    let default = Namespace::default_ns();
    let all = [("c1", 2), ("c1", 3), ("c3", 1), ("c4", 1), ("c4", 2)].map(|(id, offset)| at(&default, id, offset));
    for limit in [1, 2, 3, 100] {
        let mut found: Vec<LogPlace> = Vec::new();
        loop {
            let page = heavy(ports, HOUR_MS, found.last(), limit).await;
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= limit);
            found.extend(page.into_iter().map(|(place, _)| place));
        }
        assert_eq!(found, all, "{limit} at a time");
    }
    let rest = heavy(ports, HOUR_MS, Some(&at(&default, "c1", u64::MAX)), 100).await;
    assert_eq!(rest.len(), 3, "the rest of a log is left out by its end");
    let bytes = big(LogKind::Move, "m1").body.as_str().len();
    let page = ports.transcripts.heavy_records(HOUR_MS, None, 100, 2 * bytes).await.expect("a read");
    assert_eq!(page.len(), 2, "bounded in bytes");
    let page = ports.transcripts.heavy_records(HOUR_MS, None, 100, 0).await.expect("a read");
    assert_eq!(page.len(), 1, "always one");
}

async fn light_records_have_the_size_of_their_bodies(ports: &Ports) {
    let whole = talked(ports).await;
    // Its body is no larger than a row.
    ports.say(&worker("w1"), "s1", saying(vec![record(LogKind::Move, "small")])).await;
    let end = whole.len() as u64 + 1;
    recorded(ports, &[stretch("c1", end, end)]).await;
    let all = ports.log_of("c1").await;
    for _ in 0..2 {
        lightened(ports, &[stretch("c1", 1, end)]).await;
        for (row, before) in ports.log_of("c1").await.iter().zip(&all) {
            let stays = [LogKind::Message, LogKind::Note, LogKind::Event, LogKind::Summary]
                .contains(&before.record.kind)
                || before.record.id == "small";
            let bytes = before.record.body.as_str().len();
            let body = if stays { before.record.body.clone() } else { Json::of(&bytes) };
            let light = LogRow { record: LogRecord { body, ..before.record.clone() }, ..before.clone() };
            assert_eq!(*row, light);
        }
    }
    assert!(heavy(ports, 0, None, 100).await.is_empty());
    // The log goes on behind them.
    ports.say(&worker("w1"), "s1", saying(vec![big(LogKind::Move, "later")])).await;
    assert_eq!(waiting(ports).await, [format!("c1:{}", end + 1)]);
    recorded(ports, &[stretch("c1", end + 1, end + 1)]).await;
    assert_eq!(offsets(ports, 0).await, [end + 1]);
}

async fn nothing_heavy_is_passed_over(ports: &Ports) {
    let rows = talked(ports).await.len() as u64;
    ports.say(&worker("w1"), "s1", saying(vec![big(LogKind::Move, "later")])).await;
    let all: Vec<u64> = (1..=rows).collect();
    lightened(ports, &[stretch("c1", 2, 4), stretch("none", 1, 4)]).await;
    assert_eq!(offsets(ports, 0).await, all, "the first one is not among them");
    lightened(ports, &[stretch("c1", 1, rows + 1)]).await;
    assert_eq!(offsets(ports, 0).await, all, "one is not archived");
    lightened(ports, &[stretch("c1", 1, 2)]).await;
    lightened(ports, &[stretch("c1", 1, 2)]).await;
    lightened(ports, &[stretch("c1", 4, 5)]).await;
    assert_eq!(offsets(ports, 0).await, all[2..]);
    lightened(ports, &[stretch("c1", 1, 4)]).await;
    assert_eq!(offsets(ports, 0).await, all[4..], "an overlap counts as far as it goes");
}

async fn readers_of_both_places_find_all(ports: &Ports) {
    let whole = talked(ports).await;
    let (mut kept, archive) = (KeptRecords::default(), MemArchive::default());
    for row in &whole {
        kept.add_whole(&at(&Namespace::default_ns(), "c1", row.offset), row);
    }
    let both = ArchivedConversations::new(ports.conversations.clone(), Arc::new(archive.clone()));
    let all = log_query("c1");
    let of = |kinds: &[LogKind]| LogQuery { kinds: kinds.to_vec(), ..all.clone() };
    let bytes = whole[0].record.body.as_str().len();
    let queries = [
        all.clone(),
        LogQuery { descending: true, ..all.clone() },
        LogQuery { after: 2, limit: 3, ..all.clone() },
        LogQuery { turn_id: Some(turn_id("t1")), ..of(&[LogKind::Move, LogKind::ProviderCall]) },
        of(&[LogKind::Message, LogKind::Summary]),
        LogQuery { bytes: 0, ..of(&[LogKind::ToolResult]) },
        LogQuery { bytes: 3 * bytes, ..all.clone() },
        LogQuery { bytes: 3 * bytes, descending: true, ..all.clone() },
    ];
    let mut before = Vec::new();
    for query in &queries {
        before.push(ports.conversations.log(query).await.expect("a page"));
    }
    let look = LookQuery { log: queries[6].clone(), active_max: 10, ended_max: 10, followed: Vec::new() };
    let looked = ports.conversations.look(&look).await.expect("a look").expect("the conversation").page;
    lightened(ports, &[stretch("c1", 1, whole.len() as u64)]).await;
    let lost = both.log(&all).await.expect_err("bodies that are nowhere");
    assert!(lost.retriable, "{lost}");
    let bare = both.log_of_sql(&all).await.expect("SQL has every record");
    assert_eq!(bare, ports.conversations.log(&all).await.expect("a page"));
    let said = both.log(&of(&[LogKind::Message])).await.expect("what was said is in SQL");
    assert_eq!(said.len(), 1);
    archive.add_records(kept).await.expect("archived");
    for (query, page) in queries.iter().zip(&before) {
        assert_eq!(both.log(query).await.expect("a page"), *page, "{query:?}");
    }
    let found = both.look(&look).await.expect("a look").expect("the conversation").page;
    assert_eq!(found, looked);
    for row in &whole {
        let found = both.record(&all.namespace, &all.conversation_id, &row.record.id).await.expect("a read");
        assert_eq!(found.as_ref(), Some(row));
    }
}
