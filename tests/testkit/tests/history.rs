//! Reads and proofs of history on the fakes, for every state that journal and archive can be in.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::{Archive, ArchiveBatch, Journal};
use domain::read::{StepsOf, StepsQuery, StreamItem, events, merge, snapshot, steps};
use domain::verify::verify_all;
use schemas::id::SessionKey;
use schemas::problem::Code;
use schemas::record::{JournalRow, StepStatus, StoredStep};
use testkit::contract::build::{agent_id, create, in_namespace, key, namespace, session_id, worker};
use testkit::contract::{Ports, SHARDS};
use testkit::fake::{MemArchive, MemStore, SimClock};
use testkit::unreliable::{Faults, Port, Unreliable};

struct World {
    ports: Ports,
    archive: MemArchive,
    /// All that was ever committed.
    rows: Vec<JournalRow>,
}

/// Three sessions of an agent: entries of 3, 0 (an event), 2, 1, 0 … steps.
async fn world() -> World {
    let store = MemStore::new(SHARDS, Arc::new(SimClock::new()));
    let ports = Ports::of(store.clone());
    let owner = worker("w1");
    for session in ["s1", "s2", "s3"] {
        ports.created(session, "agent").await;
    }
    for n in 0..60 {
        let session = ["s1", "s2", "s1", "s3"][n % 4];
        ports.step(&owner, &key(session), [3, 0, 2, 1, 0][n % 5]).await;
    }
    World { ports, archive: MemArchive::default(), rows: store.journal_rows() }
}

impl World {
    /// The first `archived` rows of each shard are in the archive; of those, `trimmed` are gone from
    /// the journal.
    async fn stage(archived: usize, trimmed: usize) -> Self {
        let world = world().await;
        for lag in world.ports.journal.lag().await.expect("a read") {
            let rows: Vec<JournalRow> =
                world.rows.iter().filter(|row| row.shard == lag.shard).take(archived).cloned().collect();
            let Some(last) = rows.last().map(|row| row.seq) else { continue };
            world.archive.append(&ArchiveBatch { rows }).await.expect("the archive takes rows");
            world.ports.journal.mark_archived(lag.shard, last).await.expect("a write");
        }
        world.ports.journal.trim(0, i64::MAX, trimmed).await.expect("a write");
        world
    }

    fn all(&self) -> Vec<StoredStep> {
        self.rows.iter().cloned().flat_map(merge::steps_of).collect()
    }

    fn stream(&self, key: &SessionKey) -> Vec<StreamItem> {
        let mine = self.rows.iter().filter(|row| row.key == *key).cloned();
        let mut items: Vec<StreamItem> = mine.flat_map(merge::items_of).collect();
        items.sort_by_key(StreamItem::offset);
        items
    }

    async fn steps(&self, query: &StepsQuery) -> domain::read::StepsPage {
        steps(&*self.ports.journal, &self.archive, &*self.ports.sessions, query).await.expect("a read")
    }
}

const STAGES: [(usize, usize); 7] = [(0, 0), (3, 0), (3, 2), (9, 5), (9, 100), (100, 7), (100, 100)];

/// What one store would answer.
fn expected(all: &[StoredStep], query: &StepsQuery) -> Vec<StoredStep> {
    let mut found: Vec<StoredStep> = all
        .iter()
        .filter(|stored| match &query.of {
            StepsOf::Session(key) => stored.key == *key,
            StepsOf::Agent(namespace, agent) => stored.key.namespace == *namespace && stored.agent_id == *agent,
        })
        .filter(|stored| query.min_iteration.is_none_or(|min| stored.step.iteration >= min))
        .filter(|stored| query.max_iteration.is_none_or(|max| stored.step.iteration <= max))
        .filter(|stored| query.after_iteration.is_none_or(|after| stored.step.iteration > after))
        .filter(|stored| query.status.is_none_or(|status| stored.step.status == status))
        .cloned()
        .collect();
    found.sort_by_key(|stored| (stored.step.iteration, stored.step.created_at_ms, stored.key.session_id.clone()));
    if query.descending || query.latest {
        found.reverse();
    }
    found.into_iter().skip(query.offset).take(query.limit).collect()
}

#[tokio::test(start_paused = true)]
async fn steps_are_one_list_wherever_they_are() {
    for (archived, trimmed) in STAGES {
        let world = World::stage(archived, trimmed).await;
        let all = world.all();
        let of_session = StepsOf::Session(key("s1"));
        for of in [of_session, StepsOf::Agent(key("s1").namespace, agent_id("agent"))] {
            let base = StepsQuery::new(of, 7);
            let mut queries = vec![base.clone()];
            queries.push(StepsQuery { offset: 5, ..base.clone() });
            queries.push(StepsQuery { descending: true, ..base.clone() });
            queries.push(StepsQuery { descending: true, offset: 3, max_iteration: Some(11), ..base.clone() });
            queries.push(StepsQuery { min_iteration: Some(4), max_iteration: Some(9), limit: 100, ..base.clone() });
            queries.push(StepsQuery { after_iteration: Some(6), limit: 500, ..base.clone() });
            queries.push(StepsQuery { after_iteration: Some(u64::MAX), ..base.clone() });
            queries.push(StepsQuery { status: Some(StepStatus::Ok), descending: true, ..base.clone() });
            queries.push(StepsQuery { status: Some(StepStatus::Error), ..base.clone() });
            queries.push(StepsQuery { latest: true, limit: 1_000, ..base });
            for query in queries {
                assert_eq!(world.steps(&query).await.items, expected(&all, &query), "{archived} {trimmed} {query:?}");
            }
        }
    }
}

/// What the journal has whole is answered; of what it has in part, nothing is.
#[tokio::test(start_paused = true)]
async fn without_the_archive_no_step_is_left_out() {
    for (archived, trimmed) in STAGES {
        let world = World::stage(archived, trimmed).await;
        let all = world.all();
        let faults = Faults::none("reader");
        let away = Unreliable::new(Arc::new(world.archive.clone()), faults.clone());
        faults.outage(&[Port::Archive], Duration::from_secs(3_600));
        let (mut asked, mut answered) = (0, 0);
        for of in [StepsOf::Session(key("s1")), StepsOf::Agent(key("s1").namespace, agent_id("agent"))] {
            for (limit, descending) in [(1, true), (4, true), (1_000, true), (1, false), (4, false), (1_000, false)] {
                let base = StepsQuery { descending, ..StepsQuery::new(of.clone(), limit) };
                let mut queries = vec![base.clone()];
                queries.push(StepsQuery { status: Some(StepStatus::Error), ..base.clone() });
                queries.push(StepsQuery { status: Some(StepStatus::Ok), offset: 2, ..base.clone() });
                queries.push(StepsQuery { min_iteration: Some(5), ..base.clone() });
                queries.push(StepsQuery { max_iteration: Some(9), ..base });
                for query in queries {
                    asked += 1;
                    match steps(&*world.ports.journal, &away, &*world.ports.sessions, &query).await {
                        Ok(page) => {
                            answered += 1;
                            let mut expected = expected(&all, &StepsQuery { limit: limit + 1, ..query.clone() });
                            assert_eq!(page.next.is_some(), expected.len() > limit, "{archived} {trimmed} {query:?}");
                            expected.truncate(limit);
                            assert_eq!(page.items, expected, "{archived} {trimmed} {query:?}");
                        }
                        Err(failure) => assert_eq!(failure.code, Code::Unavailable, "{failure}"),
                    }
                }
            }
        }
        match (archived, trimmed) {
            (_, 0) => assert_eq!(answered, asked, "the journal has everything"),
            (100, 100) => assert_eq!(answered, 0, "the journal has nothing"),
            (9, 100) => assert!(answered > 0 && answered < asked, "the journal has the newest: {answered} of {asked}"),
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pages_end_with_a_cursor_until_the_last() {
    for (archived, trimmed) in STAGES {
        let world = World::stage(archived, trimmed).await;
        for (latest, descending) in [(false, false), (false, true), (true, false)] {
            for of in [StepsOf::Session(key("s1")), StepsOf::Agent(key("s1").namespace, agent_id("agent"))] {
                let mut query = StepsQuery { latest, descending, ..StepsQuery::new(of, 4) };
                let mut seen = Vec::new();
                loop {
                    let page = world.steps(&query).await;
                    seen.extend(page.items);
                    match page.next {
                        Some(next) => query.cursor = Some(next),
                        None => break,
                    }
                }
                let whole = StepsQuery { limit: 1_000, cursor: None, ..query };
                let whole = world.steps(&whole).await;
                assert_eq!((seen, whole.next), (whole.items, None), "{archived} {trimmed} {latest} {descending}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_from_any_cursor() {
    for (archived, trimmed) in STAGES {
        let world = World::stage(archived, trimmed).await;
        let whole = world.stream(&key("s1"));
        for after in 0..=whole.len() {
            for limit in [1, 5, 1_000] {
                let page = events(&*world.ports.journal, &world.archive, &key("s1"), after as u64, limit).await;
                let page = page.expect("a read");
                let rest = &whole[after..];
                assert_eq!(page.items, rest[..rest.len().min(limit)], "{archived} {trimmed} {after} {limit}");
                assert!(page.more || page.items.len() == rest.len());
            }
        }
    }
}

/// Whoever waits for a session to begin gets an answer.
#[tokio::test(start_paused = true)]
async fn of_what_is_yet_to_begin_the_archive_is_not_asked() {
    let world = World::stage(100, 100).await;
    let faults = Faults::none("reader");
    let away = Unreliable::new(Arc::new(world.archive.clone()), faults.clone());
    faults.outage(&[Port::Archive], Duration::from_secs(3_600));
    world.ports.created("s4", "agent").await;
    for (session, has_begun) in [("s4", false), ("s1", true)] {
        let row = world.ports.row(&key(session)).await;
        let found = snapshot(&*world.ports.journal, &away, &row).await;
        assert_eq!(found.map_err(|failure| failure.code), if has_begun { Err(Code::Unavailable) } else { Ok(None) });
    }
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_is_the_newest_one_with_the_last_result() {
    for (archived, trimmed) in STAGES {
        let world = World::stage(archived, trimmed).await;
        for session in ["s1", "s2", "s3"] {
            let key = key(session);
            let row = world.ports.row(&key).await;
            let found = snapshot(&*world.ports.journal, &world.archive, &row).await.expect("a read").expect("one");
            assert_eq!(found.head, row.head);
            let last = world.rows.iter().rfind(|row| row.key == key).expect("a row");
            assert_eq!(found.state, last.entry.state);
            let step = world.all().into_iter().rfind(|stored| stored.key == key).expect("a step");
            assert_eq!(found.result, step.step.text.map(|text| schemas::json::Json::of(&text)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_row_is_an_error_and_no_silent_jump() {
    let world = World::stage(100, 100).await;
    // An archive that never got the first rows.
    let other = MemArchive::default();
    let mine: Vec<JournalRow> = world.rows.iter().filter(|row| row.key == key("s1")).skip(3).cloned().collect();
    for row in mine {
        other.append(&ArchiveBatch { rows: vec![row] }).await.expect("the archive takes rows");
    }
    let page = events(&*world.ports.journal, &other, &key("s1"), 0, 10).await;
    assert!(page.expect_err("a gap").retriable, "what is missing may become visible");
}

async fn proof(world: &World, archive: &dyn Archive) -> (u64, Vec<String>) {
    let (sessions, journal): (_, &dyn Journal) = (&*world.ports.sessions, &*world.ports.journal);
    let mut calls = 0;
    let mut progress = |_: &domain::verify::Progress| calls += 1;
    let verdict = verify_all(sessions, journal, archive, &mut progress).await.expect("a read");
    assert_eq!(calls, 3);
    assert_eq!(verdict.seen.sessions, 3);
    (verdict.seen.steps, verdict.broken.iter().map(|broken| format!("{:?}", broken.invariant)).collect())
}

#[tokio::test(start_paused = true)]
async fn a_sound_history_is_proven_so_in_every_stage() {
    for (archived, trimmed) in STAGES {
        let world = World::stage(archived, trimmed).await;
        assert_eq!(proof(&world, &world.archive).await, (world.all().len() as u64, Vec::new()), "{archived} {trimmed}");
    }
}

#[tokio::test(start_paused = true)]
async fn damage_of_the_archive_is_found() {
    let world = World::stage(100, 100).await;
    for (what, doubled) in [("lost", false), ("doubled", true)] {
        let damaged = MemArchive::default();
        let victim = world.rows.iter().position(|row| row.key == key("s3") && !row.entry.steps.is_empty());
        let victim = victim.expect("a row with a step");
        for (n, row) in world.rows.iter().enumerate() {
            let times = if n != victim { 1 } else { usize::from(doubled) * 2 };
            for time in 0..times {
                // Another shard has another watermark: the repeat is taken.
                let shard = schemas::id::Shard(row.shard.0 + 100 * time as u16);
                let row = JournalRow { shard, ..row.clone() };
                damaged.append(&ArchiveBatch { rows: vec![row] }).await.expect("the archive takes rows");
            }
        }
        let (_, broken) = proof(&world, &damaged).await;
        assert!(!broken.is_empty(), "{what}");
        assert!(broken.contains(&"J1".to_owned()), "{what}: {broken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_of_a_namespace_without_a_token_are_proven_too() {
    let store = MemStore::new(SHARDS, Arc::new(SimClock::new()));
    let ports = Ports::of(store.clone());
    ports.created("s1", "agent").await;
    // The same id twice: each namespace has its own.
    ports.accept(in_namespace("orphaned", create("a1", "s1", "agent"))).await;
    let theirs = SessionKey::new(namespace("orphaned"), session_id("s1"));
    ports.step(&worker("w1"), &theirs, 2).await;
    let archive = MemArchive::default();
    let verify = async || {
        let mut progress = |_: &domain::verify::Progress| {};
        verify_all(&*ports.sessions, &*ports.journal, &archive, &mut progress).await.expect("a read")
    };
    let sound = verify().await;
    assert_eq!((sound.seen.sessions, sound.seen.steps, sound.broken.len()), (2, 2, 0), "{:?}", sound.broken);
    for row in store.journal_rows() {
        for shard in [row.shard.0, row.shard.0 + 100] {
            let row = JournalRow { shard: schemas::id::Shard(shard), ..row.clone() };
            archive.append(&ArchiveBatch { rows: vec![row] }).await.expect("the archive takes rows");
        }
    }
    let doubled = verify().await;
    assert!(!doubled.broken.is_empty() && doubled.seen.sessions == 2, "{:?}", doubled.broken);
}
