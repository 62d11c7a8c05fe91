//! Who goes first, who is not starved, and what a batch holds at most. A batch under way is held by a
//! gate, so that what waits meanwhile is known exactly.

use std::sync::Mutex;
use std::time::Duration;

use domain::commit::{Commit, Settled};
use schemas::event::{EventKind, EventRecord};
use schemas::id::{Epoch, Namespace, SessionId, SessionKey, Shard, WorkerId};
use schemas::json::Json;
use schemas::limits::{COMMIT_BATCH_BYTES_MAX, COMMIT_BATCH_MAX, COMMIT_LIGHT_MAX, COMMIT_SETTLED_MAX};
use schemas::record::Entry;
use schemas::session::Head;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::*;
use crate::committing::{self, prepare};

/// Weight that one batch takes.
const ROOM: usize = 10;

#[derive(Debug)]
struct Call {
    name: String,
    weight: usize,
    urgent: bool,
}

impl Batched for Call {
    type Answer = String;
    type Load = usize;

    fn join(&self, load: &mut usize) -> bool {
        let fits = *load + self.weight <= ROOM;
        if fits || *load == 0 {
            *load += self.weight;
        }
        fits
    }

    fn is_urgent(&self) -> bool {
        self.urgent
    }
}

/// A queue whose batches run one for each permit of the gate.
struct World {
    queue: Arc<Queue<Call>>,
    gate: Arc<Semaphore>,
    batches: Arc<Mutex<Vec<Vec<String>>>>,
}

impl World {
    /// Fails a batch that holds a call named `bad`, saying so of its data.
    fn new() -> Self {
        let (gate, batches) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (opens, seen) = (gate.clone(), batches.clone());
        let run = move |calls: Arc<[Call]>, range: Range<usize>| {
            let (opens, seen) = (opens.clone(), seen.clone());
            async move {
                opens.acquire().await.expect("the gate stands").forget();
                let names: Vec<String> = calls[range].iter().map(|call| call.name.clone()).collect();
                seen.lock().unwrap().push(names.clone());
                match names.iter().any(|name| name == "bad") {
                    true => Err(Failure::internal("this cannot be stored")),
                    false => Ok(names),
                }
            }
        };
        Self { queue: Arc::new(Queue::start(run)), gate, batches }
    }

    /// Lets a call wait, behind those that were let before.
    async fn call(&self, name: &str, weight: usize, urgent: bool) -> JoinHandle<Result<String, Failure>> {
        let (queue, call) = (self.queue.clone(), Call { name: name.to_owned(), weight, urgent });
        let waiting = tokio::spawn(async move { queue.call(call).await });
        // Until it waits: with a paused clock, that is until nobody has anything to do.
        tokio::time::sleep(Duration::from_millis(1)).await;
        waiting
    }

    /// Runs `count` batches; returns all that have run so far.
    async fn run(&self, count: usize) -> Vec<Vec<String>> {
        self.gate.add_permits(count);
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.batches.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn urgent_calls_go_first_and_each_line_keeps_its_order() {
    let world = World::new();
    world.call("first", 1, false).await;
    for n in 1..=3 {
        world.call(&format!("plain{n}"), 2, false).await;
        world.call(&format!("urgent{n}"), 2, true).await;
    }
    let batches = world.run(9).await;
    assert_eq!(
        batches,
        [vec!["first"], vec!["urgent1", "urgent2", "urgent3", "plain1", "plain2"], vec!["plain3"]],
        "what came meanwhile is one batch, urgent ones before others"
    );
}

#[tokio::test(start_paused = true)]
async fn urgent_calls_without_end_do_not_starve_a_heavy_one() {
    let world = World::new();
    world.call("first", 1, true).await;
    // It would never find room beside the urgent calls, of which there are always more.
    let heavy = world.call("heavy", ROOM, false).await;
    for n in 0..6 {
        world.call(&format!("urgent{n}"), 4, true).await;
    }
    let mut batches = Vec::new();
    for n in 6..20 {
        batches = world.run(1).await;
        world.call(&format!("urgent{n}"), 4, true).await;
        world.call(&format!("urgent{n}b"), 4, true).await;
    }
    let place = batches.iter().position(|batch| batch.contains(&"heavy".to_owned()));
    assert!(place.is_some_and(|place| place <= 3), "heavy ran at {place:?}: {batches:?}");
    assert_eq!(heavy.await.unwrap().unwrap(), "heavy");
    let urgent = batches.iter().flatten().filter(|name| name.starts_with("urgent"));
    let order: Vec<&String> = urgent.collect();
    assert!(order.len() > 10 && batches[1][0].starts_with("urgent"), "urgent ones went on: {batches:?}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_opens_a_later_batch_and_holds_its_line() {
    let world = World::new();
    world.call("first", 1, false).await;
    for (name, weight) in [("a", 6), ("b", 6), ("c", 1), ("larger than any", 3 * ROOM), ("d", 1)] {
        world.call(name, weight, false).await;
    }
    let batches = world.run(9).await;
    // `c` would fit beside `a`; but it came after `b`.
    assert_eq!(batches, [vec!["first"], vec!["a"], vec!["b", "c"], vec!["larger than any"], vec!["d"]]);
}

#[tokio::test(start_paused = true)]
async fn one_bad_member_fails_alone() {
    let world = World::new();
    world.call("first", 1, false).await;
    let good = [world.call("a", 1, false).await, world.call("b", 1, true).await];
    let bad = world.call("bad", 1, false).await;
    let batches = world.run(9).await;
    assert_eq!(batches, [vec!["first"], vec!["b", "a", "bad"], vec!["b"], vec!["a"], vec!["bad"]]);
    for waiting in good {
        waiting.await.unwrap().expect("its data is good");
    }
    assert!(bad.await.unwrap().is_err());
}

/// A commit that settles so many actions and leaves so many bytes of state.
fn commit(session: &str, settled: usize, bytes: usize) -> committing::Call {
    commit_with(session, settled, bytes, Vec::new())
}

fn commit_with(session: &str, settled: usize, bytes: usize, events: Vec<EventRecord>) -> committing::Call {
    let key = SessionKey::new(Namespace::default_ns(), SessionId::parse(session).unwrap());
    let entry = Entry {
        agent_id: "a1".parse().unwrap(),
        moniker: "count".into(),
        conversation_id: None,
        head: Head::starting(0),
        state: Json::of(&"x".repeat(bytes)),
        steps: Vec::new(),
        events,
    };
    let commit = Commit {
        key,
        shard: Shard(0),
        epoch: Epoch(1),
        expect_steps: 0,
        expect_offset: 1,
        entry: Arc::new(entry),
        settled: (0..settled).map(|n| Settled::ok(format!("a{n}").parse().unwrap())).collect(),
        follow_ups: Vec::new(),
        effects: Vec::new(),
        talk: Default::default(),
    };
    committing::Call::new(prepare(&WorkerId::parse("w1").unwrap(), vec![commit]).unwrap())
}

/// How many of the calls a batch takes, one after the other.
fn taken(calls: impl Iterator<Item = committing::Call>) -> usize {
    let mut load = committing::Load::default();
    calls.take_while(|call| call.join(&mut load)).count()
}

#[test]
fn a_batch_of_commits_holds_to_its_limits() {
    let named = |settled, bytes| (0..).map(move |n| commit(&format!("s{n}"), settled, bytes));
    assert_eq!(taken(named(0, 1)), COMMIT_BATCH_MAX);
    assert_eq!(taken(named(32, 1)), COMMIT_SETTLED_MAX / 32);
    let each = COMMIT_BATCH_BYTES_MAX / 4;
    assert_eq!(taken(named(0, each)), 3, "texts count, and a little more than the state is text");
    assert_eq!(taken(std::iter::repeat_with(|| commit("same", 0, 1)).take(9)), 1, "a session's next commit waits");
    let mut load = committing::Load::default();
    assert!(!commit("huge", 0, COMMIT_BATCH_BYTES_MAX).join(&mut load), "it is larger than any batch");
    assert!(!commit("small", 0, 1).join(&mut load), "and runs alone");
}

#[test]
fn light_commits_and_changes_of_status_are_urgent() {
    assert!(commit("s1", COMMIT_LIGHT_MAX, 1).is_urgent());
    assert!(!commit("s1", COMMIT_LIGHT_MAX + 1, 1).is_urgent());
    let paused = EventRecord { offset: 1, at_ms: 0, kind: EventKind::Status, data: Json::of(&"paused") };
    assert!(commit_with("s1", COMMIT_LIGHT_MAX + 1, 1, vec![paused]).is_urgent(), "somebody waits to see it");
}
