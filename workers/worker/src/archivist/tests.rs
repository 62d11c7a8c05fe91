//! The archivist against faithful fakes, on paused time.

mod memories;
mod reembedder;
mod transcripts;

use domain::ports::{ArchiveBatch, EventRow, StepQuery, Watermarks};
use domain::read::{StepsOf, StepsQuery, steps};
use schemas::id::{SessionKey, WorkerId};
use schemas::record::{Snapshot, StoredStep};
use testkit::contract::Ports;
use testkit::contract::build::{agent_id, input, worker};
use testkit::fake::{MemArchive, MemStore, SimClock, WordEmbedder};
use testkit::unreliable::{Faults, Port, Unreliable};

use super::*;

struct World {
    store: MemStore,
    ports: Ports,
    archive: MemArchive,
    embedder: Arc<WordEmbedder>,
    clock: SimClock,
    owner: WorkerId,
}

impl World {
    fn new() -> Self {
        let clock = SimClock::new();
        let store = MemStore::new(4, Arc::new(clock.clone()));
        let ports = Ports::of(store.clone());
        let embedder = Arc::new(WordEmbedder::new("words"));
        Self { store, ports, archive: MemArchive::default(), embedder, clock, owner: worker("w1") }
    }

    fn deps(&self) -> ArchivistDeps {
        self.deps_with(Arc::new(self.archive.clone()))
    }

    fn deps_with(&self, archive: Arc<dyn Archive>) -> ArchivistDeps {
        ArchivistDeps {
            worker: worker("a1"),
            leases: self.ports.leases.clone(),
            journal: self.ports.journal.clone(),
            archive,
            tail: self.ports.tail.clone(),
            memories: Arc::new(self.archive.clone()),
            embedder: self.embedder.clone(),
            transcripts: self.ports.transcripts.clone(),
            records: Arc::new(self.archive.clone()),
            ledger: self.ports.ledger.clone(),
            clock: Arc::new(self.clock.clone()),
        }
    }

    async fn session(&self, id: &str, commits: u64) -> SessionKey {
        let row = self.ports.created(id, "agent").await;
        self.go_on(&row.key, commits).await;
        row.key
    }

    async fn go_on(&self, key: &SessionKey, commits: u64) {
        for _ in 0..commits {
            self.ports.step(&self.owner, key, 2).await;
        }
    }

    async fn lag(&self) -> u64 {
        let lags = self.ports.journal.lag().await.expect("a read");
        lags.iter().map(|lag| lag.seq - lag.archived_seq).sum()
    }

    /// Lets (paused) time pass until the journal is archived.
    async fn until_archived(&self) {
        for _ in 0..1_000 {
            if self.lag().await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the journal was not archived");
    }

    async fn read(&self, key: &SessionKey) -> Vec<u64> {
        let query = StepsQuery::new(StepsOf::Session(key.clone()), 1_000);
        let (journal, sessions) = (&*self.ports.journal, &*self.ports.sessions);
        let page = steps(journal, &self.archive, sessions, &query).await.expect("a read");
        page.items.iter().map(|stored| stored.step.iteration).collect()
    }
}

async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn rows_move_to_the_archive_and_leave_the_journal_after_their_grace() {
    let world = World::new();
    let keys = [world.session("s1", 5).await, world.session("s2", 3).await];
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    world.until_archived().await;
    assert_eq!(world.archive.all_steps().len(), 16);
    assert_eq!(world.store.journal_rows().len(), 8, "readable for their grace");
    pass(limits::JOURNAL_GRACE_MS + 5_000).await;
    assert!(world.store.journal_rows().is_empty());
    assert_eq!(world.read(&keys[0]).await, (0..10).collect::<Vec<_>>());
    assert_eq!(world.read(&keys[1]).await, (0..6).collect::<Vec<_>>());
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_backlog_is_moved_in_bounded_batches_without_waiting_between_them() {
    let world = World::new();
    for n in 0..10 {
        world.session(&format!("s{n}"), 20).await;
    }
    let started = tokio::time::Instant::now();
    let config = ArchivistConfig { rows_max: 16, ..ArchivistConfig::default() };
    let archivist = Archivist::start(world.deps(), config);
    world.until_archived().await;
    assert!(started.elapsed() < Duration::from_secs(2), "13 batches took {:?}", started.elapsed());
    assert_eq!(world.archive.all_steps().len(), 400);
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_archivist_is_followed_by_another_without_loss_or_double() {
    let world = World::new();
    let key = world.session("s1", 1).await;
    for round in 0..30 {
        world.go_on(&key, 3).await;
        let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
        // The fake waits a millisecond between its tables: kills fall between any two of them.
        pass(round % 7).await;
        archivist.kill();
    }
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    world.until_archived().await;
    archivist.stop().await;
    let mut archived: Vec<u64> = world.archive.all_steps().iter().map(|stored| stored.step.iteration).collect();
    archived.sort_unstable();
    assert_eq!(archived, (0..182).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn what_was_archived_late_stays_until_every_reader_sees_it() {
    let world = World::new();
    world.session("s1", 4).await;
    // An outage of the archivist, far longer than the grace.
    pass(3_600_000).await;
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    world.until_archived().await;
    pass(ArchivistConfig::default().reader_lag_ms - 200).await;
    assert_eq!(world.store.journal_rows().len(), 4, "a reader may not see the archive's rows yet");
    pass(10_000).await;
    assert!(world.store.journal_rows().is_empty());
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_outlived_and_cost_nothing_else() {
    let world = World::new();
    let key = world.session("s1", 3).await;
    let failing = Arc::new(Failing { inner: world.archive.clone(), left: std::sync::atomic::AtomicU32::new(6) });
    let archivist = Archivist::start(world.deps_with(failing.clone()), ArchivistConfig::default());
    let mut steps = 6;
    while failing.left.load(std::sync::atomic::Ordering::Relaxed) > 0 {
        world.go_on(&key, 1).await;
        steps += 2;
        world.until_archived().await;
    }
    world.until_archived().await;
    assert_eq!(world.archive.all_steps().len(), steps);
    assert_eq!(world.read(&key).await, (0..steps as u64).collect::<Vec<_>>());
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_is_ahead_of_the_database_gets_nothing() {
    let world = World::new();
    let key = world.session("s1", 3).await;
    let shard = world.ports.row(&key).await.shard;
    let mut rows = world.store.journal_rows();
    let beyond = rows.len() as u64 + 1;
    let mut ghost = rows[0].clone();
    ghost.seq = beyond;
    rows.push(ghost);
    world.archive.append(&ArchiveBatch { rows }).await.expect("the archive takes rows");
    let before = world.archive.all_steps().len();
    assert!(Marks::reconcile(&world.deps()).await.is_err());
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    pass(60_000).await;
    let lags = world.ports.journal.lag().await.expect("a read");
    assert_eq!(lags[usize::from(shard.0)].archived_seq, 0);
    assert_eq!(world.archive.all_steps().len(), before);
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_lost_its_rows_gets_nothing() {
    let world = World::new();
    let key = world.session("s1", 3).await;
    let shard = world.ports.row(&key).await.shard;
    let last = world.store.journal_rows().len() as u64;
    world.ports.journal.mark_archived(shard, last).await.expect("what another archive had");
    assert!(Marks::reconcile(&world.deps()).await.is_err());
    let before = world.store.journal_rows().len();
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    world.session("s2", 2).await;
    pass(60_000).await;
    assert!(world.archive.all_steps().is_empty());
    assert!(world.store.journal_rows().len() > before, "and nothing is trimmed");
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn processed_actions_are_forgotten_after_their_retention_only() {
    let world = World::new();
    let key = world.session("s1", 1).await;
    world.ports.accept(input("waiting", "s1")).await;
    let row = world.ports.row(&key).await;
    let epoch = world.ports.own(row.shard, &world.owner).await;
    let mut commit = testkit::contract::build::next_commit(&row, epoch, 1);
    commit.settled.push(domain::commit::Settled::ok(testkit::contract::build::action_id("create-s1")));
    world.ports.commit_one(&world.owner, commit).await;
    let config = ArchivistConfig { ledger_retention_ms: 600_000, ..ArchivistConfig::default() };
    let archivist = Archivist::start(world.deps(), config);
    let ids = || world.store.all_actions().len();
    pass(540_000).await;
    assert_eq!(ids(), 2);
    pass(120_000).await;
    assert_eq!(ids(), 1, "the one that waits is kept");
    assert_eq!(world.ports.ledger.pending_count(&key).await.expect("a read"), 1);
    archivist.stop().await;
    assert!(world.read(&key).await.len() >= 3);
    assert_eq!(world.ports.row(&key).await.agent_id, agent_id("agent"));
}

#[tokio::test(start_paused = true)]
async fn of_two_archivists_one_works_and_the_other_takes_over() {
    for orderly in [true, false] {
        let world = World::new();
        let key = world.session("s1", 2).await;
        let config = ArchivistConfig::default();
        let start = |name| Archivist::start(ArchivistDeps { worker: worker(name), ..world.deps() }, config.clone());
        let first = start("a1");
        pass(100).await;
        let second = start("a2");
        world.until_archived().await;
        pass(60_000).await;
        let (ended, wait_ms) = (Instant::now(), config.renew_ms + config.interval_ms);
        if orderly {
            first.stop().await
        } else {
            first.kill()
        }
        world.go_on(&key, 2).await;
        world.until_archived().await;
        // At its next attempt; the lease of one that died has to run out first.
        let bound_ms = wait_ms + if orderly { 0 } else { config.lease_ms };
        assert!(ended.elapsed() <= Duration::from_millis(bound_ms + 200), "it took {:?}", ended.elapsed());
        second.stop().await;
        assert_eq!(world.read(&key).await, (0..8).collect::<Vec<_>>());
        assert_eq!(world.archive.all_steps().len(), 8);
    }
}

#[tokio::test(start_paused = true)]
async fn an_archivist_that_cannot_renew_stops_before_its_lease_ends() {
    let world = World::new();
    let key = world.session("s1", 2).await;
    let faults = Faults::none("a1");
    let leases = Arc::new(Unreliable::new(world.ports.leases.clone(), faults.clone()));
    let archivist = Archivist::start(ArchivistDeps { leases, ..world.deps() }, ArchivistConfig::default());
    world.until_archived().await;
    // Two renewals fail, and the third one does not: it goes on.
    faults.outage(&[Port::Leases], Duration::from_millis(2 * limits::ROLE_RENEW_MS));
    pass(2 * limits::ROLE_LEASE_MS).await;
    world.go_on(&key, 1).await;
    world.until_archived().await;
    // No answer any more, though journal and archive do answer.
    faults.crash();
    pass(limits::ROLE_LEASE_MS + 100).await;
    world.go_on(&key, 1).await;
    pass(60_000).await;
    assert!(world.lag().await > 0, "it does not hold the role");
    let other = Archivist::start(ArchivistDeps { worker: worker("a2"), ..world.deps() }, ArchivistConfig::default());
    world.until_archived().await;
    other.stop().await;
    archivist.kill();
    assert_eq!(world.read(&key).await, (0..8).collect::<Vec<_>>());
}

/// Fails its first appends, half of them after the rows were taken.
struct Failing {
    inner: MemArchive,
    left: std::sync::atomic::AtomicU32,
}

#[async_trait::async_trait]
impl Archive for Failing {
    async fn append(&self, batch: &ArchiveBatch) -> Result<(), Failure> {
        use std::sync::atomic::Ordering::Relaxed;
        let left = self.left.load(Relaxed);
        if left == 0 {
            return self.inner.append(batch).await;
        }
        self.left.store(left - 1, Relaxed);
        if left.is_multiple_of(2) {
            self.inner.append(batch).await?;
        }
        Err(Failure::in_doubt("no answer"))
    }

    async fn watermarks(&self) -> Result<Watermarks, Failure> {
        self.inner.watermarks().await
    }

    async fn steps(&self, query: &StepQuery) -> Result<Vec<StoredStep>, Failure> {
        self.inner.steps(query).await
    }

    async fn events(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<EventRow>, Failure> {
        self.inner.events(key, after, limit).await
    }

    async fn steps_after_offset(&self, key: &SessionKey, after: u64, limit: usize) -> Result<Vec<StoredStep>, Failure> {
        self.inner.steps_after_offset(key, after, limit).await
    }

    async fn snapshot(&self, key: &SessionKey) -> Result<Option<Snapshot>, Failure> {
        self.inner.snapshot(key).await
    }

    async fn maintain(&self) -> Result<(), Failure> {
        self.inner.maintain().await
    }

    async fn ping(&self) -> Result<(), Failure> {
        self.inner.ping().await
    }
}
