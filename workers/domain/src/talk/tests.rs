//! Operations keep what happened to them, conversations take what is given.

use schemas::conversation::ApprovalRequest;
use schemas::definition::EffectClass;
use schemas::id::{OperationId, TurnId};

use super::*;

/// One that is sensible in all else.
pub(crate) fn operation(state: OperationState) -> Operation {
    Operation {
        operation_id: OperationId::parse("o").unwrap(),
        session_id: SessionId::parse("s").unwrap(),
        conversation_id: ConversationId::parse("c").unwrap(),
        turn_id: TurnId::parse("t").unwrap(),
        tool_call_id: "call".to_owned(),
        tool: "search".to_owned(),
        kind: OperationKind::Task,
        pool: "default".to_owned(),
        state,
        request: Json::null(),
        approval: None,
        effect_class: EffectClass::Pure,
        attempt: 0,
        lost: 0,
        max_attempts: 1,
        backoff_ms: 0,
        timeout_ms: 1_000,
        wait_ms: None,
        is_async: false,
        created_at_ms: 0,
        due_at_ms: 0,
        claimed_by: None,
        until_ms: None,
        error: None,
    }
}

#[test]
fn what_has_ended_stays() {
    for ended in [OperationState::Completed, OperationState::Failed, OperationState::Cancelled] {
        for given in [OperationState::Pending, OperationState::Running, OperationState::Completed] {
            let mut known = operation(ended);
            take_state(&mut known, &operation(given));
            assert_eq!(known.state, ended);
        }
        let mut known = operation(ended);
        close(&mut known, OperationState::Cancelled);
        assert_eq!(known.state, ended);
    }
}

#[test]
fn a_claim_is_not_taken_back_by_a_repeat() {
    let claimed =
        Operation { claimed_by: Some("w".to_owned()), until_ms: Some(7), ..operation(OperationState::Running) };
    let mut known = claimed.clone();
    take_state(&mut known, &operation(OperationState::Pending));
    assert_eq!(known, claimed);
    take_state(&mut known, &Operation { error: Some("late".to_owned()), ..operation(OperationState::Failed) });
    assert_eq!((known.claimed_by, known.until_ms, known.error.as_deref()), (None, None, Some("late")));
}

#[test]
fn a_claim_of_what_was_running_is_a_start_that_was_lost() {
    let mut asked = operation(OperationState::Pending);
    take(&mut asked, "w1", 10, Hold::Extended(5));
    assert_eq!((asked.attempt, asked.lost), (1, 0));
    asked.state = OperationState::Running;
    take(&mut asked, "w2", 20, Hold::Extended(5));
    assert_eq!((asked.attempt, asked.lost, asked.claimed_by.as_deref()), (2, 1, Some("w2")));
}

#[test]
fn dispatching_sets_the_times() {
    let new = dispatched(&operation(OperationState::Pending), 50);
    assert_eq!((new.created_at_ms, new.due_at_ms, new.until_ms), (50, 50, None));
    let asked = ApprovalRequest { arguments_hash: "h".to_owned(), expires_ms: u64::MAX, default_approve: false };
    let later = Operation {
        kind: OperationKind::Approval,
        approval: Some(asked),
        due_at_ms: 90,
        ..operation(OperationState::Pending)
    };
    let new = dispatched(&later, 50);
    assert_eq!((new.due_at_ms, new.until_ms), (90, Some(i64::MAX)));
}

#[test]
fn an_agent_answers_in_its_time() {
    let called = Operation { kind: OperationKind::Agent, ..operation(OperationState::Pending) };
    let new = dispatched(&called, 50);
    assert_eq!((new.until_ms, deadline(&new)), (Some(1_050), Some(1_050)));
    assert_eq!(dispatched(&Operation { timeout_ms: 0, ..called.clone() }, 50).until_ms, None, "it has none");
    let ended = Operation { state: OperationState::Cancelled, ..called };
    assert_eq!((dispatched(&ended, 50).until_ms, deadline(&Operation { until_ms: Some(9), ..ended })), (None, None));
}

#[test]
fn waiting_is_never_stored() {
    let spec = SessionSpec {
        moniker: "echo".to_owned(),
        task: None,
        config: Json::null(),
        stop_on_done: false,
        max_steps: None,
        max_runtime_ms: None,
        loop_interval_ms: 0,
        conversation_id: None,
        parent: None,
    };
    let id = ConversationId::parse("c").unwrap();
    let agent = AgentId::parse("a").unwrap();
    let mut conversation = opened_by(&id, "me", &agent, &spec, 1);
    assert_eq!(conversation.visibility, Visibility::Listed);
    let change = ConversationChange { status: Some(ConversationStatus::Waiting), ..ConversationChange::default() };
    apply(&mut conversation, &change);
    assert_eq!(conversation.status, ConversationStatus::Active);
    // A branch that is there already is where work is.
    for (given, kept) in [("one", "one"), ("two", "one")] {
        let first_branch_context = Some(Json::of(&given));
        apply(&mut conversation, &ConversationChange { first_branch_context, ..ConversationChange::default() });
        assert_eq!(conversation.branch_context, Some(Json::of(&kept)));
    }
    let child = SessionSpec { parent: SessionId::parse("p").ok(), ..spec };
    assert_eq!(opened_by(&id, "me", &agent, &child, 1).visibility, Visibility::Internal);
}

#[test]
fn work_of_others_waits_until_its_deadline_and_again_when_its_holder_is_gone() {
    let asked =
        Operation { wait_ms: Some(5_000), created_at_ms: 100, due_at_ms: 100, ..operation(OperationState::Pending) };
    assert_eq!(deadline(&asked), Some(5_100));
    let refused = Operation { due_at_ms: 4_000, ..asked.clone() };
    assert_eq!(deadline(&refused), Some(5_100), "a broker that is away does not lengthen it");
    let mut held = asked.clone();
    take(&mut held, "them", 1_000, Hold::Attempt(500));
    held.state = OperationState::Running;
    assert_eq!((held.until_ms, deadline(&held)), (Some(2_500), Some(7_500)));
    assert_eq!(deadline(&Operation { state: OperationState::Failed, ..asked.clone() }), None);
    assert_eq!(deadline(&Operation { wait_ms: None, ..asked }), None, "the fleet's own executors take it");
}
