//! A worker crashes at each of its calls, once before and once after the call is performed.

#[test]
fn history_does_not_depend_on_where_a_worker_crashes() {
    let tried = sim::drill_every(1).unwrap_or_else(|why| panic!("{why}"));
    assert!(tried >= 50, "only {tried} crash points: the scenario has shrunk");
}

#[test]
fn neither_does_a_turn_with_tools_an_agent_and_a_person() {
    let drilled = sim::drill_turn(1).unwrap_or_else(|why| panic!("{why}"));
    assert!(drilled.points >= 150, "the turn has shrunk: {drilled:?}");
    // Seven replies, two tools that may be repeated, two that must not: each was cut at least once.
    assert!(drilled.asked_again >= 7 && drilled.run_again >= 2 && drilled.in_doubt >= 2, "{drilled:?}");
}

#[test]
fn an_agent_that_is_looped_in_sits_there_once_wherever_a_worker_crashes() {
    let drilled = sim::drill_guest(1).unwrap_or_else(|why| panic!("{why}"));
    assert!(drilled.points >= 150, "the turns have shrunk: {drilled:?}");
    // Five replies of who asks and two of the guest; two tools that wait for her.
    assert!(drilled.asked_again >= 7 && drilled.run_again >= 2 && drilled.in_doubt == 0, "{drilled:?}");
}

#[test]
fn questions_that_are_denied_or_expire_have_one_answer_wherever_a_worker_crashes() {
    let drilled = sim::drill_verdicts(1).unwrap_or_else(|why| panic!("{why}"));
    assert!(drilled.points >= 120, "the turn has shrunk: {drilled:?}");
    // Four replies; one tool is allowed, and must not run twice.
    assert!(drilled.asked_again >= 4 && drilled.in_doubt >= 1 && drilled.run_again == 0, "{drilled:?}");
}

#[test]
fn nothing_leaves_a_context_that_is_not_archived_wherever_a_worker_crashes() {
    let drilled = sim::drill_compaction(1).unwrap_or_else(|why| panic!("{why}"));
    assert!(drilled.points >= 120, "the turn has shrunk: {drilled:?}");
    // Seven summaries, three replies, two tools.
    assert!(drilled.asked_again >= 10 && drilled.run_again >= 2 && drilled.in_doubt == 0, "{drilled:?}");
}

#[test]
fn what_is_said_to_an_agent_at_work_is_told_once_wherever_a_worker_crashes() {
    let drilled = sim::drill_steering(1).unwrap_or_else(|why| panic!("{why}"));
    // The turn begins, has its context, calls its tool, hears of French and then of the result; counting is cut short
    // and the note told, the curt reply is overtaken, and the polite one comes.
    are_cut_apart(&drilled, 8);
    // Three replies; of the fourth only the beginning is told, and it is not waited for.
    assert!(drilled.asked_again >= 3 && drilled.run_again >= 1 && drilled.in_doubt == 0, "{drilled:?}");
    // With some crashes both are there, and others have lost them.
    let some = 2..=drilled.points;
    assert!(some.contains(&drilled.cut_short) && some.contains(&drilled.overtaken), "{drilled:?}");
}

#[test]
fn a_turn_that_is_cancelled_while_its_model_speaks_ends_once_wherever_a_worker_crashes() {
    is_cut_short(sim::drill_cancelling(1).unwrap_or_else(|why| panic!("{why}")));
}

#[test]
fn so_does_a_turn_whose_session_is_destroyed() {
    is_cut_short(sim::drill_destroying(1).unwrap_or_else(|why| panic!("{why}")));
}

fn is_cut_short(drilled: sim::Drilled) {
    // The turn begins, has its context, calls its tool, hears of the result, and ends.
    are_cut_apart(&drilled, 5);
    // The reply before, and its tool.
    assert!(drilled.asked_again >= 2 && drilled.run_again >= 1 && drilled.in_doubt == 0, "{drilled:?}");
    // With some crashes the beginning of the last reply is there, and others have lost it.
    assert!((2..=drilled.points).contains(&drilled.cut_short), "{drilled:?}");
}

/// Workers crashed before the first of these commits, between any two of them, and behind the last: each is durable
/// before what leads to the next is begun, be it a call of a model, of a tool, or somebody who waits for it.
fn are_cut_apart(drilled: &sim::Drilled, commits: usize) {
    assert!(drilled.stages.len() > commits, "the turn has shrunk, or commits are no crash points: {drilled:?}");
}
