//! Which turn a step says it was about.

use serde_json::json;

use super::bench::Bench;
use crate::effect::Effect;
use crate::moniker::Decision;

fn about(decision: &Decision) -> Option<&str> {
    match decision {
        Decision::Emit { emits, .. } => emits.turn.as_ref().map(|turn| turn.as_str()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_step_names_the_turn_that_it_was_about() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    assert_eq!(about(&talk.input(json!({"text": "find it"}))), Some("in-1"));
    assert_eq!(about(&talk.assemble()), Some("in-1"));
    assert_eq!(about(&talk.reply("", &[("c1", "look", json!({}))])), Some("in-1"));
    assert_eq!(about(&talk.input(json!({"text": "and that"}))), Some("in-2"));
    assert_eq!(about(&talk.result("in-1.1.0", json!({"found": true}))), Some("in-1"), "whoever came last");
    assert_eq!(about(&talk.guide(json!({"note": "be brief"}))), None, "both are told");
    assert_eq!(about(&talk.guide(json!({"cancel_turn": "in-2"}))), Some("in-2"));
    assert_eq!(about(&talk.guide(json!({"note": "be kind"}))), Some("in-1"), "no other is left");
    assert_eq!(about(&talk.guide(json!({"cancel_turn": "in-9"}))), None, "it has not begun");
}

#[test]
fn a_posted_message_that_comes_as_guidance_begins_its_turn() {
    let mut talk = Bench::new(json!({}));
    let posted = json!({"message_id": "m1", "text": "hello", "as_turn": {"turn_id": "t1", "at_ms": 1_000}});
    assert_eq!(about(&talk.guide(posted)), Some("t1"));
    assert_eq!(about(&talk.assemble()), Some("t1"));
    assert_eq!(about(&talk.reply("Hi!", &[])), Some("t1"));
    assert_eq!(about(&talk.extract()), Some("t1"));
    assert_eq!(about(&talk.guide(json!({"note": "for whoever comes next"}))), None);
}

/// Of the calls under way, each turn's.
fn parents(talk: &Bench) -> Vec<Option<String>> {
    let parent = |effect| match effect {
        Effect::Talk(talk) => talk.parent.map(|turn| turn.to_string()),
        other => panic!("{other:?}"),
    };
    talk.calls().into_iter().map(|call| parent(call.effect)).collect()
}

/// Whatever its context shows of turns before it, and whoever else has had some in between (SPEC C-PRV-11).
#[test]
fn a_turn_goes_on_from_the_one_of_its_session_before_it() {
    let mut talk = Bench::new(json!({}));
    talk.say("one");
    assert_eq!(parents(&talk), [None]);
    talk.assemble();
    talk.reply("1", &[]);
    talk.extract();
    talk.say("two");
    talk.say("three");
    talk.assemble();
    assert_eq!(parents(&talk), [Some("in-1".to_owned()), Some("in-2".to_owned())]);
    let lane = talk.state["lanes"][0].as_object_mut().unwrap();
    assert!(lane.remove("parent").is_some());
    assert_eq!(parents(&talk)[0], None, "an older worker did not keep it");
}
