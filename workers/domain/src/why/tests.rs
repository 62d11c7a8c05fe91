//! Each standing of a session, and the chain it must yield.

use schemas::action::Urgency;
use schemas::api::WhyLink;
use schemas::conversation::{OperationKind, OperationState};
use schemas::frame::StepToken;
use schemas::id::{ActionId, AgentId, Namespace, SessionId, SessionKey, Shard};
use schemas::json::Json;
use schemas::session::{Head, SessionSpec, StopReason};

use super::*;
use crate::effect::{EffectClass, EffectState};

const NOW: i64 = 1_000_000;

fn row(status: SessionStatus, cause: Cause, wake_at_ms: Option<i64>) -> SessionRow {
    let key = SessionKey::new(Namespace::default_ns(), SessionId::parse("s1").unwrap());
    SessionRow {
        key,
        agent_id: AgentId::parse("a1").unwrap(),
        shard: Shard(7),
        spec: SessionSpec {
            moniker: "count".into(),
            task: None,
            config: Json::null(),
            stop_on_done: true,
            max_steps: None,
            max_runtime_ms: None,
            loop_interval_ms: 0,
            conversation_id: None,
            parent: None,
        },
        head: Head {
            status,
            cause,
            wake_at_ms,
            steps: 3,
            next_step_token: StepToken::parse("n/3").unwrap(),
            ..Head::starting(NOW - 1_000)
        },
        created_at_ms: NOW - 60_000,
        control_seq: 0,
        work_seq: 1,
    }
}

fn action(kind: ActionType, accepted_at_ms: i64) -> Action {
    Action {
        namespace: Namespace::default_ns(),
        action_id: ActionId::parse("act1").unwrap(),
        kind,
        session_id: SessionId::parse("s1").unwrap(),
        agent_id: AgentId::parse("a1").unwrap(),
        conversation_id: None,
        shard: Shard(7),
        session_seq: 1,
        urgency: Urgency::Normal,
        actor: "ana".into(),
        payload: Json::null(),
        metadata: Json::null(),
        accepted_at_ms,
        opens: None,
    }
}

fn owned() -> Option<ShardFacts> {
    Some(ShardFacts { owner: Some("w1".into()), lease_ms_left: 5_000 })
}

fn facts(row: &SessionRow) -> Facts<'_> {
    Facts {
        row,
        control: &[],
        work: &[],
        pending: 0,
        effects: &[],
        operations: &[],
        shard: owned(),
        has_executor: true,
        takes_input: true,
        now_ms: NOW,
    }
}

fn whats(body: &WhyBody) -> Vec<&str> {
    body.chain.iter().map(|link| link.what.as_str()).collect()
}

#[test]
fn paused_names_who_and_why_and_what_waits() {
    let cause = Cause::Paused { by: "ana".into(), reason: Some("deploy".into()) };
    let row = row(SessionStatus::Paused, cause, None);
    let work = [action(ActionType::Input, NOW - 500)];
    let body = explain(&Facts { work: &work, pending: 1, ..facts(&row) });
    assert_eq!(body.summary, "It is paused by ana: deploy.");
    assert_eq!(whats(&body), ["paused", "pending"]);
    assert_eq!(body.remedy.as_deref(), Some("Resume it."));
}

#[test]
fn paused_with_a_resume_under_way_waits_for_the_shard() {
    let row = row(SessionStatus::Paused, Cause::Paused { by: "ana".into(), reason: None }, None);
    let control = [action(ActionType::Resume, NOW - 500)];
    let shard = Some(ShardFacts { owner: Some("w1".into()), lease_ms_left: -1 });
    let body = explain(&Facts { control: &control, pending: 1, shard, ..facts(&row) });
    assert_eq!(whats(&body), ["paused", "action", "shard"]);
    assert!(body.chain[2].detail.contains("lease of worker w1 has ended"));
    assert!(body.remedy.is_some_and(|remedy| remedy.contains("Start a worker")));
}

#[test]
fn waiting_for_input_says_so_and_what_to_send() {
    let row = row(SessionStatus::Running, Cause::Input, None);
    let body = explain(&facts(&row));
    assert_eq!((body.summary.as_str(), whats(&body)), ("It waits for input.", vec!["input"]));
    assert_eq!(body.remedy.as_deref(), Some("Send it an input action."));
    let body = explain(&Facts { takes_input: false, ..facts(&row) });
    assert_eq!(body.remedy.as_deref(), Some("Interrupt it with guidance."));
}

#[test]
fn pending_input_is_the_cause_once_it_is_accepted() {
    let row = row(SessionStatus::Running, Cause::Input, None);
    let work = [action(ActionType::Input, NOW - SLOW_MS - 1)];
    let body = explain(&Facts { work: &work, pending: 1, ..facts(&row) });
    assert_eq!(whats(&body), ["action", "shard"]);
    assert!(body.remedy.is_some_and(|remedy| remedy.contains("w1 is late")));
}

#[test]
fn a_timer_has_its_end() {
    let row = row(SessionStatus::Running, Cause::Timer, Some(NOW + 3_000));
    let body = explain(&facts(&row));
    assert_eq!(whats(&body), ["timer"]);
    assert_eq!(body.chain[0].until, Some(rfc3339(NOW + 3_000)));
    assert_eq!(body.remedy, None);
}

#[test]
fn a_timer_that_is_over_is_a_step_to_run() {
    let row = row(SessionStatus::Running, Cause::Timer, Some(NOW));
    assert_eq!(whats(&explain(&facts(&row))), ["step", "shard"]);
}

#[test]
fn runnable_without_an_owner_blames_the_shard() {
    let row = row(SessionStatus::Running, Cause::Runnable, Some(NOW - 100));
    let shard = Some(ShardFacts { owner: None, lease_ms_left: 0 });
    let body = explain(&Facts { shard, ..facts(&row) });
    assert!(body.summary.contains("no worker owns its shard"), "{}", body.summary);
    assert_eq!(body.chain.last().unwrap().detail, "shard 7 has no owner");
}

#[test]
fn a_long_step_shows_its_open_effect() {
    let mut row = row(SessionStatus::Running, Cause::Runnable, Some(NOW - 60_000));
    row.head.updated_at_ms = NOW - 60_000;
    let class = EffectClass::AtMostOnce;
    let open = EffectRow { key: "k".into(), class, state: EffectState::Sent, what: "http https://x".into() };
    let done = EffectRow { state: EffectState::Settled, ..open.clone() };
    let body = explain(&Facts { effects: &[done, open], ..facts(&row) });
    assert_eq!(whats(&body), ["step", "effect", "shard"]);
    assert!(body.summary.contains("60 s"), "{}", body.summary);
    assert!(body.remedy.is_some_and(|remedy| remedy.contains("destroy")));
}

#[test]
fn a_pause_under_way_is_named() {
    let row = row(SessionStatus::Running, Cause::Runnable, Some(NOW - 100));
    let control = [action(ActionType::Pause, NOW - 50)];
    let body = explain(&Facts { control: &control, pending: 1, ..facts(&row) });
    assert_eq!(whats(&body), ["step", "shard", "action"]);
}

#[test]
fn starting_waits_for_its_create() {
    let row = row(SessionStatus::Starting, Cause::Runnable, None);
    let work = [action(ActionType::Create, NOW - 50)];
    let body = explain(&Facts { work: &work, pending: 1, ..facts(&row) });
    assert_eq!(whats(&body), ["action", "shard"]);
    assert!(body.chain[0].detail.contains("create act1 by ana"));
    assert_eq!(explain(&facts(&row)).remedy.as_deref(), Some("Ask again."));
}

#[test]
fn error_keeps_the_last_error_and_a_remedy() {
    let mut row = row(SessionStatus::Error, Cause::Ended, None);
    row.head.last_error = Some("no model provider is configured".into());
    let body = explain(&facts(&row));
    assert_eq!(whats(&body), ["error"]);
    assert!(body.summary.contains("no model provider"));
    assert!(body.remedy.is_some_and(|remedy| remedy.contains("resume")));
}

#[test]
fn ended_says_how() {
    for (reason, words) in [(StopReason::Done, "was done"), (StopReason::MaxSteps, "max_steps")] {
        let mut row = row(SessionStatus::Completed, Cause::Ended, None);
        row.head.stop_reason = Some(reason);
        let body = explain(&facts(&row));
        assert!(body.summary.contains(words), "{}", body.summary);
        assert_eq!(whats(&body), ["ended"]);
    }
}

#[test]
fn stopping_and_operation_have_their_ends() {
    let row_stopping = row(SessionStatus::Stopping, Cause::Runnable, Some(NOW));
    assert!(explain(&facts(&row_stopping)).chain[0].until.is_some());
    let row_waiting = row(SessionStatus::Running, Cause::Operation, Some(NOW + 9));
    let body = explain(&facts(&row_waiting));
    assert_eq!((whats(&body), body.chain[1].until.clone()), (vec!["operation", "limit"], Some(rfc3339(NOW + 9))));
}

#[test]
fn an_operation_says_whom_it_waits_for_and_until_when() {
    let row = row(SessionStatus::Running, Cause::Operation, None);
    let of = |change: fn(&mut Operation)| {
        let mut operation = crate::talk::tests::operation(OperationState::Pending);
        operation.created_at_ms = NOW - 50;
        operation.due_at_ms = NOW - 50;
        change(&mut operation);
        let body = explain(&Facts { operations: &[operation], ..facts(&row) });
        assert_eq!(whats(&body), ["operation"]);
        (body.chain[0].detail.clone(), body.chain[0].until.clone(), body.remedy.unwrap_or_default())
    };
    let (detail, until, remedy) = of(|one| {
        one.pool = "default:python".into();
        one.wait_ms = Some(1_050);
    });
    assert!(detail.contains("a worker of pool python") && detail.contains("TIMEOUT"), "{detail}");
    assert_eq!(until, Some(rfc3339(NOW + 1_000)));
    assert!(remedy.contains("/api/pools/python/claim"), "{remedy}");
    let (detail, until, _) = of(|one| {
        one.state = OperationState::Running;
        one.claimed_by = Some("w7".into());
        one.until_ms = Some(NOW + 8);
    });
    assert!(detail.contains("w7") && until == Some(rfc3339(NOW + 8)), "{detail}");
    let (detail, until, remedy) = of(|one| {
        one.kind = OperationKind::Approval;
        one.until_ms = Some(NOW + 9);
    });
    assert!(remedy.starts_with("Answer it: `stepfleet approvals "), "{remedy}");
    assert!(detail.contains("a person") && until == Some(rfc3339(NOW + 9)), "{detail}");
    let (detail, until, _) = of(|one| {
        one.kind = OperationKind::Agent;
        one.until_ms = Some(NOW + 10);
    });
    assert!(detail.contains("TIMEOUT") && until == Some(rfc3339(NOW + 10)), "{detail}");
    assert_eq!(of(|_| ()).1, None, "the fleet's own executors take it");
}

#[test]
fn work_that_nobody_runs_says_so() {
    let row = row(SessionStatus::Running, Cause::Operation, None);
    let at = |due_at_ms, has_executor, pool: &str| {
        let pool = pool.to_owned();
        let waits = Operation { due_at_ms, pool, ..crate::talk::tests::operation(OperationState::Pending) };
        explain(&Facts { operations: &[waits], has_executor, ..facts(&row) })
    };
    let body = at(NOW - SLOW_MS - 1, false, "default");
    assert_eq!(whats(&body), ["executor"]);
    assert!(body.chain[0].detail.contains("no worker is known"), "{}", body.chain[0].detail);
    assert_eq!(body.remedy.as_deref(), Some("Start a worker with the role executor."));
    for other in [
        at(NOW - SLOW_MS, false, "default"),
        at(NOW - SLOW_MS - 1, true, "default"),
        at(NOW - SLOW_MS - 1, false, "default:python"),
    ] {
        assert_eq!(whats(&other), ["operation"]);
    }
}

/// A session that waits for others, and the calls by which it does.
fn caller(id: &str, calls: &[&str]) -> (SessionRow, Vec<Operation>) {
    let mut row = row(SessionStatus::Running, Cause::Operation, None);
    row.key.session_id = SessionId::parse(id).unwrap();
    let call = |child: &&str| Operation {
        kind: OperationKind::Agent,
        request: Json::of(&serde_json::json!({"session_id": child})),
        ..crate::talk::tests::operation(OperationState::Pending)
    };
    (row, calls.iter().map(call).collect())
}

/// The chain through sessions that stand like this; others do not exist.
fn descend(sessions: &[(SessionRow, Vec<Operation>)]) -> (WhyBody, usize) {
    let (row, operations) = &sessions[0];
    let mut descent = Descent::new(&Facts { operations, ..facts(row) });
    let mut looks = 0;
    while let Some(id) = descent.below() {
        looks += 1;
        match sessions.iter().find(|(row, _)| row.key.session_id == id) {
            Some((row, operations)) => descent.meets(&Facts { operations, ..facts(row) }),
            None => descent.misses(),
        }
    }
    (descent.finish(), looks)
}

fn told(body: &WhyBody) -> Vec<String> {
    let of = |link: &WhyLink| link.session_id.as_ref().map_or("-".to_owned(), ToString::to_string);
    body.chain.iter().map(|link| format!("{} {}", of(link), link.what)).collect()
}

#[test]
fn the_chain_goes_down_to_the_last_session() {
    let mut last = caller("s3", &[]);
    last.0.head.cause = Cause::Input;
    let (body, looks) = descend(&[caller("s1", &["s2"]), caller("s2", &["s3"]), last]);
    assert_eq!(told(&body), ["- operation", "s2 session", "s2 operation", "s3 session", "s3 input"]);
    assert_eq!(looks, 2);
    assert!(body.summary.ends_with("Session s3 is at the end of the chain: It waits for input."), "{}", body.summary);
    assert_eq!(body.remedy.as_deref(), Some("Of session s3: Send it an input action."));
    assert!(body.chain[0].detail.contains("session s2"), "{}", body.chain[0].detail);
}

#[test]
fn the_deepest_of_several_is_the_end_and_each_is_told_once() {
    let mut paused = caller("s4", &[]);
    paused.0.head.status = SessionStatus::Paused;
    paused.0.head.cause = Cause::Paused { by: "ana".into(), reason: None };
    let (body, looks) = descend(&[caller("s1", &["s2", "s3"]), caller("s3", &["s4", "s2"]), paused]);
    let expected = [
        "- operation",
        "- operation",
        "s2 session",
        "s3 session",
        "s3 operation",
        "s3 operation",
        "s4 session",
        "s4 paused",
    ];
    assert_eq!(told(&body), expected);
    assert_eq!(looks, 3);
    assert!(body.chain[2].detail.contains("does not exist"), "{}", body.chain[2].detail);
    assert_eq!(body.remedy.as_deref(), Some("Of session s4: Resume it."));
}

#[test]
fn a_cycle_is_told_and_ends() {
    let (body, looks) = descend(&[caller("s1", &["s2"]), caller("s2", &["s1"])]);
    assert_eq!(told(&body), ["- operation", "s2 session", "s2 operation", "s2 cycle"]);
    assert_eq!(looks, 1);
    let (body, looks) = descend(&[caller("s1", &["s1"])]);
    assert_eq!((told(&body).last().map(String::as_str), looks), (Some("s1 cycle"), 0));
}

#[test]
fn a_session_that_has_ended_owes_its_answer() {
    let mut ended = caller("s2", &[]);
    ended.0.head.status = SessionStatus::Completed;
    ended.0.head.cause = Cause::Ended;
    let (body, _) = descend(&[caller("s1", &["s2"]), ended]);
    assert_eq!(told(&body), ["- operation", "s2 session", "s2 answer"]);
    assert_eq!(body.remedy, None, "an ended session is no reason to create another one");
}

#[test]
fn no_chain_is_endless() {
    let ids: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
    let deep: Vec<_> = (0..39).map(|n| caller(&ids[n], &[&ids[n + 1]])).collect();
    let (body, looks) = descend(&deep);
    assert!(looks < 20 && told(&body).last().is_some_and(|last| last == "- more"), "{:?}", told(&body));
    let names: Vec<&str> = ids[1..].iter().map(String::as_str).collect();
    let (body, looks) = descend(&[caller("s0", &names)]);
    assert_eq!(looks, 32);
    assert!(body.chain.last().is_some_and(|last| last.detail.starts_with("7 more")), "{:?}", body.chain.last());
}

#[test]
fn every_standing_has_a_summary_and_a_link() {
    let causes = [
        Cause::Runnable,
        Cause::Timer,
        Cause::Input,
        Cause::Operation,
        Cause::Paused { by: "x".into(), reason: None },
        Cause::Ended,
    ];
    for status in SessionStatus::ALL {
        for cause in &causes {
            for shard in [None, owned(), Some(ShardFacts { owner: None, lease_ms_left: 0 })] {
                let row = row(status, cause.clone(), None);
                let work = [action(ActionType::Create, NOW)];
                let body = explain(&Facts { shard: shard.clone(), work: &work, pending: 1, ..facts(&row) });
                assert!(!body.summary.is_empty(), "{status:?} {cause:?}");
                assert!(!body.chain.is_empty(), "{status:?} {cause:?}");
            }
        }
    }
}
