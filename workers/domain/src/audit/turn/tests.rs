//! Turns and what they wait for, in every standing there is.

use proptest::prelude::*;
use schemas::conversation::ApprovalRequest;
use schemas::json::Json;
use serde_json::json;

use super::*;

const NOW: i64 = 1_000_000_000;

fn turn(phase: TurnPhase, created_at_ms: i64) -> Turn {
    let turn = json!({
        "turn_id": "t1", "conversation_id": "c1", "session_id": "s1", "agent_id": "a1",
        "caller": {"type": "user", "user_id": "ana"}, "input_message_id": "m1", "trigger_type": "user_message",
        "status": "active", "phase": phase, "created_at_ms": created_at_ms,
    });
    serde_json::from_value(turn).expect("a turn")
}

fn head(status: SessionStatus, cause: Cause, wake_at_ms: Option<i64>) -> Head {
    Head { status, cause, wake_at_ms, ..Head::starting(0) }
}

fn running(cause: Cause) -> Head {
    head(SessionStatus::Running, cause, None)
}

fn operation(kind: OperationKind, state: OperationState) -> Operation {
    let request = Json::of(&json!({"session_id": "child"}));
    Operation { kind, request, created_at_ms: NOW, due_at_ms: NOW, ..crate::talk::tests::operation(state) }
}

fn open(kind: OperationKind) -> Operation {
    operation(kind, OperationState::Pending)
}

fn child_id() -> SessionId {
    SessionId::parse("child").expect("an id")
}

fn with_child(operation: &Operation, head: &Head, has_pending: bool) -> WorkFinding {
    judge_work(operation, Child::There { id: &child_id(), head, has_pending }, true, NOW)
}

fn error_of(finding: WorkFinding) -> ToolError {
    match finding {
        WorkFinding::Stuck { outcome: Err(error), .. } => error,
        other => panic!("it is stuck: {other:?}"),
    }
}

const PHASES: [TurnPhase; 8] = [
    TurnPhase::Queued,
    TurnPhase::Assembling,
    TurnPhase::Thinking,
    TurnPhase::WaitingTool,
    TurnPhase::WaitingAgent,
    TurnPhase::WaitingAsync,
    TurnPhase::WaitingApproval,
    TurnPhase::Responding,
];

#[test]
fn a_turn_moves_with_its_session() {
    for phase in PHASES {
        let turn = turn(phase, 0);
        for cause in [Cause::Input, Cause::Operation] {
            let asleep = judge_turn(&turn, Some(&running(cause.clone())), false);
            let expected = match phase {
                TurnPhase::Queued => TurnFinding::Fine,
                _ if phase.is_waiting() => TurnFinding::Waits,
                _ => TurnFinding::Asleep,
            };
            assert_eq!(asleep, expected, "{phase:?} {cause:?}");
            assert_eq!(judge_turn(&turn, Some(&running(cause.clone())), true), TurnFinding::Fine, "something comes");
            let limited = head(SessionStatus::Running, cause, Some(NOW));
            let expected = if phase.is_waiting() { TurnFinding::Waits } else { TurnFinding::Fine };
            assert_eq!(judge_turn(&turn, Some(&limited), false), expected, "a limit is no cause to wait in vain");
        }
        for status in SessionStatus::ALL {
            let head = head(status, Cause::Runnable, None);
            let finding = judge_turn(&turn, Some(&head), false);
            match status {
                SessionStatus::Stopped | SessionStatus::Completed => assert_eq!(finding, TurnFinding::Abandoned),
                SessionStatus::Running if phase.is_waiting() => assert_eq!(finding, TurnFinding::Waits),
                _ => assert_eq!(finding, TurnFinding::Fine, "its head tells: {status:?}"),
            }
        }
        assert_eq!(judge_turn(&turn, None, true), TurnFinding::Abandoned);
    }
}

#[test]
fn only_what_waits_or_takes_long_is_looked_at() {
    for phase in PHASES {
        assert_eq!(is_suspect(&turn(phase, NOW - OVERDUE_MS), NOW), phase.is_waiting(), "{phase:?}");
        assert!(is_suspect(&turn(phase, NOW - OVERDUE_MS - 1), NOW), "{phase:?}");
    }
}

#[test]
fn who_waits_for_nothing_is_forgotten_unless_others_are_worked_on() {
    assert!(is_forgotten(&running(Cause::Operation), false) && is_forgotten(&running(Cause::Input), false));
    assert!(!is_forgotten(&running(Cause::Operation), true), "one question serves several turns");
    assert!(!is_forgotten(&running(Cause::Runnable), false), "a step may be about to say more");
    assert!(!is_forgotten(&head(SessionStatus::Paused, Cause::Input, None), false));
}

#[test]
fn a_call_ends_once_its_session_cannot_answer() {
    let call = open(OperationKind::Agent);
    assert_eq!(child_of(&call), Some(child_id()));
    assert_eq!(child_of(&open(OperationKind::Task)), None);
    let missing = error_of(judge_work(&call, Child::Missing(&child_id()), true, NOW));
    assert!(missing.retriable && missing.message.contains("child does not exist"), "{}", missing.message);
    for status in [SessionStatus::Stopped, SessionStatus::Completed] {
        let error = error_of(with_child(&call, &head(status, Cause::Ended, None), true));
        assert!(!error.retriable && error.message.contains(status.as_str()), "{}", error.message);
        assert_eq!(error.code, ToolErrorCode::ExecutionFailed);
    }
    assert!(error_of(with_child(&call, &running(Cause::Input), false)).message.contains("waits for input"));
    // It may still answer.
    for (head, has_pending) in [
        (running(Cause::Input), true),
        (head(SessionStatus::Running, Cause::Input, Some(NOW)), false),
        (running(Cause::Operation), false),
        (head(SessionStatus::Starting, Cause::Runnable, None), false),
        (head(SessionStatus::Paused, Cause::Paused { by: "ana".into(), reason: None }, None), false),
        (head(SessionStatus::Error, Cause::Ended, None), false),
        (head(SessionStatus::Stopping, Cause::Runnable, None), false),
    ] {
        assert_eq!(with_child(&call, &head, has_pending), WorkFinding::Fine, "{head:?}");
    }
    assert_eq!(judge_work(&call, Child::None, true, NOW), WorkFinding::Fine, "it has a deadline");
}

#[test]
fn what_has_no_time_gets_the_usual_one() {
    let asked = ApprovalRequest { arguments_hash: "00".into(), expires_ms: 5_000, default_approve: true };
    let theirs = Operation { pool: "default:python".into(), ..open(OperationKind::Task) };
    let begun = Operation { state: OperationState::Running, ..theirs.clone() };
    let hour = i64::try_from(TASK_UNTAKEN_S_DEFAULT * 1_000).unwrap();
    let day = i64::try_from(AGENT_MS_DEFAULT).unwrap();
    for (operation, ms) in [
        (Operation { approval: Some(asked), ..open(OperationKind::Approval) }, 5_000),
        (open(OperationKind::Approval), i64::try_from(APPROVAL_S_MAX * 1_000).unwrap()),
        (Operation { timeout_ms: 0, ..open(OperationKind::Agent) }, day),
        (Operation { timeout_ms: 7_000, ..open(OperationKind::Agent) }, 7_000),
        (theirs, hour),
        (begun, hour),
    ] {
        let at = |now_ms| judge_work(&operation, Child::None, true, now_ms);
        assert_eq!(at(NOW + ms + OVERDUE_MS), WorkFinding::Fine, "{operation:?}");
        let WorkFinding::Stuck { outcome, .. } = at(NOW + ms + OVERDUE_MS + 1) else { panic!("{operation:?}") };
        match outcome {
            Ok(answer) => assert_eq!(answer["approved"], operation.approval.is_some(), "{answer}"),
            Err(error) => {
                assert_eq!(error.code, ToolErrorCode::Timeout);
                assert!(!error.message.contains("within 0 s"), "{}", error.message);
            }
        }
    }
}

#[test]
fn a_deadline_that_nobody_keeps_is_kept() {
    let mut call = open(OperationKind::Agent);
    call.until_ms = Some(NOW);
    assert_eq!(judge_work(&call, Child::None, true, NOW + OVERDUE_MS), WorkFinding::Fine, "executors come first");
    assert_eq!(error_of(judge_work(&call, Child::None, true, NOW + OVERDUE_MS + 1)).code, ToolErrorCode::Timeout);
}

#[test]
fn work_without_an_executor_is_told_apart_from_work_that_is_late() {
    let ours = open(OperationKind::Task);
    let held = operation(OperationKind::Task, OperationState::Running);
    let theirs = Operation { pool: "default:python".into(), ..ours.clone() };
    for operation in [&ours, &held] {
        let at = |has_executor, after_ms| judge_work(operation, Child::None, has_executor, NOW + after_ms);
        assert_eq!(at(false, UNTAKEN_MS), WorkFinding::Fine);
        assert_eq!(at(false, UNTAKEN_MS + 1), WorkFinding::WithoutExecutor);
        assert_eq!((at(true, UNTAKEN_MS + 1), at(true, OVERDUE_MS + 1)), (WorkFinding::Fine, WorkFinding::Late));
    }
    assert_eq!(judge_work(&theirs, Child::None, false, NOW + OVERDUE_MS), WorkFinding::Fine, "somebody else's workers");
}

proptest! {
    /// Whatever its kind, its times and its session: an open operation of anybody but the fleet's executors ends
    /// some day, and what has ended is left alone.
    #[test]
    fn nothing_waits_for_ever(
        kind in prop::sample::select(vec![OperationKind::Task, OperationKind::Agent, OperationKind::Approval]),
        state in prop::sample::select(vec![
            OperationState::Pending,
            OperationState::Running,
            OperationState::Completed,
            OperationState::Failed,
            OperationState::Cancelled,
        ]),
        until in prop::option::of(0..NOW),
        wait_ms in prop::option::of(0..1_000_000_u64),
        timeout_ms in 0..1_000_000_u64,
        has_executor: bool,
        has_pending: bool,
    ) {
        let pool = "default:python".to_owned();
        let one = Operation { pool, wait_ms, timeout_ms, until_ms: until, ..operation(kind, state) };
        let alive = running(Cause::Operation);
        let id = child_id();
        let child = Child::There { id: &id, head: &alive, has_pending };
        let finding = judge_work(&one, child, has_executor, i64::MAX);
        let is_ended = matches!(finding, WorkFinding::Stuck { .. });
        prop_assert_eq!(is_ended, state.is_open(), "{:?}", finding);
    }
}
