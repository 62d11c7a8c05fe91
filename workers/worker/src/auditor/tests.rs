//! The auditor against faithful fakes, look by look: what it finds, and what it does about it.

use domain::commit::Settled;
use domain::ports::{Sessions, WorkerInfo};
use schemas::action::{ActionType, Lane};
use schemas::conversation::{Operation, OperationKind, OperationState, Talk, Turn, TurnPhase};
use schemas::json::Json;
use schemas::limits::{AGENT_MS_DEFAULT, LIVE_SESSIONS_MAX};
use schemas::session::{Cause, SessionStatus};
use serde_json::json;
use testkit::contract::Ports;
use testkit::contract::build::{action_id, key, with_head, worker};
use testkit::contract::words::{approval, operation, turn, turn_id};
use testkit::fake::{MemStore, SimClock};
use tokio::sync::Semaphore;

use super::*;
use crate::fakes;
use crate::lease::LeaseClock;
use crate::runner::RunnerConfig;

/// Long before now, for what is older than any grace.
const LONG_AGO: i64 = 5;

struct Place {
    store: MemStore,
    ports: Ports,
    auditor: Auditor,
}

impl Place {
    /// A store with the session `s1` in the conversation `c1`.
    async fn new() -> Self {
        let clock = SimClock::new();
        let store = MemStore::new(4, Arc::new(clock.clone()));
        let ports = Ports::of(store.clone());
        ports.talker("s1", "c1").await;
        let deps = fakes::deps(&store, fakes::effects(&clock), &clock);
        let config = RunnerConfig::new(worker("auditing"), "here", "0");
        let lease = LeaseClock::new(config.lease_ms);
        let (live, heavy) = (Arc::new(Semaphore::new(LIVE_SESSIONS_MAX)), Arc::new(Semaphore::new(1)));
        let auditor = Auditor::new(Arc::new(Shared { deps, config, lease, live, heavy }));
        Self { store, ports, auditor }
    }

    /// A commit that leaves a session with nothing on its way, standing like this.
    async fn stand(&self, session: &str, status: SessionStatus, cause: Cause, talk: Talk) {
        let owner = worker("w1");
        let mut commit = with_head(self.ports.saying(&owner, session, talk).await, |head| {
            head.status = status;
            head.cause = cause;
            head.wake_at_ms = None;
        });
        commit.settled = vec![Settled::ok(action_id(&format!("create-{session}")))];
        self.ports.commit_one(&owner, commit).await;
    }

    async fn pause(&self, session: &str) {
        let cause = Cause::Paused { by: "ana".to_owned(), reason: None };
        self.stand(session, SessionStatus::Paused, cause, Talk::default()).await;
    }

    /// `s1` waits in this turn for these operations.
    async fn waits(&self, phase: TurnPhase, operations: Vec<Operation>) {
        let turns = vec![Turn { phase, ..turn("t1", "c1", "s1", LONG_AGO) }];
        let talk = Talk { turns, operations, ..Talk::default() };
        self.stand("s1", SessionStatus::Running, Cause::Operation, talk).await;
    }

    /// One pass over everything. Answers how many sessions have no cause.
    async fn look(&mut self) -> usize {
        self.auditor.try_look().await.expect("no faults are scripted");
        self.auditor.suspects.without_cause()
    }

    fn sent(&self, kind: ActionType) -> Vec<String> {
        let actions = self.store.all_actions().into_iter().filter(|one| one.kind == kind);
        actions.map(|one| one.asked.payload.as_str().to_owned()).collect()
    }
}

fn call(timeout_ms: u64) -> Operation {
    let request = Json::of(&json!({"session_id": "child"}));
    Operation { kind: OperationKind::Agent, pool: String::new(), request, timeout_ms, ..operation("o1", "s1") }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_agent_ended_without_an_answer_ends_once() {
    let mut place = Place::new().await;
    place.ports.talker("child", "c2").await;
    place.waits(TurnPhase::WaitingAgent, vec![call(3_600_000)]).await;
    place.pause("child").await;
    assert_eq!((place.look().await, place.look().await), (0, 0), "somebody works on it");
    place.stand("child", SessionStatus::Completed, Cause::Ended, Talk::default()).await;
    assert_eq!(place.look().await, 0, "the answer may be on its way");
    assert_eq!(place.ports.work_state("o1").await, OperationState::Pending);
    assert_eq!(place.look().await, 1);
    assert_eq!(place.ports.work_state("o1").await, OperationState::Failed);
    assert_eq!((place.look().await, place.look().await), (0, 0), "the result is on its way");
    let told = place.sent(ActionType::ToolResult);
    assert!(told.len() == 1 && told[0].contains("child is completed"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn so_does_one_whose_agent_does_not_exist() {
    let mut place = Place::new().await;
    place.waits(TurnPhase::WaitingAgent, vec![call(3_600_000)]).await;
    assert_eq!((place.look().await, place.look().await), (0, 1));
    let told = place.sent(ActionType::ToolResult);
    assert!(told.len() == 1 && told[0].contains("child does not exist"), "{told:?}");
    assert!(place.store.rearmed().is_empty(), "it is the operation that was helped on");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_timer_ends_at_the_usual_time() {
    let mut place = Place::new().await;
    place.ports.talker("child", "c2").await;
    place.waits(TurnPhase::WaitingAgent, vec![call(0)]).await;
    place.pause("child").await;
    assert_eq!(place.ports.work("o1").await.operation.until_ms, None);
    place.ports.pass(AGENT_MS_DEFAULT).await;
    assert_eq!((place.look().await, place.look().await), (0, 0), "executors come first");
    place.ports.pass(61_000).await;
    place.look().await;
    place.look().await;
    let told = place.sent(ActionType::ToolResult);
    assert!(told.len() == 1 && told[0].contains("TIMEOUT"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn so_does_one_whose_agent_goes_on_and_on() {
    let mut place = Place::new().await;
    place.ports.talker("child", "c2").await;
    place.waits(TurnPhase::WaitingAgent, vec![call(0)]).await;
    place.ports.pass(AGENT_MS_DEFAULT + 61_000).await;
    for _ in 0..2 {
        place.ports.say(&worker("w1"), "child", Talk::default()).await;
        place.look().await;
    }
    let told = place.sent(ActionType::ToolResult);
    assert!(told.len() == 1 && told[0].contains("TIMEOUT"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_nobody_works_on_is_woken() {
    let mut place = Place::new().await;
    let talk = Talk { turns: vec![turn("t1", "c1", "s1", LONG_AGO)], ..Talk::default() };
    place.stand("s1", SessionStatus::Running, Cause::Input, talk).await;
    assert_eq!(place.look().await, 0);
    assert!(place.store.rearmed().is_empty());
    assert_eq!(place.look().await, 1);
    assert_eq!(place.store.rearmed(), [key("s1")]);
    let row = place.store.session(&key("s1")).await.expect("a read").expect("a row");
    assert!(row.head.wake_at_ms.is_some());
    assert_eq!(place.look().await, 0, "it is due");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_nothing_is_cancelled_unless_somebody_is_asked() {
    for asks in [true, false] {
        let mut place = Place::new().await;
        // One question may serve several turns, also of a turn that has ended.
        let question = Operation { turn_id: turn_id("t0"), ..approval("o9", "s1", 3_600_000) };
        place.waits(TurnPhase::WaitingTool, asks.then_some(question).into_iter().collect()).await;
        place.look().await;
        assert_eq!(place.look().await, usize::from(!asks));
        let sent = place.sent(ActionType::Interrupt);
        assert_eq!(sent.iter().filter(|payload| payload.contains("cancel_turn")).count(), usize::from(!asks));
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_on_its_way_is_a_cause() {
    let mut place = Place::new().await;
    place.waits(TurnPhase::WaitingTool, vec![operation("o1", "s1")]).await;
    place.ports.accept(testkit::contract::words::tool_result("r1", "o1", None)).await;
    let pending = place.ports.ledger.pending(&key("s1"), Lane::Work, 0, 9).await.expect("a read");
    assert_eq!(pending.actions.len(), 1);
    assert_eq!((place.look().await, place.look().await), (0, 0));
    assert!(place.sent(ActionType::Interrupt).is_empty());
}

#[tokio::test(start_paused = true)]
async fn that_nobody_runs_operations_is_noticed_until_somebody_does() {
    let mut place = Place::new().await;
    place.waits(TurnPhase::WaitingTool, vec![operation("o1", "s1")]).await;
    place.look().await;
    assert!(!place.auditor.lacks_executor, "it has just been dispatched");
    place.ports.pass(11_000).await;
    assert_eq!((place.look().await, place.look().await), (0, 0), "that is a cause");
    assert!(place.auditor.lacks_executor);
    let info = WorkerInfo {
        worker: worker("w2"),
        host: "here".to_owned(),
        version: "0".to_owned(),
        roles: vec!["runner".to_owned(), "executor".to_owned()],
        draining: false,
        heartbeat_age_ms: 0,
    };
    place.ports.leases.heartbeat(&info).await.expect("a write");
    place.look().await;
    assert!(!place.auditor.lacks_executor);
}
