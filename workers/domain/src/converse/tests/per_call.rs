//! Contexts that are made anew before each reply (SPEC K-10).

use schemas::conversation::{LogKind, TurnStatus};
use schemas::problem::Code;
use serde_json::{Value, json};

use super::bench::Bench;
use crate::chat::{Message, Role};
use crate::compact::{self, Entry};
use crate::converse::Context;
use crate::effect::{Effect, EffectFailure, Outcome, TalkWork};

fn talk() -> Bench {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.limits.per_call = true;
    talk
}

/// What the call under way says.
fn work(talk: &Bench, kind: &str) -> TalkWork {
    let call = talk.calls().into_iter().find(|call| call.effect.kind() == kind).expect("it is under way");
    let Effect::Talk(talk) = call.effect else { panic!("talk") };
    talk.what
}

fn notes(talk: &Bench) -> Value {
    let TalkWork::Assemble { settings, .. } = work(talk, "assemble") else { panic!("a context") };
    settings.to_value()["notes"].clone()
}

fn newest(talk: &Bench) -> Option<String> {
    let TalkWork::Chat { assembly, .. } = work(talk, "chat") else { panic!("a chat") };
    assembly
}

#[test]
fn k_10_the_context_is_made_before_each_reply_and_the_turn_names_the_latest() {
    let mut talk = talk();
    talk.guide(json!("be brief"));
    talk.say("find it");
    assert_eq!(notes(&talk), json!(["be brief"]));
    talk.assemble();
    assert_eq!((talk.token(), newest(&talk).as_deref()), ("t/in-1/move/1", Some("in-1.assemble")));
    talk.reply("", &[("c1", "look", json!({}))]);
    talk.result("in-1.1.0", json!("it"));
    assert_eq!(talk.token(), "t/in-1/assemble");
    assert_eq!(notes(&talk), json!(["be brief"]), "what came before the turn is told in each");
    talk.assemble();
    assert_eq!((talk.token(), newest(&talk).as_deref()), ("t/in-1/move/2", Some("in-1.assemble.1")));
    assert!(matches!(talk.request().messages.last(), Some(last) if last.role == Role::Tool), "moves come behind it");
    talk.reply("Found.", &[]);
    let runs: Vec<&str> = talk.records(LogKind::Assembly).iter().map(|record| record.id.as_str()).collect();
    assert_eq!(runs, ["in-1.assemble", "in-1.assemble.1"]);
    let turn = talk.turn(0);
    assert_eq!(turn.status, TurnStatus::Completed);
    assert_eq!(turn.context_assembly_run_id.as_deref(), Some("in-1.assemble.1"));
}

#[test]
fn a_context_of_a_turn_is_made_once_unless_the_persona_says_otherwise() {
    let mut talk = Bench::new(json!({})).with_tool("look", json!({}));
    talk.say("find it");
    talk.assemble();
    assert_eq!(newest(&talk), None, "it is among the turn's records");
    talk.reply("", &[("c1", "look", json!({}))]);
    talk.result("in-1.1.0", json!("it"));
    assert_eq!(talk.token(), "t/in-1/move/2");
    assert!(talk.talk().lanes[0].notes.is_empty());
}

#[test]
fn a_context_that_cannot_be_made_again_fails_the_turn() {
    let mut talk = talk();
    talk.say("find it");
    talk.assemble();
    talk.reply("", &[("c1", "look", json!({}))]);
    talk.result("in-1.1.0", json!("it"));
    let message = "away".to_owned();
    let failure = EffectFailure { code: Code::Internal, message, retriable: false, may_have_happened: false };
    talk.answer("assemble", Outcome::Failed(failure));
    assert_eq!(talk.turn(0).status, TurnStatus::Failed);
    assert!(talk.events().iter().any(|name| name == "context_assembly.failed"), "{:?}", talk.events());
}

#[test]
fn a_context_that_became_shorter_is_not_made_again_for_the_same_reply() {
    let mut talk = talk();
    let message = |n: u64| Entry {
        key: n,
        at_ms: 1_000,
        message: Message::text(if n % 2 == 1 { Role::User } else { Role::Assistant }, "x".repeat(200)),
    };
    talk.history = (1..=8).map(message).collect();
    let compaction = schemas::definition::CompactionSettings { chunk_size: 20, keep_recent: 2, ..compact::defaults() };
    talk.limits.context = Some(Context { tokens: 100, window: 200_000, compaction, summary_window: None });
    talk.say("hello");
    talk.assemble();
    assert!(talk.is_over_budget());
    talk.compact(Ok("They wrote."));
    assert_eq!((talk.token(), newest(&talk).as_deref()), ("t/in-1/move/1", Some("in-1.assemble")));
}
