//! Many turns of one session side by side: who waits takes nobody's place, and no more than so many are at work.

use schemas::conversation::{LogKind, TurnPhase, TurnStatus};
use schemas::limits::{SESSION_TURNS_HELD_MAX, STATE_BYTES_MAX};
use serde_json::json;

use super::bench::Bench;
use crate::converse::Stage;

/// Turns that are at work at a time.
const AT_WORK: usize = 16;

/// As many turns as may be at work wait for work in the background.
fn waiting() -> Bench {
    let mut talk = Bench::new(json!({})).with_tool("build", json!({"async": true}));
    for _ in 0..AT_WORK {
        talk.say("build it");
        talk.assemble();
        talk.reply("On it.", &[("c1", "build", json!({}))]);
    }
    assert!(talk.calls().is_empty() && talk.talk().lanes.len() == AT_WORK);
    talk
}

fn stages(talk: &Bench) -> Vec<Stage> {
    talk.talk().lanes.iter().map(|lane| lane.stage).collect()
}

fn status(talk: &Bench, turn: &str) -> (TurnStatus, TurnPhase) {
    let turn = talk.turns.iter().find(|one| one.turn_id.as_str() == turn).expect("a turn");
    (turn.status, turn.phase)
}

/// The turns for which something is under way.
fn at_work(talk: &Bench) -> Vec<String> {
    let keys = talk.calls().into_iter().map(|call| call.key);
    keys.map(|key| key.split('/').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_turn_is_answered_while_any_number_of_others_wait() {
    let mut talk = waiting();
    talk.say("what time is it");
    assert_eq!(at_work(&talk), ["in-17"]);
    talk.assemble();
    talk.reply("Noon.", &[]);
    talk.extract();
    assert_eq!(status(&talk, "in-17").0, TurnStatus::Completed);
    let mut asking = Bench::new(json!({})).with_tool("pay", json!({"requires_approval": {}}));
    for _ in 0..=AT_WORK {
        asking.say("pay");
        asking.assemble();
        asking.reply("", &[("c1", "pay", json!({}))]);
    }
    assert!(stages(&asking).iter().all(|stage| *stage == Stage::Wait), "nobody who asks a person holds up others");
}

#[test]
fn who_begins_to_wait_leaves_the_place_to_the_next_in_line() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    for _ in 0..AT_WORK + 2 {
        talk.say("find it");
    }
    assert_eq!(stages(&talk)[AT_WORK - 1..], [Stage::Assemble, Stage::Queued, Stage::Queued]);
    talk.assemble();
    assert_eq!(stages(&talk)[AT_WORK..], [Stage::Queued, Stage::Queued], "its model is asked");
    talk.reply("", &[("c1", "look", json!({}))]);
    assert_eq!(stages(&talk)[AT_WORK..], [Stage::Assemble, Stage::Queued]);
    assert_eq!(at_work(&talk).len(), AT_WORK);
}

#[test]
fn who_comes_back_while_all_places_are_taken_goes_on_as_soon_as_one_is_free() {
    let mut talk = waiting();
    for _ in 0..AT_WORK {
        talk.say("what time is it");
    }
    let others = at_work(&talk);
    assert_eq!((others.len(), others[0].as_str()), (AT_WORK, "in-17"));
    talk.result("in-1.1.0", json!("built"));
    assert_eq!((at_work(&talk), status(&talk, "in-1").1), (others.clone(), TurnPhase::Queued));
    // All that have begun are told, and those that wait in the background come back.
    talk.guide(json!({"note": "be brief"}));
    assert_eq!((at_work(&talk), talk.records(LogKind::Note).len()), (others, 2 * AT_WORK));
    talk.say("and now?");
    talk.guide(json!({"cancel_turn": "in-17"}));
    let now = at_work(&talk);
    assert_eq!((now.len(), now[0].as_str()), (AT_WORK, "in-1"), "the oldest goes first");
    let request = format!("{:?}", talk.request().messages);
    assert!(request.contains("built") && request.contains("[Note] be brief"), "{request}");
    talk.reply("It is built.", &[]);
    assert_eq!(status(&talk, "in-1").0, TurnStatus::Completed, "it was told all of it");
}

#[test]
fn the_state_has_room_for_turns_that_wait() {
    let mut talk = waiting();
    let lane = talk.state["lanes"][0].clone();
    let turn = |n: usize| {
        let mut lane = lane.clone();
        lane["turn"]["turn_id"] = format!("t-{n}").into();
        lane["open"][0]["operation_id"] = format!("t-{n}.1.0").into();
        lane
    };
    talk.state["lanes"] = (1..SESSION_TURNS_HELD_MAX).map(turn).collect();
    talk.say("the last one");
    assert_eq!((at_work(&talk).len(), talk.talk().lanes.len()), (1, SESSION_TURNS_HELD_MAX));
    talk.guide(json!({"note": "be brief"}));
    assert_eq!(at_work(&talk).len(), AT_WORK, "however many come back at once");
    assert!(talk.state.to_string().len() < STATE_BYTES_MAX);
}
