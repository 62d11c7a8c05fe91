//! What is done with an attempt: whether it may begin after another one of which nobody heard, and
//! what comes after it (DESIGN 5, SPEC W-ERR-01, K-41).

use schemas::conversation::{Operation, OperationState};
use schemas::definition::EffectClass;
use schemas::limits::{OPERATION_LOST_MAX, RETRY_DELAY_MS_MAX};
use serde_json::Value;

use super::action::{ActionFailure, Probe, Trouble};
use super::dispatch::ActionRequest;
use super::settle::finished;
use crate::chat::{ToolError, ToolErrorCode};
use crate::talk::later;

const DIED: &str = "whoever ran it died";

/// How a claimed operation begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    Run,
    /// Ask the target first whether it happened.
    Probe,
    /// It has ended.
    End(ToolError),
}

/// What follows an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    End(Result<Value, ToolError>),
    /// `lost`: it did not fail, it was not brought to its end.
    Again {
        after_ms: u64,
        error: String,
        lost: bool,
    },
    /// Ask the target whether it happened; [`probed`] decides with the answer.
    Probe(ActionFailure),
}

/// Decides by the operation as the claim gave it: `running` means that somebody claimed it before and
/// was not heard of again. Such a loss is no attempt of the operation's own, and the claim has counted it
/// apart; but it has a bound, too.
pub fn start(operation: &Operation) -> Start {
    if operation.state != OperationState::Running {
        return Start::Run;
    }
    if operation.attempt > operation.max_attempts.saturating_add(OPERATION_LOST_MAX) {
        return Start::End(lost_too_often(operation));
    }
    match operation.effect_class {
        EffectClass::Pure | EffectClass::Idempotent => Start::Run,
        EffectClass::Probeable => Start::Probe,
        EffectClass::AtMostOnce => Start::End(in_doubt(operation, ToolErrorCode::ExecutionFailed, DIED)),
    }
}

/// Decides when whoever runs an attempt has to stop. A repeat is somebody else's where it does no harm, and
/// as little an attempt of the operation's own as one whose executor died. Anything else is left to whoever
/// claims it when this claim has ended: `None`.
pub fn stopped(operation: &Operation) -> Option<Next> {
    if !matches!(operation.effect_class, EffectClass::Pure | EffectClass::Idempotent) {
        return None;
    }
    if operation.lost >= OPERATION_LOST_MAX && counted(operation) >= operation.max_attempts {
        return Some(Next::End(Err(lost_too_often(operation))));
    }
    Some(Next::Again { after_ms: 0, error: "its executor was stopped".to_owned(), lost: true })
}

/// Decides when somebody else's worker gives up what it has begun, and nobody here can ask its target: with
/// this it has ended. `None`: it is for whoever claims it next, as if the worker had died.
pub fn given_up(operation: &Operation) -> Option<ToolError> {
    match stopped(operation) {
        Some(Next::Again { .. }) => None,
        Some(Next::End(Err(error))) => Some(error),
        _ => Some(in_doubt(operation, ToolErrorCode::ExecutionFailed, "whoever ran it was stopped")),
    }
}

/// Starts that count as attempts, with the one that runs: losses do not, up to their bound.
fn counted(operation: &Operation) -> u32 {
    operation.attempt.saturating_sub(operation.lost.min(OPERATION_LOST_MAX))
}

/// Decides after an attempt.
pub fn next(operation: &Operation, request: &ActionRequest, outcome: Result<Value, ActionFailure>) -> Next {
    let failure = match outcome {
        Ok(answer) => return Next::End(finished(request, answer)),
        Err(failure) => failure,
    };
    let Some(trouble) = failure.trouble else { return Next::End(Err(failure.error)) };
    let may_repeat = match operation.effect_class {
        EffectClass::Pure | EffectClass::Idempotent => true,
        EffectClass::Probeable => !failure.may_have_happened,
        // What the target reports is no doubt, and how often to try is its author's word (K-41).
        EffectClass::AtMostOnce => failure.reported || !failure.may_have_happened,
    };
    if !may_repeat && operation.effect_class == EffectClass::Probeable {
        return Next::Probe(failure);
    }
    if !may_repeat {
        return Next::End(Err(in_doubt(operation, failure.error.code, &failure.error.message)));
    }
    let is_listed = request.retry_on.iter().any(|word| word == trouble.as_str());
    if !is_listed || counted(operation) >= operation.max_attempts {
        return Next::End(Err(used_up(operation, failure.error)));
    }
    again(operation, &failure)
}

/// Decides when somebody else's worker reports a failure of the infrastructure (K-37). Whether anything happened
/// before it the report does not say, so only what may be repeated is. `None`: the report is the end.
pub fn reported(operation: &Operation, error: ToolError, now_ms: i64) -> Option<Next> {
    let trouble = trouble_of(&error)?;
    let request: ActionRequest = operation.request.to().ok()?;
    let failure = ActionFailure { error, ..ActionFailure::trouble(trouble, "", true) };
    let next = next(operation, &request, Err(failure));
    let Next::Again { after_ms, .. } = &next else { return None };
    // Its wait for a worker is counted from the call, and beyond it this report would be lost.
    let waits_until_ms = operation.wait_ms.map_or(i64::MAX, |wait_ms| later(operation.created_at_ms, wait_ms));
    (later(now_ms, *after_ms) < waits_until_ms).then_some(next)
}

/// Whether another attempt may end otherwise than with this report.
pub fn is_passing(error: &ToolError) -> bool {
    trouble_of(error).is_some()
}

/// `None`: the same call would fail again.
fn trouble_of(error: &ToolError) -> Option<Trouble> {
    match error.code {
        _ if !error.retriable => None,
        ToolErrorCode::Timeout => Some(Trouble::Timeout),
        ToolErrorCode::ExecutionFailed | ToolErrorCode::InternalError => Some(Trouble::ServerError),
        _ => None,
    }
}

/// Decides with what the target said about an attempt of which nobody heard, or that broke off.
/// `failure`: how it broke off; absent if whoever ran it died.
pub fn probed(operation: &Operation, request: &ActionRequest, probe: Probe, failure: Option<ActionFailure>) -> Next {
    match (probe, failure) {
        (Probe::Happened(answer), _) => Next::End(finished(request, answer)),
        (Probe::DidNotHappen, None) => {
            // This start has not tried it either.
            Next::Again { after_ms: 0, error: "the attempt before did not reach its target".to_owned(), lost: true }
        }
        (Probe::DidNotHappen, Some(failure)) => {
            next(operation, request, Err(ActionFailure { may_have_happened: false, ..failure }))
        }
        (Probe::Unknown, failure) => {
            let died = || (ToolErrorCode::ExecutionFailed, DIED.to_owned());
            let (code, why) = failure.map_or_else(died, |failure| (failure.error.code, failure.error.message));
            Next::End(Err(in_doubt(operation, code, &format!("{why}, and its target does not know"))))
        }
    }
}

/// Waits double with each attempt; what the target asks for comes first.
fn again(operation: &Operation, failure: &ActionFailure) -> Next {
    let doublings = counted(operation).saturating_sub(1).min(20);
    let wait = operation.backoff_ms.saturating_mul(1 << doublings).max(failure.retry_after_ms.unwrap_or(0));
    Next::Again { after_ms: wait.min(RETRY_DELAY_MS_MAX), error: failure.error.message.clone(), lost: false }
}

fn used_up(operation: &Operation, mut error: ToolError) -> ToolError {
    let attempts = counted(operation);
    if attempts > 1 {
        error.message.push_str(&format!(" (after {attempts} attempts)"));
    }
    error
}

fn lost_too_often(operation: &Operation) -> ToolError {
    let (tool, starts) = (&operation.tool, operation.attempt);
    let message = format!("{tool} was begun {starts} times, and too often whoever ran it died or was stopped");
    ToolError { code: ToolErrorCode::ExecutionFailed, message, retriable: false }
}

/// `code`: of what failed (SPEC W-ERR-04).
fn in_doubt(operation: &Operation, code: ToolErrorCode, why: &str) -> ToolError {
    let message = format!(
        "it is in doubt whether {} took effect: {why}. It is not repeated; look before you call it again",
        operation.tool
    );
    ToolError { code, message, retriable: false }
}

/// An attempt that took longer than its operation may.
pub fn late(operation: &Operation) -> ActionFailure {
    let message = format!("{} did not answer within {} ms", operation.tool, operation.timeout_ms);
    ActionFailure::trouble(Trouble::Timeout, message, true)
}

/// The answer to a call whose request nobody can read any more.
pub fn unreadable(operation: &Operation, why: &serde_json::Error) -> ToolError {
    let message = format!("the request of {} cannot be read: {why}", operation.tool);
    ToolError { code: ToolErrorCode::InternalError, message, retriable: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Builtin, Place, ToolPlan, operation, plan};

    fn operation_of(class: EffectClass, attempt: u32, max_attempts: u32) -> (Operation, ActionRequest) {
        let tools = [Builtin::MemoryRead.resolved()];
        let input = serde_json::json!({"id": "m1"});
        let call =
            crate::chat::ToolCall { id: "c".into(), name: "memory_read".into(), input, invalid: None, signature: None };
        let ToolPlan::Dispatch(dispatch) = plan(&tools, &schemas::definition::AgentConstraints::default(), &call)
        else {
            panic!("refused");
        };
        let place = Place {
            namespace: schemas::id::Namespace::default_ns(),
            session_id: schemas::id::SessionId::parse("s").unwrap(),
            conversation_id: schemas::id::ConversationId::parse("c").unwrap(),
            turn_id: schemas::id::TurnId::parse("t").unwrap(),
            move_number: 1,
            index: 0,
            tool_call_id: "c".into(),
            tool: "pay".into(),
        };
        let request = dispatch.request.clone();
        let made = operation(*dispatch, place, crate::tool::ExecutionContext::default());
        (Operation { effect_class: class, attempt, max_attempts, backoff_ms: 100, ..made }, request)
    }

    fn trouble(sent: bool) -> ActionFailure {
        ActionFailure::trouble(Trouble::Network, "the line is down", sent)
    }

    const CLASSES: [EffectClass; 4] =
        [EffectClass::Pure, EffectClass::Idempotent, EffectClass::Probeable, EffectClass::AtMostOnce];

    #[test]
    fn what_was_claimed_before_begins_by_its_class() {
        for class in CLASSES {
            let (fresh, _) = operation_of(class, 1, 1);
            assert_eq!(start(&fresh), Start::Run);
            let lost = Operation { state: OperationState::Running, attempt: 2, ..fresh };
            match (class, start(&lost)) {
                (EffectClass::Pure | EffectClass::Idempotent, Start::Run) | (EffectClass::Probeable, Start::Probe) => {}
                (EffectClass::AtMostOnce, Start::End(error)) => {
                    assert!(error.message.contains("in doubt") && !error.retriable, "{}", error.message);
                }
                other => panic!("{other:?}"),
            }
        }
        let (often, _) = operation_of(EffectClass::Pure, OPERATION_LOST_MAX + 2, 1);
        let often = Operation { state: OperationState::Running, ..often };
        assert!(matches!(start(&often), Start::End(_)), "losses have a bound");
    }

    #[test]
    fn losses_are_no_attempts_up_to_their_bound() {
        let (operation, request) = operation_of(EffectClass::Idempotent, 1, 3);
        let after = |attempt, lost| {
            let operation = Operation { attempt, lost, ..operation.clone() };
            next(&operation, &request, Err(trouble(true)))
        };
        assert!(matches!(after(4, 3), Next::Again { after_ms: 100, lost: false, .. }), "the first that failed");
        assert!(matches!(after(5, 3), Next::Again { after_ms: 200, .. }), "the second");
        let Next::End(Err(error)) = after(6, 3) else { panic!("tried for ever") };
        assert!(error.message.ends_with("(after 3 attempts)"), "{}", error.message);
        assert!(matches!(after(OPERATION_LOST_MAX + 3, OPERATION_LOST_MAX + 2), Next::End(_)), "more of them count");
    }

    #[test]
    fn what_has_to_stop_is_handed_back_where_that_is_safe_and_not_for_ever() {
        for class in CLASSES {
            let (operation, _) = operation_of(class, 1, 1);
            let is_safe = matches!(class, EffectClass::Pure | EffectClass::Idempotent);
            let again = Next::Again { after_ms: 0, error: "its executor was stopped".to_owned(), lost: true };
            assert_eq!(stopped(&operation), is_safe.then_some(again), "{class:?}");
        }
        let (operation, _) = operation_of(EffectClass::Pure, OPERATION_LOST_MAX + 1, 1);
        let often = Operation { lost: OPERATION_LOST_MAX, ..operation };
        let Some(Next::End(Err(error))) = stopped(&often) else { panic!("handed back for ever") };
        assert!(error.message.contains("was stopped") && !error.retriable, "{}", error.message);
        let more = Operation { max_attempts: 2, ..often };
        assert!(matches!(stopped(&more), Some(Next::Again { .. })), "as a failure would");
    }

    #[test]
    fn what_a_worker_gives_up_is_begun_again_where_that_is_safe_and_in_doubt_elsewhere() {
        for class in CLASSES {
            let (operation, _) = operation_of(class, 1, 1);
            match (class, given_up(&operation)) {
                (EffectClass::Pure | EffectClass::Idempotent, None) => {}
                (EffectClass::Probeable | EffectClass::AtMostOnce, Some(error)) => {
                    assert!(error.message.contains("in doubt") && !error.retriable, "{}", error.message);
                }
                other => panic!("{other:?}"),
            }
        }
        let (often, _) = operation_of(EffectClass::Pure, OPERATION_LOST_MAX + 1, 1);
        let often = Operation { lost: OPERATION_LOST_MAX, ..often };
        assert!(given_up(&often).is_some_and(|error| error.message.contains("too often")), "not for ever");
    }

    #[test]
    fn only_infrastructure_is_tried_again_and_only_so_often() {
        let (operation, request) = operation_of(EffectClass::Idempotent, 1, 3);
        assert!(matches!(next(&operation, &request, Err(trouble(true))), Next::Again { after_ms: 100, .. }));
        let second = Operation { attempt: 2, ..operation.clone() };
        assert!(matches!(next(&second, &request, Err(trouble(true))), Next::Again { after_ms: 200, .. }));
        let asked = ActionFailure { retry_after_ms: Some(900), ..trouble(true) };
        assert!(matches!(next(&second, &request, Err(asked)), Next::Again { after_ms: 900, .. }));
        let third = Operation { attempt: 3, ..operation.clone() };
        let Next::End(Err(error)) = next(&third, &request, Err(trouble(true))) else { panic!("tried for ever") };
        assert!(error.message.ends_with("(after 3 attempts)") && error.retriable, "{}", error.message);
        let business = ActionFailure::business(ToolErrorCode::NotFound, "none");
        assert!(matches!(next(&operation, &request, Err(business)), Next::End(Err(_))));
        let deaf = ActionRequest { retry_on: vec!["timeout".to_owned()], ..request.clone() };
        assert!(matches!(next(&operation, &deaf, Err(trouble(true))), Next::End(Err(_))), "not of this kind");
        assert_eq!(next(&operation, &request, Ok(serde_json::json!(1))), Next::End(Ok(serde_json::json!(1))));
    }

    #[test]
    fn what_may_have_happened_is_repeated_only_where_that_is_safe() {
        for class in CLASSES {
            let (operation, request) = operation_of(class, 1, 3);
            assert!(matches!(next(&operation, &request, Err(trouble(false))), Next::Again { .. }), "{class:?}");
            match (class, next(&operation, &request, Err(trouble(true)))) {
                (EffectClass::Pure | EffectClass::Idempotent, Next::Again { .. })
                | (EffectClass::Probeable, Next::Probe(_)) => {}
                (EffectClass::AtMostOnce, Next::End(Err(error))) => {
                    assert!(error.message.contains("in doubt") && error.message.contains("the line is down"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn w_err_04_what_is_in_doubt_keeps_the_code_of_what_failed() {
        let in_doubt = |next: Next| match next {
            Next::End(Err(error)) => {
                assert!(error.message.contains("in doubt") && !error.retriable, "{}", error.message);
                error.code
            }
            other => panic!("{other:?}"),
        };
        let (once, request) = operation_of(EffectClass::AtMostOnce, 1, 3);
        assert_eq!(in_doubt(next(&once, &request, Err(late(&once)))), ToolErrorCode::Timeout);
        assert_eq!(in_doubt(next(&once, &request, Err(trouble(true)))), ToolErrorCode::ExecutionFailed);
        let (asked, request) = operation_of(EffectClass::Probeable, 1, 3);
        let unknown = |failure| probed(&asked, &request, Probe::Unknown, failure);
        assert_eq!(in_doubt(unknown(Some(late(&asked)))), ToolErrorCode::Timeout);
        assert_eq!(in_doubt(unknown(None)), ToolErrorCode::ExecutionFailed, "nobody knows how it ended");
    }

    #[test]
    fn what_the_target_reports_is_no_doubt() {
        let reported = || ActionFailure { reported: true, ..trouble(true) };
        let (operation, request) = operation_of(EffectClass::AtMostOnce, 1, 3);
        assert!(matches!(next(&operation, &request, Err(reported())), Next::Again { after_ms: 100, lost: false, .. }));
        let last = Operation { attempt: 3, ..operation.clone() };
        let Next::End(Err(error)) = next(&last, &request, Err(reported())) else { panic!("tried for ever") };
        assert_eq!(error.message, "the line is down (after 3 attempts)");
        let only = Operation { max_attempts: 1, ..operation };
        let Next::End(Err(error)) = next(&only, &request, Err(reported())) else { panic!("nobody asked for it") };
        assert_eq!((error.message.as_str(), error.retriable), ("the line is down", true), "as it was reported");
        let (probeable, request) = operation_of(EffectClass::Probeable, 1, 3);
        assert!(matches!(next(&probeable, &request, Err(reported())), Next::Probe(_)), "who can be asked is asked");
    }

    #[test]
    fn what_workers_of_others_report_is_tried_again_where_that_is_safe() {
        let error = |code| ToolError { code, message: "upstream is away".to_owned(), retriable: true };
        let timeout = || error(ToolErrorCode::Timeout);
        for class in CLASSES {
            let (operation, _) = operation_of(class, 1, 3);
            let is_safe = matches!(class, EffectClass::Pure | EffectClass::Idempotent);
            let again = Next::Again { after_ms: 100, error: "upstream is away".to_owned(), lost: false };
            assert_eq!(reported(&operation, timeout(), 0), is_safe.then_some(again), "{class:?}");
        }
        let (operation, _) = operation_of(EffectClass::Pure, 1, 3);
        for code in [ToolErrorCode::ExecutionFailed, ToolErrorCode::InternalError] {
            assert!(reported(&operation, error(code), 0).is_some(), "{code:?}");
        }
        for code in [ToolErrorCode::InvalidInput, ToolErrorCode::NotFound, ToolErrorCode::PermissionDenied] {
            assert!(reported(&operation, error(code), 0).is_none(), "{code:?} is no matter of the infrastructure");
        }
        let for_good = ToolError { retriable: false, ..timeout() };
        assert!(reported(&operation, for_good, 0).is_none(), "its worker knows better");
        let last = Operation { attempt: 3, ..operation.clone() };
        assert!(reported(&last, timeout(), 0).is_none(), "used up");
        let waiting = Operation { wait_ms: Some(1_000), created_at_ms: 50, ..operation };
        assert!(reported(&waiting, timeout(), 949).is_some());
        assert!(reported(&waiting, timeout(), 950).is_none(), "nobody could take it in time");
    }

    #[test]
    fn a_probe_settles_what_it_knows() {
        let (operation, request) = operation_of(EffectClass::Probeable, 1, 2);
        let probed = |probe, failure| probed(&operation, &request, probe, failure);
        let answer = serde_json::json!({"id": 1});
        assert_eq!(probed(Probe::Happened(answer.clone()), None), Next::End(Ok(answer)));
        assert!(matches!(probed(Probe::DidNotHappen, None), Next::Again { after_ms: 0, .. }));
        assert!(matches!(probed(Probe::DidNotHappen, Some(trouble(true))), Next::Again { after_ms: 100, .. }));
        let Next::End(Err(error)) = probed(Probe::Unknown, None) else { panic!("not settled") };
        assert!(error.message.contains("does not know"), "{}", error.message);
    }
}
