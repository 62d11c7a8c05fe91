//! Contract of `Archive`.

use std::sync::Arc;

use domain::ports::{Archive, ArchiveBatch, StepPlace, StepQuery};
use schemas::event::{EventKind, EventRecord};
use schemas::frame::StepToken;
use schemas::id::{Epoch, SessionKey, Shard};
use schemas::json::Json;
use schemas::record::{Entry, JournalRow, Snapshot, StepRecord, StepStatus, StoredStep};
use schemas::session::{Head, SessionStatus};
use serde_json::json;

use super::build::{agent_id, key, namespace, session_id};
use super::words::turn_id;

pub async fn suite(make: &impl AsyncFn() -> Arc<dyn Archive>) {
    nothing_is_there_at_first(&*make().await).await;
    rows_come_back_as_they_were(&*make().await).await;
    a_repeat_adds_nothing(&*make().await).await;
    shards_have_their_own_marks(&*make().await).await;
    a_gap_is_refused(&*make().await).await;
    filters_combine_before_order_and_limit(&*make().await).await;
    pages_visit_everything_once(&*make().await).await;
    streams_go_on_behind_an_offset(&*make().await).await;
    the_newest_snapshot_stays(&*make().await).await;
    namespaces_never_mix(&*make().await).await;
    hostile_texts_are_only_texts(&*make().await).await;
}

/// Writes the journal of a few sessions.
pub struct Author {
    shard: Shard,
    seq: u64,
    heads: std::collections::BTreeMap<SessionKey, Head>,
}

/// When step 0 of a session is made; each iteration is a second later.
const START_MS: i64 = 1_700_000_000_000;

impl Author {
    pub fn new(shard: u16) -> Self {
        Self { shard: Shard(shard), seq: 0, heads: std::collections::BTreeMap::new() }
    }

    /// The next commit of a session: `steps` steps, or one event if there are none. The agent is the
    /// first letter of the session's id.
    pub fn commit(&mut self, key: &SessionKey, steps: u64) -> JournalRow {
        self.seq += 1;
        let head = self.heads.entry(key.clone()).or_insert_with(|| Head::starting(START_MS));
        let mut entry = Entry {
            agent_id: agent_id(&key.session_id.as_str()[..1]),
            moniker: "count".into(),
            conversation_id: None,
            head: head.clone(),
            state: Json::of(&json!({"n": head.steps})),
            steps: Vec::new(),
            events: Vec::new(),
        };
        for _ in 0..steps {
            entry.steps.push(next_step(head));
        }
        if steps == 0 {
            let data = Json::of(&json!({"status": "running", "by": "O'Brien"}));
            entry.events.push(EventRecord { offset: head.next_offset, at_ms: 5, kind: EventKind::Status, data });
            head.next_offset += 1;
        }
        head.status = SessionStatus::Running;
        head.epoch = Epoch(3);
        entry.head = head.clone();
        if let Some(last) = entry.steps.last() {
            entry.state = last.state.clone();
        }
        JournalRow { shard: self.shard, seq: self.seq, key: key.clone(), committed_at_ms: START_MS, entry }
    }
}

fn next_step(head: &mut Head) -> StepRecord {
    let n = head.steps;
    let next = StepToken::parse(&format!("at/{}", n + 1)).expect("a token");
    let step = StepRecord {
        iteration: n,
        offset: head.next_offset,
        created_at_ms: START_MS + n as i64 * 1_000,
        turn_id: (n % 4 == 2).then(|| turn_id(&format!("t{n}"))),
        step_token: std::mem::replace(&mut head.next_step_token, next.clone()),
        next_step_token: next,
        status: [StepStatus::Ok, StepStatus::Error, StepStatus::Info][(n % 3) as usize],
        text: n.is_multiple_of(2).then(|| format!("text {n} \"π\" 'q'\n\u{0}")),
        data: n.is_multiple_of(3).then(|| Json::of(&json!({"n": n, "f": 1.50}))),
        state: Json::parse(format!("{{\"n\": {n}}}")).expect("JSON"),
        guidance: (n % 4 == 1).then(|| Json::of(&json!({"set": n}))),
        notes: (n % 5 == 1).then(|| "noted".into()),
        latency_ms: n,
        error: (n % 3 == 1).then(|| "it failed: 100% — really".into()),
    };
    head.step_token = Some(step.step_token.clone());
    head.steps += 1;
    head.next_offset += 1;
    step
}

fn stored(rows: &[JournalRow]) -> Vec<StoredStep> {
    rows.iter().cloned().flat_map(domain::read::merge::steps_of).collect()
}

async fn append(archive: &dyn Archive, rows: &[JournalRow]) {
    archive.append(&ArchiveBatch { rows: rows.to_vec() }).await.expect("the archive takes rows");
}

async fn all_of(archive: &dyn Archive, key: &SessionKey) -> Vec<StoredStep> {
    let query = StepQuery { session: Some(key.clone()), limit: 1_000, ..StepQuery::default() };
    archive.steps(&query).await.expect("a read")
}

async fn nothing_is_there_at_first(archive: &dyn Archive) {
    let nobody = key("nobody");
    assert!(archive.watermarks().await.expect("a read").is_empty());
    assert!(all_of(archive, &nobody).await.is_empty());
    assert!(archive.events(&nobody, 0, 10).await.expect("a read").is_empty());
    assert!(archive.steps_after_offset(&nobody, 0, 10).await.expect("a read").is_empty());
    assert!(archive.snapshot(&nobody).await.expect("a read").is_none());
    archive.maintain().await.expect("upkeep of nothing");
    archive.ping().await.expect("it is there");
    append(archive, &[]).await;
}

async fn rows_come_back_as_they_were(archive: &dyn Archive) {
    let (mut author, s1) = (Author::new(0), key("a1"));
    let mut rows = vec![author.commit(&s1, 0), author.commit(&s1, 7), author.commit(&s1, 0)];
    for row in &mut rows {
        row.entry.conversation_id = Some(schemas::id::ConversationId::parse("c1").expect("an id"));
    }
    append(archive, &rows).await;
    assert_eq!(all_of(archive, &s1).await, stored(&rows));
    let events = archive.events(&s1, 0, 10).await.expect("a read");
    let written: Vec<EventRecord> = rows.iter().flat_map(|row| row.entry.events.clone()).collect();
    assert!(events.iter().all(|row| row.key == s1));
    assert_eq!(events.into_iter().map(|row| row.event).collect::<Vec<_>>(), written);
    let snapshot = archive.snapshot(&s1).await.expect("a read").expect("a snapshot");
    let last = &rows[2].entry;
    let expected = Snapshot {
        key: s1,
        agent_id: last.agent_id.clone(),
        moniker: last.moniker.clone(),
        conversation_id: last.conversation_id.clone(),
        head: last.head.clone(),
        state: last.state.clone(),
        result: Some(Json::of("text 6 \"π\" 'q'\n\u{0}")),
    };
    assert_eq!(snapshot, expected);
}

async fn a_repeat_adds_nothing(archive: &dyn Archive) {
    let (mut author, a1, b1) = (Author::new(2), key("a1"), key("b1"));
    let rows: Vec<JournalRow> = (0..8).map(|n| author.commit(if n % 2 == 0 { &a1 } else { &b1 }, n % 3)).collect();
    append(archive, &rows[..5]).await;
    append(archive, &rows[..5]).await;
    assert_eq!(archive.watermarks().await.expect("a read"), [(Shard(2), 5)].into());
    append(archive, &rows[2..]).await;
    append(archive, &rows[1..3]).await;
    assert_eq!(archive.watermarks().await.expect("a read"), [(Shard(2), 8)].into());
    for key in [&a1, &b1] {
        let mine: Vec<JournalRow> = rows.iter().filter(|row| row.key == *key).cloned().collect();
        assert_eq!(all_of(archive, key).await, stored(&mine));
        let events = archive.events(key, 0, 100).await.expect("a read");
        assert_eq!(events.len(), mine.iter().map(|row| row.entry.events.len()).sum::<usize>());
        let snapshot = archive.snapshot(key).await.expect("a read").expect("a snapshot");
        assert_eq!(Some(&snapshot.head), mine.last().map(|row| &row.entry.head));
    }
}

async fn shards_have_their_own_marks(archive: &dyn Archive) {
    let (mut first, mut second) = (Author::new(1), Author::new(3));
    let (a1, b1) = (key("a1"), key("b1"));
    let one = first.commit(&a1, 2);
    let other = [second.commit(&b1, 1), second.commit(&b1, 1)];
    append(archive, &[one, other[0].clone()]).await;
    assert_eq!(archive.watermarks().await.expect("a read"), [(Shard(1), 1), (Shard(3), 1)].into());
    append(archive, &[first.commit(&a1, 0), other[0].clone(), other[1].clone()]).await;
    assert_eq!(archive.watermarks().await.expect("a read"), [(Shard(1), 2), (Shard(3), 2)].into());
    assert_eq!(all_of(archive, &b1).await, stored(&other));
}

async fn a_gap_is_refused(archive: &dyn Archive) {
    let (mut author, a1) = (Author::new(0), key("a1"));
    let rows: Vec<JournalRow> = (0..3).map(|_| author.commit(&a1, 1)).collect();
    for bad in [[&rows[0], &rows[2]], [&rows[1], &rows[0]], [&rows[0], &rows[0]]] {
        let batch = ArchiveBatch { rows: bad.map(JournalRow::clone).to_vec() };
        assert!(archive.append(&batch).await.is_err(), "{:?}", bad.map(|row| row.seq));
    }
    assert!(all_of(archive, &a1).await.is_empty());
    append(archive, &rows).await;
    assert_eq!(all_of(archive, &a1).await, stored(&rows));
}

/// Three sessions of two agents, in three batches.
async fn library(archive: &dyn Archive) -> Vec<StoredStep> {
    let mut author = Author::new(0);
    let mut all = Vec::new();
    for round in 0..3 {
        let commit = |author: &mut Author, session: &str| author.commit(&key(session), 2 + round);
        let rows: Vec<JournalRow> = ["a1", "a2", "b1", "a1"].iter().map(|s| commit(&mut author, s)).collect();
        append(archive, &rows).await;
        all.extend(stored(&rows));
    }
    all
}

/// What one store that holds all the steps would answer.
fn expected(all: &[StoredStep], query: &StepQuery) -> Vec<StoredStep> {
    let mut found: Vec<StoredStep> = all.iter().filter(|step| query.matches(step)).cloned().collect();
    found.sort_by(|a, b| query.compare(a, b));
    found.into_iter().skip(query.offset).take(query.limit).collect()
}

async fn filters_combine_before_order_and_limit(archive: &dyn Archive) {
    let all = library(archive).await;
    let base = StepQuery { namespace: Some(key("x").namespace), limit: 100, ..StepQuery::default() };
    let of_session = StepQuery { session: Some(key("a1")), ..base.clone() };
    let of_agent = StepQuery { agent_id: Some(agent_id("a")), ..base.clone() };
    let mut queries = vec![base.clone(), of_session.clone(), of_agent.clone()];
    for query in [base, of_session, of_agent] {
        queries.push(StepQuery { min_iteration: Some(3), ..query.clone() });
        queries.push(StepQuery { max_iteration: Some(3), ..query.clone() });
        queries.push(StepQuery { min_iteration: Some(2), max_iteration: Some(5), ..query.clone() });
        queries.push(StepQuery { min_iteration: Some(5), max_iteration: Some(2), ..query.clone() });
        queries.push(StepQuery { min_iteration: Some(u64::MAX), ..query.clone() });
        queries.push(StepQuery { since_ms: Some(START_MS + 4_000), ..query.clone() });
        queries.push(StepQuery { status: Some(StepStatus::Error), ..query.clone() });
        let after = StepPlace { iteration: 2, created_at_ms: START_MS + 2_000, session_id: session_id("a1") };
        queries.push(StepQuery { after: Some(after), ..query.clone() });
        queries.push(StepQuery {
            status: Some(StepStatus::Ok),
            since_ms: Some(START_MS + 1_000),
            max_iteration: Some(9),
            ..query
        });
    }
    for query in queries {
        for (descending, by_time, offset, limit) in [
            (false, false, 0, 100),
            (true, false, 0, 100),
            (false, false, 1, 3),
            (true, true, 2, 4),
            (false, true, 0, 5),
        ] {
            let query = StepQuery { descending, by_time, offset, limit, ..query.clone() };
            let found = archive.steps(&query).await.expect("a read");
            assert_eq!(found, expected(&all, &query), "{query:?}");
        }
    }
    let none = StepQuery { limit: 0, ..StepQuery::default() };
    assert!(archive.steps(&none).await.expect("a read").is_empty());
}

async fn pages_visit_everything_once(archive: &dyn Archive) {
    let all = library(archive).await;
    for (descending, by_time) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut query = StepQuery { descending, by_time, limit: 4, ..StepQuery::default() };
        let mut seen = Vec::new();
        loop {
            let page = archive.steps(&query).await.expect("a read");
            let Some(last) = page.last() else { break };
            query.after = Some(StepPlace::of(last));
            seen.extend(page);
        }
        assert_eq!(seen, expected(&all, &StepQuery { after: None, limit: 1_000, ..query }));
    }
}

async fn streams_go_on_behind_an_offset(archive: &dyn Archive) {
    let (mut author, a1, b1) = (Author::new(0), key("a1"), key("b1"));
    let mut rows = Vec::new();
    for _ in 0..4 {
        rows.extend([author.commit(&a1, 2), author.commit(&b1, 1), author.commit(&a1, 0)]);
    }
    append(archive, &rows[..7]).await;
    append(archive, &rows[7..]).await;
    // Offsets of a1: steps 1 2, event 3, steps 4 5, event 6, …
    let steps = async |after, limit| {
        let found = archive.steps_after_offset(&a1, after, limit).await.expect("a read");
        found.into_iter().map(|stored| stored.step.offset).collect::<Vec<_>>()
    };
    let events = async |after, limit| {
        let found = archive.events(&a1, after, limit).await.expect("a read");
        found.into_iter().map(|row| row.event.offset).collect::<Vec<_>>()
    };
    assert_eq!(steps(0, 100).await, [1, 2, 4, 5, 7, 8, 10, 11]);
    assert_eq!(steps(4, 2).await, [5, 7]);
    assert!(steps(11, 100).await.is_empty() && steps(0, 0).await.is_empty());
    assert_eq!(events(0, 100).await, [3, 6, 9, 12]);
    assert_eq!(events(3, 2).await, [6, 9]);
    assert!(events(12, 100).await.is_empty() && events(0, 0).await.is_empty());
}

async fn the_newest_snapshot_stays(archive: &dyn Archive) {
    let (mut author, a1) = (Author::new(0), key("a1"));
    let snapshot = async || archive.snapshot(&a1).await.expect("a read").expect("a snapshot");
    let accepted = author.commit(&a1, 0);
    append(archive, std::slice::from_ref(&accepted)).await;
    let first = snapshot().await;
    assert_eq!((first.head.iteration(), first.result), (None, None), "no step yet");
    // Steps 0 to 2: the last one answers with a text.
    let steps = [author.commit(&a1, 1), author.commit(&a1, 2)];
    append(archive, &steps).await;
    assert_eq!(snapshot().await.head.steps, 3);
    let paused = author.commit(&a1, 0);
    append(archive, std::slice::from_ref(&paused)).await;
    let found = snapshot().await;
    assert_eq!(found.head, paused.entry.head);
    assert_eq!(found.result, Some(Json::of("text 2 \"π\" 'q'\n\u{0}")), "the last step's, not the last commit's");
    // Step 3 has data and no text; the pause behind it is in the same batch.
    let more = [author.commit(&a1, 1), author.commit(&a1, 0)];
    append(archive, &more).await;
    let found = snapshot().await;
    assert_eq!(found.head, more[1].entry.head);
    assert_eq!(found.result, more[0].entry.steps[0].data);
    append(archive, &steps).await;
    assert_eq!(snapshot().await, found, "an old batch changes nothing");
}

async fn namespaces_never_mix(archive: &dyn Archive) {
    let (mut author, ours) = (Author::new(0), key("a1"));
    let theirs = SessionKey::new(namespace("other"), ours.session_id.clone());
    let rows = [author.commit(&ours, 2), author.commit(&theirs, 3), author.commit(&ours, 0), author.commit(&theirs, 0)];
    append(archive, &rows).await;
    for (key, steps) in [(&ours, 2), (&theirs, 3)] {
        assert_eq!(all_of(archive, key).await.len(), steps);
        assert_eq!(archive.steps_after_offset(key, 0, 10).await.expect("a read").len(), steps);
        assert_eq!(archive.events(key, 0, 10).await.expect("a read").len(), 1);
        let snapshot = archive.snapshot(key).await.expect("a read").expect("a snapshot");
        assert_eq!((&snapshot.key, snapshot.head.steps), (key, steps as u64));
        let query = StepQuery {
            namespace: Some(key.namespace.clone()),
            agent_id: Some(agent_id("a")),
            limit: 10,
            ..StepQuery::default()
        };
        let found = archive.steps(&query).await.expect("a read");
        assert!(found.len() == steps && found.iter().all(|stored| stored.key == *key));
    }
}

/// Ids are of a safe alphabet; tokens, texts and JSON are anything.
async fn hostile_texts_are_only_texts(archive: &dyn Archive) {
    let (mut author, a1) = (Author::new(0), key("a-1_x.y:z"));
    let mut row = author.commit(&a1, 3);
    let token = StepToken::parse("' OR 1=1 --").expect("a token");
    for step in &mut row.entry.steps {
        step.step_token = token.clone();
        step.text = Some("'; DROP TABLE agent_steps; --\u{202e}\u{1f4a3}".into());
        step.state = Json::of("not an object: \\ \" ' $1");
    }
    append(archive, std::slice::from_ref(&row)).await;
    assert_eq!(all_of(archive, &a1).await, stored(&[row]));
    let other = SessionKey::new(namespace("default"), session_id("a-1_x.y:Z"));
    assert!(all_of(archive, &other).await.is_empty(), "ids are told apart by case");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::MemArchive;

    #[tokio::test(start_paused = true)]
    async fn the_fake_keeps_the_contract() {
        suite(&async || Arc::new(MemArchive::default()) as Arc<dyn Archive>).await;
    }
}
