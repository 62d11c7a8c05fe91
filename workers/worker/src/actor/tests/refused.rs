//! Commits that the store refuses for good: some of one session's, or everybody's for a while.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use domain::commit::{Commit, CommitResult};
use domain::failure::Failure;
use domain::ports::Commits;
use schemas::action::ActionType;
use schemas::id::WorkerId;
use schemas::record::StepStatus;
use schemas::session::Head;
use testkit::contract::build::action;
use tokio::time::sleep;

use super::*;
use crate::runner::RunnerDeps;

/// A store that cannot take some commits until it is mended.
struct Refusing {
    store: MemStore,
    refuses: fn(&Commit) -> bool,
    is_mended: AtomicBool,
    refused: AtomicUsize,
}

#[async_trait]
impl Commits for Refusing {
    async fn commit(&self, owner: &WorkerId, commits: Vec<Commit>) -> Result<Vec<CommitResult>, Failure> {
        if !self.is_mended.load(Ordering::Relaxed) && commits.iter().any(self.refuses) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Failure::internal("this value cannot be stored"));
        }
        self.store.commit(owner, commits).await
    }
}

struct World {
    store: MemStore,
    commits: Arc<Refusing>,
    _runner: Runner,
}

impl World {
    /// A worker that finds one session `s`, just created.
    async fn start(payload: Value, refuses: fn(&Commit) -> bool) -> Self {
        let clock = SimClock::new();
        let store = MemStore::new(1, Arc::new(clock.clone()));
        accept(&store, "s", payload).await;
        let (is_mended, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
        let commits = Arc::new(Refusing { store: store.clone(), refuses, is_mended, refused });
        let library = Arc::new(Library { store: store.clone(), text: String::new(), counted: Mutex::default() });
        let deps = RunnerDeps { commits: commits.clone(), ..deps(&store, library, &clock) };
        Self { store, commits, _runner: Runner::start(deps, config("w1")) }
    }

    async fn post(&self, kind: ActionType, id: &str) {
        let verdicts = self.store.accept(vec![action(kind, id, Some("s"), None)]).await.expect("the ledger takes it");
        assert!(matches!(verdicts[..], [Verdict::Accepted(_)]), "{verdicts:?}");
    }

    fn mend(&self) {
        self.commits.is_mended.store(true, Ordering::Relaxed);
    }

    fn refused(&self) -> usize {
        self.commits.refused.load(Ordering::Relaxed)
    }

    /// Ids of what is accepted and not settled.
    fn open(&self) -> Vec<String> {
        self.store.open_actions().into_iter().map(|(_, _, _, id)| id.to_string()).collect()
    }

    async fn head(&self) -> Head {
        self.store.session(&key("s")).await.expect("a read").expect("a session").head
    }

    async fn until(&self, is_so: impl Fn(&Head) -> bool) -> Head {
        for _ in 0..2_000 {
            let head = self.head().await;
            if is_so(&head) {
                return head;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("it stays as it is: {:?}", self.head().await);
    }

    /// How its committed steps ended.
    fn steps(&self) -> Vec<StepStatus> {
        self.store.commit_log().iter().flat_map(|one| &one.entry.steps).map(|step| step.status).collect()
    }
}

/// One step a minute.
fn count() -> Value {
    json!({"moniker": "count", "loop_interval_ms": 60_000})
}

fn has_good_steps(commit: &Commit) -> bool {
    commit.entry.steps.iter().any(|step| step.status == StepStatus::Ok)
}

fn has_anything(commit: &Commit) -> bool {
    !commit.entry.steps.is_empty() || !commit.entry.events.is_empty()
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_stored_ends_the_run_and_a_resume_takes_up_what_was_accepted() {
    let world = World::start(json!({"moniker": "echo"}), has_good_steps).await;
    world.post(ActionType::Input, "in-1").await;
    let failed = world.until(|head| head.status == SessionStatus::Error).await;
    let error = failed.last_error.unwrap_or_default();
    assert!(error.starts_with("internal: ") && error.ends_with("this value cannot be stored"), "{error}");
    assert_eq!((world.steps(), world.open()), (vec![StepStatus::Error], vec!["in-1".to_owned()]));
    let refused = world.refused();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(world.refused(), refused, "it is at rest");
    world.mend();
    world.post(ActionType::Resume, "resume-1").await;
    let head = world.until(|head| head.steps == 2).await;
    assert_eq!((head.status, head.last_error), (SessionStatus::Running, None));
    assert_eq!((world.steps(), world.open()), (vec![StepStatus::Error, StepStatus::Ok], Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_first_commit_cannot_be_stored_is_created_and_can_be_ended() {
    let world = World::start(count(), has_good_steps).await;
    let failed = world.until(|head| head.status == SessionStatus::Error).await;
    assert!(failed.started_at_ms.is_some() && world.open().is_empty(), "its creation is applied");
    world.post(ActionType::Resume, "resume-1").await;
    world.until(|head| head.status == SessionStatus::Error && head.steps == 2).await;
    assert!(world.open().is_empty(), "the resume has failed in turn");
    world.post(ActionType::Destroy, "destroy-1").await;
    world.until(|head| head.status == SessionStatus::Stopped).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_nothing_is_waited_for() {
    let world = World::start(count(), |_| true).await;
    sleep(Duration::from_secs(600)).await;
    assert!(world.store.commit_count() == 0 && world.refused() > 500, "{} refused", world.refused());
    world.mend();
    // It ran ahead meanwhile.
    let head = world.until(|head| head.steps > 0).await;
    assert_eq!((head.status, head.last_error), (SessionStatus::Running, None));
    assert!(world.steps().iter().all(|status| *status == StepStatus::Ok), "{:?}", world.steps());
}

#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_stored_is_tried_again_and_not_too_often() {
    let world = World::start(count(), has_anything).await;
    sleep(Duration::from_secs(600)).await;
    assert!((100..400).contains(&world.refused()), "{} refused", world.refused());
    assert!(world.store.journal_rows().is_empty() && world.open().len() == 1);
    // While it waits: an end that is under way would be taken.
    let mut refused = 0;
    while refused != world.refused() {
        refused = world.refused();
        sleep(Duration::from_secs(5)).await;
    }
    world.mend();
    sleep(Duration::from_secs(45)).await;
    assert_eq!((world.head().await.status, world.steps()), (SessionStatus::Running, vec![StepStatus::Ok]));
}
