//! Whatever comes, the state stays within its bound.

use schemas::limits::{
    METADATA_BYTES_MAX, SESSION_CALLS_MAX, SESSION_METADATA_BYTES_MAX, SESSION_NOTES_BYTES_MAX, SESSION_TURNS_HELD_MAX,
    STATE_BYTES_MAX,
};
use schemas::problem::Code;
use serde_json::{Value, json};

use super::bench::Bench;
use crate::moniker::Decision;

/// A session with so many turns in line.
fn crowded(turns: usize, metadata: &Value) -> Bench {
    let mut talk = Bench::new(json!({}));
    talk.input(json!({"text": "x", "metadata": metadata}));
    let mut lane = talk.state["lanes"][0].clone();
    lane["stage"] = "queued".into();
    let turn = |n: usize| {
        lane["turn"]["turn_id"] = format!("t-{n}").into();
        lane.clone()
    };
    talk.state["lanes"] = (0..turns).map(turn).collect();
    talk
}

fn refusal(decision: Decision) -> (Code, String) {
    match decision {
        Decision::Refuse { code, message } => (code, message),
        other => panic!("{other:?}"),
    }
}

fn fits(talk: &Bench) -> bool {
    talk.state.to_string().len() < STATE_BYTES_MAX
}

#[test]
fn a_session_takes_so_many_turns_and_refuses_more() {
    let mut talk = crowded(SESSION_TURNS_HELD_MAX - 1, &json!({}));
    talk.say("the last one");
    assert!(fits(&talk));
    assert_eq!(refusal(talk.input(json!({"text": "one more"}))).0, Code::TooManyRequests);
    let id = talk.talk().lanes[0].turn.turn_id.to_string();
    talk.guide(json!({"cancel_turn": id}));
    talk.say("now there is room");
}

#[test]
fn a_post_that_comes_as_guidance_is_kept_as_a_note_where_no_turn_can_begin() {
    let mut talk = crowded(SESSION_TURNS_HELD_MAX, &json!({}));
    talk.guide(json!({"note": "hi", "message_id": "m-1", "as_turn": {"turn_id": "turn-m-1", "at_ms": 1}}));
    let state = talk.talk();
    assert_eq!((state.lanes.len(), state.notes), (SESSION_TURNS_HELD_MAX, vec!["hi".to_owned()]));
}

#[test]
fn metadata_of_inputs_is_bounded_one_by_one_and_together() {
    // With its name and its marks it has just as many bytes as it may.
    let most = json!({"k": "x".repeat(METADATA_BYTES_MAX - 8)});
    let many = SESSION_METADATA_BYTES_MAX / METADATA_BYTES_MAX;
    let mut talk = crowded(many, &most);
    let (code, message) = refusal(talk.input(json!({"text": "x", "metadata": {"k": 1}})));
    assert_eq!(code, Code::TooManyRequests, "{message}");
    talk.say("without any");
    assert!(fits(&talk));
    let mut talk = crowded(many - 1, &most);
    let too_much = json!({"k": "x".repeat(METADATA_BYTES_MAX - 7)});
    let (code, message) = refusal(talk.input(json!({"text": "x", "metadata": too_much})));
    assert!(code == Code::InvalidRequest && message.contains("payload.metadata"), "{message}");
    assert!(matches!(talk.input(json!({"text": "x", "metadata": most})), Decision::Emit { .. }));
}

#[test]
fn a_posted_message_is_answered_also_where_there_is_no_room_for_its_metadata() {
    let most = json!({"k": "x".repeat(METADATA_BYTES_MAX - 8)});
    let full = SESSION_METADATA_BYTES_MAX / METADATA_BYTES_MAX;
    let of_last = |talk: &Bench| talk.talk().lanes.last().expect("a turn").turn.clone();
    let noted = json!({"k": 1});
    for (turns, kept) in [(full, None), (full - 1, Some(noted.clone()))] {
        let mut talk = crowded(turns, &most);
        talk.input(json!({"text": "x", "message_id": "m-1", "turn_id": "turn-1", "metadata": noted}));
        let turn = of_last(&talk);
        assert_eq!((turn.turn_id.as_str(), &turn.metadata), ("turn-1", &kept));
        let mut talk = crowded(turns, &most);
        let as_turn = json!({"turn_id": "turn-2", "user_id": "ana", "at_ms": 1, "metadata": noted});
        talk.guide(json!({"note": "x", "message_id": "m-2", "as_turn": as_turn}));
        let turn = of_last(&talk);
        assert_eq!((turn.turn_id.as_str(), &turn.metadata), ("turn-2", &kept));
        assert!(fits(&talk));
    }
}

#[test]
fn what_waits_for_people_is_bounded_and_the_model_is_told() {
    let mut talk = Bench::new(json!({})).with_tool("pay", json!({"requires_approval": {}}));
    talk.say("pay all of them");
    talk.assemble();
    let memo = json!({"memo": "x".repeat(256 << 10)});
    let names: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = names.iter().map(|name| (name.as_str(), "pay", memo.clone())).collect();
    talk.reply("", &calls);
    assert_eq!((talk.operations.len(), talk.turn(0).issues.tool_failures), (5, 15));
    assert!(fits(&talk));
    for n in 0..5 {
        talk.result(&format!("in-1.1.{n}.ask"), json!({"approved": false}));
    }
    let told = format!("{:?}", talk.request().messages.last());
    assert!(told.contains("wait for results of that") && told.contains("a person said no"));
    talk.reply("", &calls[..1]);
    assert_eq!(talk.operations.len(), 6, "there is room again");
}

#[test]
fn calls_in_the_background_do_not_become_ever_more() {
    let mut talk = Bench::new(json!({})).with_tool("build", json!({"async": true}));
    talk.say("build");
    talk.assemble();
    talk.reply("", &[("c1", "build", json!({}))]);
    let mut open = talk.state["lanes"][0]["open"][0].clone();
    let another = |n: usize| {
        open["operation_id"] = format!("o-{n}").into();
        open.clone()
    };
    talk.state["lanes"][0]["open"] = (1..SESSION_CALLS_MAX).map(another).collect();
    talk.reply("", &[("c2", "build", json!({})), ("c3", "build", json!({}))]);
    assert_eq!((talk.operations.len(), talk.turn(0).issues.tool_failures), (2, 1), "one was left");
}

#[test]
fn notes_that_wait_are_bounded_and_the_newest_are_kept() {
    let mut talk = Bench::new(json!({}));
    for n in 0..20 {
        talk.guide(json!({"note": format!("{n} {}", "\u{1}".repeat(300_000))}));
    }
    let notes = talk.talk().notes;
    assert!(json!(notes).to_string().len() < SESSION_NOTES_BYTES_MAX + 64);
    assert!(notes.last().is_some_and(|note| note.starts_with("19 ")), "{} notes", notes.len());
}
