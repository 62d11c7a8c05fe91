//! What a turn waits for is lost: the auditor sees to it that the turn does not wait for ever.

use schemas::conversation::TurnStatus;
use testkit::fake::Breakage;

#[test]
fn a_turn_outlives_the_loss_of_an_agents_answer() {
    let outlived = sim::outlive(Breakage::LoseAnswer);
    assert_eq!(outlived.sent.len(), 1, "{outlived:?}");
    let sent = &outlived.sent[0];
    assert!(sent.starts_with("tool_result") && sent.contains("is completed"), "it says what happened: {sent}");
    // It told its model, and went on to its end.
    assert_eq!((outlived.turn.status, outlived.turn.issues.tool_failures), (TurnStatus::Completed, 1));
}

#[test]
fn a_turn_whose_work_is_nowhere_ends() {
    let outlived = sim::outlive(Breakage::LoseOperation);
    assert_eq!(outlived.sent.len(), 1, "{outlived:?}");
    assert!(outlived.sent[0].starts_with("interrupt") && outlived.sent[0].contains("cancel_turn"), "{outlived:?}");
    assert_eq!((outlived.turn.status, outlived.turn.cancelled), (TurnStatus::Failed, true));
}
