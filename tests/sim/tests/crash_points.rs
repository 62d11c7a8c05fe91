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
