//! Contract of `Journal`.

use schemas::id::{SessionId, SessionKey, Shard};
use schemas::record::JournalRow;

use super::Ports;
use super::build::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    entries_go_forward(&make().await).await;
    entries_go_back(&make().await).await;
    sessions_with_entries_are_told(&make().await).await;
    above_is_bounded(&make().await).await;
    the_archive_mark_only_grows(&make().await).await;
    trim_takes_archived_rows_only(&make().await).await;
    namespaces_never_mix(&make().await).await;
}

/// A session with entries of 2, 3, 1 and 4 steps: offsets 1-2, 3-5, 6 and 7-10.
async fn written(ports: &Ports, session: &str) -> (SessionKey, Shard) {
    let row = ports.created(session, "agent").await;
    for steps in [2, 3, 1, 4] {
        ports.step(&worker("w1"), &row.key, steps).await;
    }
    (row.key, row.shard)
}

fn first_offsets(rows: &[JournalRow]) -> Vec<u64> {
    rows.iter().map(|row| row.entry.steps[0].offset).collect()
}

async fn entries_go_forward(ports: &Ports) {
    let (key, _) = written(ports, "s1").await;
    written(ports, "s2").await;
    let after = async |offset, limit| first_offsets(&ports.journal.entries(&key, offset, limit).await.expect("a read"));
    assert_eq!(after(0, 100).await, [1, 3, 6, 7]);
    assert_eq!(after(1, 100).await, [1, 3, 6, 7], "an entry across the bound counts");
    assert_eq!(after(2, 100).await, [3, 6, 7]);
    assert_eq!(after(5, 1).await, [6]);
    assert_eq!(after(9, 100).await, [7]);
    assert!(after(10, 100).await.is_empty());
    assert!(after(u64::MAX, 100).await.is_empty());
    let latest = ports.journal.latest(&key).await.unwrap().expect("an entry");
    assert_eq!((latest.entry.steps[0].offset, latest.entry.head.next_offset), (7, 11));
    assert!(ports.journal.latest(&super::build::key("none")).await.unwrap().is_none());
}

async fn entries_go_back(ports: &Ports) {
    let (key, _) = written(ports, "s1").await;
    let before =
        async |offset, limit| first_offsets(&ports.journal.entries_back(&key, offset, limit).await.expect("a read"));
    assert_eq!(before(u64::MAX, 100).await, [7, 6, 3, 1]);
    assert_eq!(before(11, 2).await, [7, 6]);
    assert_eq!(before(8, 100).await, [7, 6, 3, 1], "an entry across the bound counts");
    assert_eq!(before(7, 100).await, [6, 3, 1]);
    assert_eq!(before(6, 1).await, [3]);
    assert!(before(1, 100).await.is_empty());
    assert!(ports.journal.entries_back(&super::build::key("none"), u64::MAX, 10).await.unwrap().is_empty());
}

async fn sessions_with_entries_are_told(ports: &Ports) {
    let (one, _) = written(ports, "s1").await;
    let (two, _) = written(ports, "s2").await;
    let idle = ports.created("s3", "agent").await.key;
    let asked = [&one, &idle, &two].map(|key| key.session_id.clone());
    let holding = async |space: &str, ids: &[SessionId]| {
        let mut held = ports.journal.holding(&namespace(space), ids).await.expect("a read");
        held.sort();
        held
    };
    let home = one.namespace.as_str();
    assert_eq!(holding(home, &asked).await, [one.session_id.clone(), two.session_id.clone()]);
    assert_eq!(holding(home, &asked[1..]).await, asked[2..]);
    assert!(holding(home, &[idle.session_id, key("none").session_id]).await.is_empty());
    assert!(holding(home, &[]).await.is_empty());
    assert!(holding("other", &asked).await.is_empty(), "of one namespace alone");
}

async fn above_is_bounded(ports: &Ports) {
    let (_, shard) = written(ports, "s1").await;
    let above = async |after, limit, bytes| {
        let rows = ports.journal.above(shard, after, limit, bytes).await.expect("a read");
        rows.iter().map(|row| row.seq).collect::<Vec<_>>()
    };
    assert_eq!(above(0, 100, usize::MAX).await, [1, 2, 3, 4]);
    assert_eq!(above(1, 2, usize::MAX).await, [2, 3]);
    assert_eq!(above(0, 100, 0).await, [1], "at least one row");
    let some = above(0, 100, 1_500).await;
    assert!(!some.is_empty() && some.len() < 4, "{some:?}");
    assert!(above(4, 100, usize::MAX).await.is_empty());
    for other in (0..super::SHARDS).map(Shard).filter(|other| *other != shard) {
        assert!(ports.journal.above(other, 0, 100, usize::MAX).await.unwrap().is_empty());
    }
}

async fn the_archive_mark_only_grows(ports: &Ports) {
    let (_, shard) = written(ports, "s1").await;
    let mark = async |seq| {
        ports.journal.mark_archived(shard, seq).await.expect("marked");
        let lag = ports.journal.lag().await.expect("a read");
        assert_eq!(lag.len(), usize::from(super::SHARDS));
        let lag = lag.into_iter().find(|lag| lag.shard == shard).expect("the shard");
        assert_eq!(lag.seq, 4);
        lag.archived_seq
    };
    assert_eq!(mark(2).await, 2);
    assert_eq!(mark(1).await, 2, "never backwards");
    assert_eq!(mark(3).await, 3);
    let info = ports.leases.shards().await.unwrap().into_iter().find(|info| info.shard == shard).expect("the shard");
    assert_eq!((info.seq, info.archived_seq), (4, 3));
}

async fn trim_takes_archived_rows_only(ports: &Ports) {
    let (key, shard) = written(ports, "s1").await;
    let left = async || {
        let rows = ports.journal.above(shard, 0, 100, usize::MAX).await.expect("a read");
        rows.iter().map(|row| row.seq).collect::<Vec<_>>()
    };
    assert_eq!(ports.journal.trim(0, i64::MAX, 100).await.unwrap(), 0, "nothing is archived");
    ports.journal.mark_archived(shard, 3).await.expect("marked");
    assert_eq!(ports.journal.trim(3_600_000, i64::MAX, 100).await.unwrap(), 0, "nothing is that old");
    assert_eq!(ports.journal.trim(u64::MAX, i64::MAX, 100).await.unwrap(), 0);
    let first = ports.journal.above(shard, 0, 1, usize::MAX).await.expect("a read").remove(0).committed_at_ms;
    assert_eq!(ports.journal.trim(0, first, 100).await.unwrap(), 0, "nothing was committed before the first");
    assert_eq!(left().await, [1, 2, 3, 4]);
    assert_eq!(ports.journal.trim(0, i64::MAX, 2).await.unwrap(), 2, "no more than asked for");
    assert_eq!(left().await, [3, 4], "the oldest first");
    assert_eq!(ports.journal.trim(0, i64::MAX, 100).await.unwrap(), 1);
    assert_eq!(left().await, [4]);
    assert_eq!(ports.journal.latest(&key).await.unwrap().map(|row| row.seq), Some(4));
    // Places go on after all that ever was, whatever was trimmed.
    ports.journal.mark_archived(shard, 4).await.expect("marked");
    ports.journal.trim(0, i64::MAX, 100).await.expect("trimmed");
    assert!(ports.journal.latest(&key).await.unwrap().is_none());
    assert_eq!(ports.step(&worker("w1"), &key, 1).await, 5);
}

async fn namespaces_never_mix(ports: &Ports) {
    let (key, _) = written(ports, "s1").await;
    let other = SessionKey::new(namespace("other"), key.session_id.clone());
    assert!(ports.journal.entries(&other, 0, 10).await.unwrap().is_empty());
    assert!(ports.journal.entries_back(&other, u64::MAX, 10).await.unwrap().is_empty());
    assert!(ports.journal.latest(&other).await.unwrap().is_none());
}
