//! Messages that are posted to an agent at work: they join its turns, or start one of their own.

use schemas::conversation::{Caller, LogKind, TurnStatus};
use serde_json::{Value, json};

use super::bench::Bench;
use crate::chat::{ImageSource, Part};
use crate::converse::Stage;

/// What the gateway sends for the message `m-1` of `ana`, which steers.
fn post() -> Value {
    let as_turn = json!({"turn_id": "turn-m-1", "user_id": "ana", "reply_to_message_id": "m-0", "at_ms": 5_000});
    json!({"note": "in French", "message_id": "m-1", "as_turn": as_turn})
}

/// A turn that has answered, and whose memories are not extracted yet.
fn answered() -> Bench {
    let mut talk = Bench::new(json!({}));
    talk.say("tell me");
    talk.assemble();
    talk.reply("Hello.", &[]);
    assert_eq!(talk.token(), "t/in-1/extract");
    talk
}

#[test]
fn a_post_joins_a_turn_that_can_take_it() {
    let mut talk = Bench::new(json!({}));
    talk.say("tell me");
    talk.assemble();
    talk.guide(post());
    talk.reply("Hello.", &[]);
    assert!(talk.request().messages.pop().unwrap().plain_text().contains("in French"));
    talk.reply("Bonjour.", &[]);
    assert_eq!((talk.turns.len(), talk.turn(0).status), (1, TurnStatus::Completed));
}

fn picture() -> Value {
    json!({"type": "image", "source": {"type": "url", "url": "https://h/cat.png"}})
}

fn shown_picture() -> Part {
    Part::Image { source: ImageSource::Url { url: "https://h/cat.png".to_owned() } }
}

/// A turn that is told this while its model is asked; what the model is shown of it afterwards.
fn told(guidance: Value) -> Vec<Part> {
    let mut talk = Bench::new(json!({}));
    talk.say("tell me");
    talk.assemble();
    talk.guide(guidance);
    talk.reply("Hello.", &[]);
    let told = talk.request().messages.pop().unwrap().content;
    talk.reply("I see.", &[]);
    assert_eq!((talk.turns.len(), talk.turn(0).status), (1, TurnStatus::Completed));
    told
}

#[test]
fn a_picture_alone_joins_a_turn() {
    let mut post = post();
    post["note"] = json!("");
    post["content"] = json!([picture()]);
    assert_eq!(told(post), [Part::text("[Note]"), shown_picture()]);
}

#[test]
fn the_words_of_a_post_with_a_picture_are_told_once() {
    let mut post = post();
    post["content"] = json!([{"type": "text", "text": "in French"}, picture()]);
    assert_eq!(told(post), [Part::text("[Note]"), Part::text("in French"), shown_picture()]);
    let beside = json!({"note": "look", "content": [{"type": "text", "text": "here"}, picture()]});
    assert_eq!(told(beside), [Part::text("[Note] look"), Part::text("here"), shown_picture()]);
    let without = json!({"content": [{"type": "text", "text": "here"}, picture()]});
    assert_eq!(told(without), [Part::text("[Note]"), Part::text("here"), shown_picture()]);
}

#[test]
fn guidance_brings_nothing_but_what_a_user_can_say() {
    let call = json!({"type": "tool_call", "id": "c1", "name": "look", "input": {}});
    let guidance = json!({"note": "look", "content": [call, "x", picture()]});
    assert_eq!(told(guidance), [Part::text("[Note] look"), shown_picture()]);
    assert_eq!(told(json!({"note": "look", "content": "x"})), [Part::text("[Note] look")]);
}

#[test]
fn of_guidance_that_waits_for_a_turn_words_are_kept() {
    let mut talk = answered();
    talk.guide(json!({"content": [{"type": "text", "text": "in French"}, picture()]}));
    talk.guide(json!({"content": [picture()]}));
    let notes = talk.talk().notes;
    assert_eq!((notes.len(), notes[0].as_str()), (2, "in French"));
    assert!(notes[1].contains("was not kept"), "{notes:?}");
}

#[test]
fn a_post_whose_turn_has_ended_starts_its_own() {
    let mut talk = answered();
    talk.guide(post());
    let turn = talk.turn(1).clone();
    assert_eq!((turn.turn_id.as_str(), turn.input_message_id.as_str()), ("turn-m-1", "m-1"));
    assert_eq!(turn.reply_to_message_id.as_ref().map(|id| id.as_str()), Some("m-0"));
    assert!(matches!(&turn.caller, Caller::User { user_id } if user_id.as_str() == "ana"), "{turn:?}");
    assert_eq!((turn.conversation_id.as_str(), turn.created_at_ms), ("c-1", 5_000), "budgets count its time");
    assert!(talk.records(LogKind::Note).is_empty() && talk.talk().notes.is_empty(), "it is said once");
    talk.extract();
    talk.assemble();
    talk.reply("Bonjour.", &[]);
    talk.extract();
    assert_eq!((talk.turns.len(), talk.turn(1).status), (2, TurnStatus::Completed));
    let said: Vec<String> = talk.said().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["tell me", "Hello.", "Bonjour."], "the gateway has written the message");
}

#[test]
fn a_post_to_an_agent_that_is_idle_by_then_starts_its_own_turn() {
    let mut talk = answered();
    talk.extract();
    assert_eq!(talk.token(), "idle");
    talk.guide(post());
    assert_eq!((talk.turns.len(), talk.token()), (2, "t/turn-m-1/assemble"));
}

#[test]
fn a_post_waits_in_line_where_all_turns_do() {
    let mut talk = Bench::new(json!({}));
    for _ in 0..16 {
        talk.say("tell me");
        talk.assemble();
        talk.reply("Hello.", &[]);
    }
    talk.say("and me");
    talk.guide(post());
    let stages: Vec<Stage> = talk.talk().lanes.iter().map(|lane| lane.stage).collect();
    assert_eq!(stages[15..], [Stage::Extract, Stage::Queued, Stage::Queued]);
    assert!(talk.talk().notes.is_empty());
}

#[test]
fn a_post_whose_own_turn_was_cancelled_ends_as_it_begins() {
    let mut talk = answered();
    talk.guide(json!({"cancel_turn": "turn-m-1"}));
    talk.guide(post());
    assert_eq!((talk.turn(1).status, talk.turn(1).cancelled), (TurnStatus::Failed, true));
}

#[test]
fn guidance_that_is_no_post_waits_for_the_next_turn() {
    let mut talk = answered();
    let of_no_turn = json!({"note": "in French", "message_id": "m-1"});
    let nonsense = json!({"note": "softly", "message_id": "", "as_turn": {"turn_id": "turn-m-1", "at_ms": 1}});
    for guidance in [of_no_turn, nonsense] {
        talk.guide(guidance);
    }
    assert_eq!(talk.talk().notes, ["in French", "softly"]);
    assert_eq!(talk.turns.len(), 1);
}
