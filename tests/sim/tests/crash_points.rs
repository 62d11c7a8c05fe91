//! A worker crashes at each of its calls, once before and once after the call is performed.

#[test]
fn history_does_not_depend_on_where_a_worker_crashes() {
    let tried = sim::drill_every(1).unwrap_or_else(|why| panic!("{why}"));
    assert!(tried >= 50, "only {tried} crash points: the scenario has shrunk");
}
