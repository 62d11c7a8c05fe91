//! Contract of `Operations`, and of results that name them.

mod claims;

use std::collections::BTreeSet;

use domain::ports::{Claim, Ended, Ending, Hold, OperationQuery, OperationRow, Verdict};
use schemas::action::{ActionOutcome, ActionType, Lane, NewAction};
use schemas::conversation::{Operation, OperationKind, OperationState};
use schemas::id::{Namespace, OperationId};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::session::SessionStatus;
use serde_json::json;

use super::Ports;
use super::build::*;
use super::words::*;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    claims_are_what_is_due(&make().await).await;
    what_nobody_claims_waits(&make().await).await;
    two_claimants_never_share(&make().await).await;
    claims_end_and_are_extended(&make().await).await;
    a_claim_lasts_as_its_holder_says(&make().await).await;
    claims_of_a_pool_are_given_back(&make().await).await;
    attempts_are_scheduled_again(&make().await).await;
    starts_that_were_lost_are_counted_apart(&make().await).await;
    a_start_that_comes_back_is_none(&make().await).await;
    claims::suite(make).await;
    a_result_ends_its_operation_once(&make().await).await;
    results_find_their_session(&make().await).await;
    results_without_an_open_operation_are_refused(&make().await).await;
    a_batch_of_results_is_judged_in_order(&make().await).await;
    work_of_an_ended_session_is_cancelled(&make().await).await;
    a_session_that_failed_is_kept_its_results(&make().await).await;
    approvals_expire(&make().await).await;
    work_of_others_is_untaken_after_its_wait(&make().await).await;
    agents_are_overdue_after_their_time(&make().await).await;
    lists_are_filtered_and_paged(&make().await).await;
    nothing_crosses_a_namespace(&make().await).await;
}

/// A session in `c1` with its worker.
async fn with_session(ports: &Ports) -> schemas::id::WorkerId {
    ports.talker("s1", "c1").await;
    worker("w1")
}

async fn claim(ports: &Ports, claimant: &str, limit: usize) -> Vec<OperationRow> {
    ports.operations.claim("default", claimant, Hold::Attempt(0), limit).await.expect("work can be claimed")
}

fn ids(rows: &[OperationRow]) -> Vec<&str> {
    rows.iter().map(|row| row.operation.operation_id.as_str()).collect()
}

/// Longer than the shortest claim and the shortest timeout here.
const MOMENT_MS: u64 = 40;

async fn claims_are_what_is_due(ports: &Ports) {
    let owner = with_session(ports).await;
    let elsewhere = Operation { pool: "their 'own' pool".to_owned(), ..operation("o-their", "s1") };
    let person = approval("o-person", "s1", 1);
    let agent = Operation { kind: OperationKind::Agent, pool: "default".to_owned(), ..operation("o-agent", "s1") };
    let later = Operation { due_at_ms: i64::MAX / 2, ..operation("o-later", "s1") };
    ports.dispatch(&owner, "s1", vec![elsewhere, person, agent, later, operation("o2", "s1")]).await;
    ports.pass(MOMENT_MS).await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1")]).await;
    assert!(claim(ports, "me", 0).await.is_empty());
    let first = claim(ports, "me", 1).await;
    assert_eq!(ids(&first), ["o2"], "the oldest first");
    let claimed = &first[0].operation;
    assert_eq!((claimed.attempt, claimed.claimed_by.as_deref()), (1, Some("me")));
    assert_eq!(claimed.state, OperationState::Pending, "as it was");
    let until_ms = claimed.until_ms.expect("a claim ends");
    assert!(until_ms >= claimed.created_at_ms + 3_600_000);
    let stored = ports.work("o2").await.operation;
    assert_eq!(stored, Operation { state: OperationState::Running, ..claimed.clone() });
    assert_eq!(ids(&claim(ports, "me", 9).await), ["o1"], "not what is claimed, not what is later, not other kinds");
    assert!(claim(ports, "me", 9).await.is_empty());
    let their = ports.operations.claim("their 'own' pool", "them", Hold::Attempt(5), 9).await.expect("a claim");
    assert_eq!(ids(&their), ["o-their"]);
}

async fn what_nobody_claims_waits(ports: &Ports) {
    let owner = with_session(ports).await;
    let waiting = async || ports.operations.waiting_ms("default").await.expect("an answer");
    assert_eq!(waiting().await, None);
    let elsewhere = Operation { pool: "their 'own' pool".to_owned(), ..operation("o-their", "s1") };
    let later = Operation { due_at_ms: i64::MAX / 2, ..operation("o-later", "s1") };
    ports.dispatch(&owner, "s1", vec![elsewhere, later, approval("o-person", "s1", 1)]).await;
    ports.pass(MOMENT_MS).await;
    assert_eq!(waiting().await, None, "not of other pools, not what is later, not other kinds");
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1")]).await;
    ports.pass(MOMENT_MS).await;
    ports.dispatch(&owner, "s1", vec![operation("o2", "s1")]).await;
    assert!(waiting().await.is_some_and(|ms| (1..3_600_000).contains(&ms)), "the one that waits longest counts");
    assert_eq!(claim(ports, "me", 9).await.len(), 2);
    assert_eq!(waiting().await, None, "somebody has them");
}

async fn two_claimants_never_share(ports: &Ports) {
    const WORK: usize = 60;
    let owner = with_session(ports).await;
    let all = (0..WORK).map(|n| operation(&format!("o{n:02}"), "s1")).collect();
    ports.dispatch(&owner, "s1", all).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6 {
        let ports = ports.clone();
        tasks.spawn(async move {
            let mut mine: Vec<OperationId> = Vec::new();
            loop {
                let rows = claim(&ports, &format!("claimant {n}"), 4).await;
                assert!(rows.iter().all(|row| row.operation.attempt == 1), "{rows:?}");
                // What others hold at this moment may be passed over; what is free at the end is not.
                if rows.is_empty() {
                    return mine;
                }
                mine.extend(rows.into_iter().map(|row| row.operation.operation_id));
            }
        });
    }
    let taken: Vec<OperationId> = tasks.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<&OperationId> = taken.iter().collect();
    assert_eq!((taken.len(), distinct.len()), (WORK, WORK));
}

async fn claims_end_and_are_extended(ports: &Ports) {
    let owner = with_session(ports).await;
    let short = Operation { timeout_ms: 1, ..operation("o1", "s1") };
    ports.dispatch(&owner, "s1", vec![short]).await;
    assert_eq!(ids(&claim(ports, "first", 1).await), ["o1"]);
    ports.pass(MOMENT_MS).await;
    let again = claim(ports, "second", 1).await;
    assert_eq!(again[0].operation.state, OperationState::Running, "an attempt may have happened");
    assert_eq!((again[0].operation.attempt, again[0].operation.claimed_by.as_deref()), (2, Some("second")));
    let (namespace, id) = (Namespace::default_ns(), operation_id("o1"));
    let extend = async |who, grace_ms| ports.operations.extend(&namespace, &id, who, grace_ms).await.expect("a write");
    assert!(!extend("first", 3_600_000).await, "it is not the first one's any more");
    assert!(extend("second", 3_600_000).await);
    let row = ports.work("o1").await.operation;
    assert_eq!((row.attempt, row.state), (2, OperationState::Running));
    assert!(row.until_ms > again[0].operation.until_ms);
    ports.pass(MOMENT_MS).await;
    assert!(claim(ports, "third", 1).await.is_empty(), "the claim goes on");
    let ended = Ended::Again { after_ms: 0, error: "mine?".to_owned(), lost: true };
    let ending = ports.operations.end(&namespace, &id, Some(Claim::by("first")), ended).await.expect("a write");
    assert!(matches!(ending, Ending::NotOpen), "{ending:?}");
    assert!(!ports.operations.extend(&namespace, &operation_id("none"), "second", 1).await.expect("a write"));
}

/// Work with a long timeout does not wait for it when its holder, who would extend the claim, is gone.
async fn a_claim_lasts_as_its_holder_says(ports: &Ports) {
    let owner = with_session(ports).await;
    let hour = Operation { timeout_ms: 3_600_000, ..operation("o1", "s1") };
    ports.dispatch(&owner, "s1", vec![hour]).await;
    let hold = Hold::Extended(MOMENT_MS / 2);
    let first = ports.operations.claim("default", "first", hold, 1).await.expect("a claim").remove(0).operation;
    let (namespace, id) = (Namespace::default_ns(), operation_id("o1"));
    assert!(ports.operations.extend(&namespace, &id, "first", MOMENT_MS / 2).await.expect("a write"));
    let until_ms = ports.work("o1").await.operation.until_ms.expect("a claim ends");
    assert!(until_ms >= first.until_ms.expect("a claim ends"), "an extension never shortens it here");
    assert!(until_ms < first.created_at_ms + 3_600_000, "the timeout of the attempt is not in it");
    ports.pass(MOMENT_MS).await;
    let again = claim(ports, "second", 1).await;
    assert_eq!((again[0].operation.attempt, again[0].operation.state), (2, OperationState::Running));
}

async fn claims_of_a_pool_are_given_back(ports: &Ports) {
    let owner = with_session(ports).await;
    let elsewhere = Operation { pool: "default:python".to_owned(), ..operation("o-their", "s1") };
    let later = Operation { due_at_ms: i64::MAX / 2, ..operation("o-later", "s1") };
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1"), operation("o2", "s1"), elsewhere, later]).await;
    assert_eq!(claim(ports, "gone", 9).await.len(), 2);
    let their = ports.operations.claim("default:python", "external:w", Hold::Attempt(0), 9).await.expect("a claim");
    assert_eq!(their.len(), 1);
    assert!(claim(ports, "me", 9).await.is_empty());
    let release = async || ports.operations.release("default").await.expect("a write");
    assert_eq!((release().await, release().await), (2, 2), "what is running is anybody's");
    let (namespace, id) = (Namespace::default_ns(), operation_id("o1"));
    assert!(!ports.operations.extend(&namespace, &id, "gone", 9).await.expect("a write"), "and not the holder's");
    let again = claim(ports, "me", 9).await;
    assert_eq!(ids(&again), ["o1", "o2"], "not what is later");
    assert!(again.iter().all(|row| (row.operation.state, row.operation.attempt) == (OperationState::Running, 2)));
    let row = ports.work("o-their").await.operation;
    assert_eq!(row.claimed_by.as_deref(), Some("external:w"), "claims of others stay theirs");
}

async fn attempts_are_scheduled_again(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1")]).await;
    let claimed = claim(ports, "me", 1).await.remove(0).operation;
    let (namespace, id) = (Namespace::default_ns(), operation_id("o1"));
    let again = async |after_ms, error: &str| {
        let ended = Ended::Again { after_ms, error: error.to_owned(), lost: false };
        ports.operations.end(&namespace, &id, Some(Claim::by("me")), ended).await.expect("a write")
    };
    assert!(matches!(again(3_600_000, "no \"luck\"\n π").await, Ending::Scheduled));
    let row = ports.work("o1").await.operation;
    assert_eq!(
        (row.state, row.attempt, row.claimed_by.clone(), row.until_ms),
        (OperationState::Pending, 1, None, None)
    );
    assert_eq!(row.error.as_deref(), Some("no \"luck\"\n π"));
    assert!(row.due_at_ms >= claimed.created_at_ms + 3_600_000);
    assert!(claim(ports, "me", 1).await.is_empty(), "not yet");
    assert!(matches!(again(0, "twice").await, Ending::NotOpen), "it is not claimed any more");
    // Nobody in particular may say so as well: an operator, say.
    let ended = Ended::Again { after_ms: 0, error: "now".to_owned(), lost: false };
    let ending = ports.operations.end(&namespace, &id, None, ended).await.expect("a write");
    assert!(matches!(ending, Ending::Scheduled));
    let claimed = claim(ports, "me", 1).await;
    assert_eq!((claimed[0].operation.attempt, claimed[0].operation.state), (2, OperationState::Pending));
}

/// What was handed back, or has lost its holder, has not failed.
async fn starts_that_were_lost_are_counted_apart(ports: &Ports) {
    let owner = with_session(ports).await;
    let short = Operation { timeout_ms: 1, ..operation("o1", "s1") };
    ports.dispatch(&owner, "s1", vec![short]).await;
    let (namespace, id) = (Namespace::default_ns(), operation_id("o1"));
    let again = async |claimant, lost| {
        let ended = Ended::Again { after_ms: 0, error: "once more".to_owned(), lost };
        ports.operations.end(&namespace, &id, Some(Claim::by(claimant)), ended).await.expect("a write")
    };
    let stored = async || {
        let row = ports.work("o1").await.operation;
        (row.attempt, row.lost)
    };
    let started = async || {
        let claimed = claim(ports, "me", 1).await.remove(0).operation;
        assert_eq!((claimed.attempt, claimed.lost), stored().await, "what is claimed is what is stored");
        (claimed.attempt, claimed.lost)
    };
    assert_eq!(started().await, (1, 0));
    assert!(matches!(again("me", false).await, Ending::Scheduled));
    assert_eq!(started().await, (2, 0), "it failed");
    assert!(matches!(again("other", true).await, Ending::NotOpen));
    assert_eq!(stored().await, (2, 0), "it is not theirs");
    assert!(matches!(again("me", true).await, Ending::Scheduled));
    assert_eq!(stored().await, (2, 1), "it was handed back");
    assert_eq!(started().await, (3, 1), "which counts once");
    ports.pass(MOMENT_MS).await;
    assert_eq!(started().await, (4, 2), "its claim has ended");
    assert_eq!(ports.operations.release("default").await.expect("a write"), 1);
    assert_eq!(started().await, (5, 3), "its holder is gone");
    assert!(matches!(again("me", false).await, Ending::Scheduled));
    assert_eq!(stored().await, (5, 3));
}

/// Whoever was to be given it cannot be reached, as often as that may be.
async fn a_start_that_comes_back_is_none(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.dispatch(&owner, "s1", vec![Operation { timeout_ms: 1, ..operation("o1", "s1") }]).await;
    let (namespace, id) = (Namespace::default_ns(), operation_id("o1"));
    let (me, other) = (Some(Claim::by("me")), Some(Claim::by("other")));
    let back = async |claim, after_ms| {
        let ended = Ended::Back { after_ms, error: "nobody \"there\"".to_owned() };
        ports.operations.end(&namespace, &id, claim, ended).await.expect("a write")
    };
    let started = async || {
        let claimed = claim(ports, "me", 1).await.remove(0).operation;
        (claimed.attempt, claimed.lost, claimed.state)
    };
    assert!(matches!(back(None, 0).await, Ending::NotOpen), "nobody has it");
    for _ in 0..3 {
        assert_eq!(started().await, (1, 0, OperationState::Pending));
        assert!(matches!(back(other, 0).await, Ending::NotOpen), "it is not theirs");
        assert!(matches!(back(me, 0).await, Ending::Scheduled));
        assert!(matches!(back(me, 0).await, Ending::NotOpen), "it is back already");
        assert!(matches!(back(None, 0).await, Ending::NotOpen), "and once is enough");
    }
    let row = ports.work("o1").await.operation;
    assert_eq!((row.state, row.attempt, row.lost), (OperationState::Pending, 0, 0));
    assert_eq!((row.claimed_by, row.until_ms, row.error.as_deref()), (None, None, Some("nobody \"there\"")));
    // A start that was lost before stays one.
    assert_eq!(started().await, (1, 0, OperationState::Pending));
    ports.pass(MOMENT_MS).await;
    assert_eq!(started().await, (2, 1, OperationState::Running), "its claim has ended");
    assert!(matches!(back(me, 3_600_000).await, Ending::Scheduled));
    let row = ports.work("o1").await.operation;
    assert_eq!((row.state, row.attempt, row.lost), (OperationState::Pending, 1, 1));
    assert!(claim(ports, "me", 1).await.is_empty(), "not yet");
}

fn settled(state: OperationState, action: NewAction) -> Ended {
    Ended::Settled { state, action: Box::new(action) }
}

async fn a_result_ends_its_operation_once(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1"), operation("o2", "s1")]).await;
    claim(ports, "me", 2).await;
    let namespace = Namespace::default_ns();
    let end = async |id: &str, state, action| {
        let ended = settled(state, action);
        ports.operations.end(&namespace, &operation_id(id), Some(Claim::by("me")), ended).await.expect("a write")
    };
    let result = tool_result("r1", "o1", Some("s1"));
    let Ending::Settled(verdict) = end("o1", OperationState::Completed, result.clone()).await else {
        panic!("it was open")
    };
    let action = accepted(&verdict).clone();
    assert_eq!((action.session_seq, action.kind, &action.payload), (2, ActionType::ToolResult, &result.payload));
    let row = ports.work("o1").await.operation;
    assert_eq!((row.state, row.claimed_by, row.until_ms), (OperationState::Completed, None, None));
    // The same again is a repeat, whoever says it; another body is a conflict; another id is nothing.
    match end("o1", OperationState::Failed, result.clone()).await {
        Ending::Settled(Verdict::Repeated(repeat)) => assert_eq!(repeat.action, action),
        other => panic!("should be a repeat: {other:?}"),
    }
    match end("o1", OperationState::Completed, with_body(9, result)).await {
        Ending::Settled(Verdict::Refused(refusal)) => {
            assert_eq!((refusal.code, refusal.recorded), (Code::ActionConflict, false));
        }
        other => panic!("should conflict: {other:?}"),
    }
    let late = end("o1", OperationState::Completed, tool_result("r2", "o1", Some("s1"))).await;
    assert!(matches!(late, Ending::NotOpen), "{late:?}");
    assert!(ports.ledger.action(&namespace, &action_id("r2")).await.unwrap().is_none(), "nothing was written");
    assert_eq!(ports.work_state("o1").await, OperationState::Completed, "the first result counts");
    assert!(!ports.operations.extend(&namespace, &operation_id("o1"), "me", 1).await.unwrap());
    assert!(matches!(end("none", OperationState::Failed, tool_result("r3", "none", None)).await, Ending::NotOpen));
    // The state is what the caller says, whatever the words of the result are; no claim is needed.
    let ended = settled(OperationState::Failed, tool_result("r4", "o2", None));
    let ending = ports.operations.end(&namespace, &operation_id("o2"), None, ended).await.expect("a write");
    assert!(matches!(ending, Ending::Settled(Verdict::Accepted(_))), "{ending:?}");
    assert_eq!(ports.work_state("o2").await, OperationState::Failed);
    assert!(claim(ports, "me", 9).await.is_empty());
    let pending = ports.ledger.pending(&key("s1"), Lane::Work, 1, 10).await.unwrap();
    assert_eq!(pending.actions.iter().map(|one| one.action_id.as_str()).collect::<Vec<_>>(), ["r1", "r4"]);
}

async fn results_find_their_session(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.created("newer", "agent").await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1"), operation("o2", "s1"), operation("o3", "s1")]).await;
    let verdict = ports.accept(tool_result("r1", "o1", None)).await;
    assert_eq!(accepted(&verdict).session_id, session_id("s1"));
    // The agent's newest session is another one; the operation says whose result it is.
    let by_agent = NewAction { agent_id: Some(agent_id("agent")), ..tool_result("r2", "o2", None) };
    assert_eq!(accepted(&ports.accept(by_agent).await).session_id, session_id("s1"));
    let failed = Json::of(&json!({"operation_id": "o3", "error": {"code": "TIMEOUT"}}));
    accepted(&ports.accept(NewAction { payload: failed, ..tool_result("r3", "o3", None) }).await);
    let state = async |id: &str| ports.work_state(id).await;
    assert_eq!(
        [state("o1").await, state("o2").await, state("o3").await],
        [OperationState::Completed, OperationState::Completed, OperationState::Failed]
    );
    let foreign = NewAction { agent_id: Some(agent_id("other")), ..tool_result("r4", "o3", None) };
    assert_eq!(refused(&ports.accept(foreign).await), Code::WrongAgent);
    // Operations without a row are the session's own business.
    accepted(&ports.accept(tool_result("r5", "unknown", Some("s1"))).await);
}

async fn results_without_an_open_operation_are_refused(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.talker("s2", "c1").await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1")]).await;
    let astray = ports.accept(tool_result("r0", "o1", Some("s2"))).await;
    assert_eq!(refused(&astray), Code::NoOpenOperation, "it is another session's");
    assert_eq!(ports.work_state("o1").await, OperationState::Pending);
    let first = tool_result("r1", "o1", Some("s1"));
    accepted(&ports.accept(first.clone()).await);
    assert!(matches!(ports.accept(first).await, Verdict::Repeated(_)));
    let late = tool_result("r2", "o1", Some("s1"));
    for _ in 0..2 {
        assert_eq!(refused(&ports.accept(late.clone()).await), Code::NoOpenOperation);
    }
    let stored = ports.ledger.action(&Namespace::default_ns(), &action_id("r2")).await.unwrap().expect("recorded");
    assert_eq!((stored.outcome, stored.session_id), (Some(ActionOutcome::Rejected), Some(session_id("s1"))));
    assert_eq!(refused(&ports.accept(tool_result("r3", "none", None)).await), Code::NoOpenOperation);
    assert_eq!(ports.row(&key("s1")).await.work_seq, 2, "refusals take no number");
}

async fn a_batch_of_results_is_judged_in_order(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1"), operation("o2", "s1")]).await;
    let batch = vec![
        tool_result("r1", "o1", None),
        tool_result("r2", "o1", None),
        input("i1", "s1"),
        tool_result("r3", "o2", Some("s1")),
        tool_result("r1", "o1", None),
    ];
    let verdicts = ports.ledger.accept(batch).await.expect("verdicts");
    assert_eq!(accepted(&verdicts[0]).session_seq, 2);
    assert_eq!(refused(&verdicts[1]), Code::NoOpenOperation);
    assert_eq!((accepted(&verdicts[2]).session_seq, accepted(&verdicts[3]).session_seq), (3, 4));
    assert!(matches!(verdicts[4], Verdict::Repeated(_)));
    // Of many at once, one is the result.
    ports.dispatch(&owner, "s1", vec![operation("o3", "s1")]).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let ports = ports.clone();
        tasks.spawn(async move { ports.accept(tool_result(&format!("race{n}"), "o3", None)).await });
    }
    let verdicts = tasks.join_all().await;
    let first = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Accepted(_))).count();
    assert_eq!(first, 1, "{verdicts:?}");
}

async fn work_of_an_ended_session_is_cancelled(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1"), operation("o2", "s1")]).await;
    let last = with_head(ports.saying(&owner, "s1", Default::default()).await, |head| {
        head.status = SessionStatus::Stopped;
    });
    ports.commit_one(&owner, last).await;
    assert_eq!(ports.work_state("o1").await, OperationState::Pending, "the commit leaves its operations alone");
    // Whoever brings a result that nobody will ever want ends the work.
    assert_eq!(refused(&ports.accept(tool_result("r1", "o1", Some("s1"))).await), Code::SessionEnded);
    assert_eq!(ports.work_state("o1").await, OperationState::Cancelled);
    let ended = settled(OperationState::Completed, tool_result("r2", "o2", Some("s1")));
    let ending = ports.operations.end(&Namespace::default_ns(), &operation_id("o2"), None, ended).await.unwrap();
    let Ending::Settled(verdict) = ending else { panic!("it was open") };
    assert_eq!(refused(&verdict), Code::SessionEnded);
    assert_eq!(ports.work_state("o2").await, OperationState::Cancelled);
    assert!(claim(ports, "me", 9).await.is_empty());
}

/// Its turns wait for them after a resume, and nobody would bring them again.
async fn a_session_that_failed_is_kept_its_results(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1"), operation("o2", "s1")]).await;
    let failed = with_head(ports.saying(&owner, "s1", Default::default()).await, |head| {
        head.status = SessionStatus::Error;
    });
    ports.commit_one(&owner, failed).await;
    let ended = settled(OperationState::Failed, tool_result("r1", "o1", Some("s1")));
    let ending = ports.operations.end(&Namespace::default_ns(), &operation_id("o1"), None, ended).await.unwrap();
    assert!(matches!(ending, Ending::Settled(Verdict::Accepted(_))), "{ending:?}");
    accepted(&ports.accept(tool_result("r2", "o2", None)).await);
    let states = [ports.work_state("o1").await, ports.work_state("o2").await];
    assert_eq!(states, [OperationState::Failed, OperationState::Completed]);
    assert_eq!(refused(&ports.accept(tool_result("r3", "none", Some("s1"))).await), Code::SessionEnded);
    let pending = ports.ledger.pending(&key("s1"), Lane::Work, 1, 10).await.unwrap();
    assert_eq!(pending.actions.iter().map(|one| one.action_id.as_str()).collect::<Vec<_>>(), ["r1", "r2"]);
}

async fn approvals_expire(ports: &Ports) {
    let owner = with_session(ports).await;
    accepted(&ports.accept(in_namespace("other", create_in("a1", "s1", "agent", "c1"))).await);
    let expired = async |limit| ports.operations.expired_approvals(limit).await.expect("a read");
    ports.dispatch(&owner, "s1", vec![approval("late", "s1", 2), operation("task", "s1")]).await;
    ports.dispatch(&owner, "s1", vec![approval("answered", "s1", 1), approval("early", "s1", 0)]).await;
    ports.dispatch(&owner, "s1", vec![approval("waiting", "s1", 3_600_000)]).await;
    let waiting = ports.work("waiting").await.operation;
    assert_eq!(waiting.until_ms, Some(waiting.created_at_ms + 3_600_000));
    accepted(&ports.accept(tool_result("r1", "answered", None)).await);
    ports.pass(MOMENT_MS).await;
    let found = expired(9).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.is_sorted_by_key(|row| row.operation.until_ms), "oldest first");
    assert_eq!(ids(&found).into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["early", "late"]));
    assert_eq!(expired(1).await, found[..1]);
    let ended = settled(OperationState::Completed, tool_result("r2", "late", None));
    ports.operations.end(&Namespace::default_ns(), &operation_id("late"), None, ended).await.expect("a write");
    assert_eq!(ids(&expired(9).await), ["early"]);
}

async fn work_of_others_is_untaken_after_its_wait(ports: &Ports) {
    let owner = with_session(ports).await;
    let theirs = |id: &str, wait_ms| Operation {
        pool: "default:python".to_owned(),
        timeout_ms: 1,
        wait_ms: Some(wait_ms),
        ..operation(id, "s1")
    };
    let untaken = async |limit| ports.operations.untaken(limit).await.expect("a read");
    let ours = Operation { timeout_ms: 1, ..operation("o-ours", "s1") };
    ports.dispatch(&owner, "s1", vec![theirs("late", 2), theirs("early", 1), theirs("waits", 3_600_000), ours]).await;
    ports.dispatch(&owner, "s1", vec![theirs("ended", 1), theirs("held", 1), theirs("most", u64::MAX)]).await;
    accepted(&ports.accept(tool_result("r1", "ended", None)).await);
    let hold = async |hold| ports.operations.claim("default:python", "external:w", hold, 9).await.expect("a claim");
    ports.pass(MOMENT_MS).await;
    let found = untaken(9).await;
    assert!(found.is_sorted_by_key(|row| domain::talk::deadline(&row.operation)), "oldest first: {found:?}");
    assert_eq!(ids(&found).into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["early", "held", "late"]));
    assert_eq!(untaken(1).await, found[..1]);
    // Whoever takes it in time has it; when they are not heard of, the wait begins again.
    assert_eq!(hold(Hold::Extended(ports.while_ms())).await.len(), 5);
    assert!(untaken(9).await.is_empty(), "somebody has them");
    ports.pass(2 * ports.while_ms()).await;
    assert_eq!(ids(&untaken(9).await).into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["early", "held", "late"]));
    let ended = settled(OperationState::Failed, tool_result("r2", "late", None));
    ports.operations.end(&Namespace::default_ns(), &operation_id("late"), None, ended).await.expect("a write");
    assert!(!ids(&untaken(9).await).contains(&"late"));
}

async fn agents_are_overdue_after_their_time(ports: &Ports) {
    let owner = with_session(ports).await;
    let called = |id: &str, timeout_ms| Operation {
        kind: OperationKind::Agent,
        pool: String::new(),
        timeout_ms,
        ..operation(id, "s1")
    };
    let overdue = async |limit| ports.operations.overdue(limit).await.expect("a read");
    let (untimed, task) = (called("untimed", 0), Operation { timeout_ms: 1, ..operation("task", "s1") });
    ports.dispatch(&owner, "s1", vec![called("late", 2), approval("asked", "s1", 1), untimed, task]).await;
    ports.dispatch(&owner, "s1", vec![called("answered", 1), called("early", 1), called("waits", 3_600_000)]).await;
    let waiting = ports.work("waits").await.operation;
    assert_eq!(waiting.until_ms, Some(waiting.created_at_ms + 3_600_000));
    accepted(&ports.accept(tool_result("r1", "answered", None)).await);
    ports.pass(MOMENT_MS).await;
    let found = overdue(9).await;
    assert!(found.is_sorted_by_key(|row| domain::talk::deadline(&row.operation)), "oldest first: {found:?}");
    assert_eq!(ids(&found).into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["early", "late"]));
    assert_eq!(overdue(1).await, found[..1]);
    let ended = settled(OperationState::Failed, tool_result("r2", "late", None));
    ports.operations.end(&Namespace::default_ns(), &operation_id("late"), None, ended).await.expect("a write");
    assert_eq!(ids(&overdue(9).await), ["early"]);
}

async fn lists_are_filtered_and_paged(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.talker("s2", "c2").await;
    let mut first = operation("o3", "s1");
    first.turn_id = turn_id("t2");
    ports.dispatch(&owner, "s1", vec![first, operation("o1", "s1"), approval("o2", "s1", 1)]).await;
    ports.pass(MOMENT_MS).await;
    let elsewhere = Operation { conversation_id: conversation_id("c2"), ..operation("o0", "s2") };
    ports.dispatch(&owner, "s2", vec![elsewhere]).await;
    accepted(&ports.accept(tool_result("r1", "o1", None)).await);
    let list = async |query: OperationQuery| {
        let rows = ports.operations.operations(&query).await.expect("a list");
        rows.into_iter().map(|row| row.operation.operation_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list(operation_query()).await, ["o1", "o2", "o3", "o0"], "by time, then id");
    let of = |text| OperationQuery { conversation_id: Some(conversation_id(text)), ..operation_query() };
    assert_eq!(list(of("c1")).await, ["o1", "o2", "o3"]);
    assert_eq!(list(of("c2")).await, ["o0"]);
    let turn = OperationQuery { turn_id: Some(turn_id("t2")), ..operation_query() };
    assert_eq!(list(turn.clone()).await, ["o3"]);
    assert!(list(OperationQuery { conversation_id: Some(conversation_id("c2")), ..turn }).await.is_empty());
    let kind = OperationQuery { kind: Some(OperationKind::Approval), ..operation_query() };
    assert_eq!(list(kind).await, ["o2"]);
    let state = OperationQuery { state: Some(OperationState::Completed), ..of("c1") };
    assert_eq!(list(state).await, ["o1"]);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let query = OperationQuery { after: after.clone(), limit: 1, ..operation_query() };
        let rows = ports.operations.operations(&query).await.expect("a page");
        let Some(row) = rows.into_iter().next() else { break };
        after = Some((row.operation.created_at_ms, row.operation.operation_id.clone()));
        seen.push(row.operation.operation_id.to_string());
    }
    assert_eq!(seen, ["o1", "o2", "o3", "o0"]);
}

async fn nothing_crosses_a_namespace(ports: &Ports) {
    let owner = with_session(ports).await;
    ports.dispatch(&owner, "s1", vec![operation("o1", "s1")]).await;
    let other = namespace("other");
    let elsewhere = OperationQuery { namespace: other.clone(), ..operation_query() };
    assert!(ports.operations.operations(&elsewhere).await.unwrap().is_empty());
    assert!(ports.operations.operation(&other, &operation_id("o1")).await.unwrap().is_none());
    assert!(!ports.operations.extend(&other, &operation_id("o1"), "me", 1).await.unwrap());
    let again = Ended::Again { after_ms: 0, error: "no".to_owned(), lost: true };
    let ending = ports.operations.end(&other, &operation_id("o1"), None, again).await.unwrap();
    assert!(matches!(ending, Ending::NotOpen));
    let result = in_namespace("other", tool_result("r1", "o1", None));
    let ending = ports.operations.end(&other, &operation_id("o1"), None, settled(OperationState::Failed, result)).await;
    assert!(matches!(ending.unwrap(), Ending::NotOpen));
    assert_eq!(ports.work_state("o1").await, OperationState::Pending);
    let claimed = claim(ports, "me", 9).await;
    assert_eq!(claimed[0].namespace, Namespace::default_ns());
}
