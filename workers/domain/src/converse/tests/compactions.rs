//! Contexts that become shorter: on request, when they are too large, and when the model fails.

use schemas::conversation::{LogKind, Participant, TurnPhase, TurnStatus};
use schemas::id::{AgentId, SessionId};
use serde_json::json;

use super::bench::Bench;
use crate::chat::{ChatRequest, Message, Part, Role};
use crate::compact::{self, Entry};
use crate::context::estimate_request;
use crate::converse::{Compacted, Context, Extent, Measure, Over, Scope, Summarised, Summary};
use crate::effect::{Effect, Outcome, TalkWork};
use crate::talk::participant_of;

/// Turns of 100 tokens and two messages each, before the one that begins. Two messages are summarised at a
/// time, and four stay.
pub(super) fn talk(turns: u64, tokens: u64, window: u64) -> Bench {
    let mut talk = Bench::new(json!({}));
    let message = |n: u64| {
        let role = if n % 2 == 1 { Role::User } else { Role::Assistant };
        Entry { key: n, at_ms: 1_000 * n as i64, message: Message::text(role, format!("{:<200}", format!("m{n}."))) }
    };
    talk.history = (1..=2 * turns).map(message).collect();
    let compaction = schemas::definition::CompactionSettings { chunk_size: 2, keep_recent: 4, ..compact::defaults() };
    talk.limits.context = Some(Context { tokens, window, compaction, summary_window: None });
    talk
}

fn shown(request: &ChatRequest) -> String {
    request.messages.iter().map(|message| message.plain_text() + "\n").collect()
}

fn summaries(talk: &Bench) -> Vec<Summary> {
    talk.records(LogKind::Summary).into_iter().map(|record| record.body.to().expect("a summary")).collect()
}

fn result_of(talk: &Bench, call: &str) -> serde_json::Value {
    let results = talk.records(LogKind::ToolResult).into_iter().map(|record| record.body.to_value());
    results.into_iter().find(|result| result["tool_call_id"] == call).expect("a result")
}

#[test]
fn s_93_the_agent_asks_for_a_shorter_context_and_gets_statistics() {
    let mut talk = talk(4, 100_000, 200_000);
    talk.tools = crate::tool::builtins();
    talk.say("compact yourself");
    talk.assemble();
    let before = estimate_request(&talk.request());
    talk.reply("One moment.", &[("c1", "compact_context", json!({}))]);
    assert_eq!((talk.token(), talk.turn(0).phase), ("t/in-1/compact/1", TurnPhase::Assembling));
    talk.compact(Ok("They wrote."));
    assert_eq!(talk.token(), "t/in-1/move/2");
    let request = talk.request();
    let text = shown(&request);
    assert!(text.contains("[Context Summary: 4 earlier messages]") && text.contains("They wrote."), "{text}");
    assert!(!text.contains("m4.") && text.contains("m5.") && text.contains("hello"), "{text}");
    assert_eq!(request.messages[1].role, Role::System);
    let result = result_of(&talk, "c1");
    let told = &result["result"];
    assert_eq!(
        (&told["compacted"], &told["batches_created"], &told["messages_compressed"]),
        (&json!(true), &json!(2), &json!(4))
    );
    assert!(told["tokens_before"].as_u64() >= Some(before) && told["tokens_after"].as_u64() < Some(before), "{told}");
    assert!(matches!(request.messages.last().unwrap().content[..], [Part::ToolResult { .. }]));
    talk.reply("Done.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
    assert!(talk.operations.is_empty() && talk.turn(0).issues.tool_failures == 0);
}

#[test]
fn s_93_with_nothing_old_the_statistics_are_zero_and_no_model_is_asked() {
    let mut talk = talk(2, 100_000, 200_000);
    talk.tools = crate::tool::builtins();
    talk.say("compact yourself");
    talk.assemble();
    talk.reply("", &[("c1", "compact_context", json!({})), ("c2", "compact_context", json!({}))]);
    talk.compact(Err("nobody is asked"));
    for call in ["c1", "c2"] {
        let told = &result_of(&talk, call)["result"];
        assert_eq!((&told["compacted"], &told["batches_created"]), (&json!(false), &json!(0)));
        assert_eq!(told["tokens_before"], told["tokens_after"]);
    }
    assert!(talk.summarised.is_empty() && summaries(&talk).is_empty() && talk.archive.is_empty());
    assert_eq!(talk.token(), "t/in-1/move/2");
}

#[test]
fn an_agent_that_may_not_run_what_is_built_in_may_not_compact() {
    let mut talk = talk(4, 100_000, 200_000);
    talk.tools = crate::tool::builtins();
    talk.constraints.allowed_action_kinds = Some(Vec::new());
    talk.say("compact yourself");
    talk.assemble();
    talk.reply("", &[("c1", "compact_context", json!({}))]);
    assert_eq!(result_of(&talk, "c1")["error"]["code"], "PERMISSION_DENIED");
}

#[test]
fn other_tools_of_the_same_reply_are_awaited_first() {
    let mut talk = talk(4, 100_000, 200_000).with_tool("look", json!({}));
    talk.tools.extend(crate::tool::builtins());
    talk.say("look and compact");
    talk.assemble();
    talk.reply("", &[("c1", "compact_context", json!({})), ("c2", "look", json!({}))]);
    assert_eq!(talk.turn(0).phase, TurnPhase::WaitingTool);
    talk.result("in-1.1.1", json!("seen"));
    assert_eq!(talk.token(), "t/in-1/compact/1");
    talk.compact(Ok("They wrote."));
    let results = talk.request().messages.pop().unwrap().content;
    let ids: Vec<&str> = results
        .iter()
        .filter_map(|part| if let Part::ToolResult { call_id, .. } = part { Some(call_id.as_str()) } else { None })
        .collect();
    assert_eq!(ids, ["c1", "c2"]);
}

/// A-CMP-01, A-CMP-05, and K-25: archived, then marked, and nothing is taken away.
#[test]
fn c1_a_context_over_its_budget_is_archived_before_it_is_left_out() {
    let mut talk = talk(5, 400, 100_000);
    talk.say("go on");
    talk.assemble();
    assert!(talk.is_over_budget(), "the model is not asked");
    let log = talk.log.len();
    let mut pieces = 0;
    while talk.token().contains("compact") {
        let (archived, recorded) = (talk.archive.len(), summaries(&talk).len());
        let piece = talk.piece(Ok("They wrote."));
        let is_made = piece.made.is_some();
        assert_eq!(talk.archive.len(), archived + usize::from(is_made));
        assert_eq!(summaries(&talk).len(), recorded, "archived, and not marked yet");
        talk.answer("compact", piece.into());
        assert_eq!(summaries(&talk).len(), recorded + usize::from(is_made));
        pieces += usize::from(is_made);
    }
    assert_eq!((pieces, talk.summarised.len()), (3, 3), "6 messages, 2 at a time");
    let all = summaries(&talk);
    assert_eq!(all.iter().map(|summary| summary.upto).collect::<Vec<_>>(), [2, 4, 6]);
    let kept: Vec<&str> = talk.archive.iter().map(|memory| memory.content.as_str()).collect();
    assert!(all[2].batches.iter().all(|batch| kept.contains(&batch.text().as_str())));
    assert!(talk.summarised[1].messages[1].plain_text().contains("so far:\nThey wrote."));
    assert!(!talk.is_over_budget(), "once is enough");
    let text = shown(&talk.request());
    assert!(!text.contains("m6.") && text.contains("m7."), "{text}");
    assert!(talk.log.len() > log && talk.events().contains(&"context_compaction.completed".to_owned()));
    talk.reply("Yes.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

/// The state after a step says what is asked next: a new owner asks for that, and for nothing before it.
#[test]
fn a_piece_that_is_recorded_is_not_asked_for_again() {
    let mut talk = talk(5, 400, 100_000);
    talk.say("go on");
    talk.assemble();
    talk.is_over_budget();
    let first = talk.calls();
    let lost = talk.piece(Ok("lost in a crash"));
    assert_eq!(talk.calls(), first, "nothing of a call is in the state");
    let again = talk.piece(Ok("They wrote."));
    let (lost, again) = (lost.made.unwrap().summary, again.made.unwrap().summary);
    assert_eq!(lost.upto, again.upto);
    assert_eq!(talk.archive[0].id, talk.archive[1].id, "the archive has it once");
    let made = Summarised { summary: again, base: None, messages: 2 };
    let recorded = Compacted { made: Some(made), ..Compacted::default() };
    talk.answer("compact", recorded.into());
    let next = talk.calls();
    let Effect::Talk(call) = &next[0].effect else { panic!("talk") };
    let TalkWork::Compact { number, summary, .. } = &call.what else { panic!("a compaction") };
    assert_eq!((*number, summary.as_deref()), (2, Some("in-1.summary.1")));
    assert!(next[0].key != first[0].key);
    let prompt = |talk: &Bench| talk.summarised.last().unwrap().messages[1].plain_text();
    talk.piece(Ok("more"));
    assert!(!prompt(&talk).contains("m1.") && prompt(&talk).contains("m3."));
}

#[test]
fn a_model_that_fails_leaves_a_context_that_fits_as_it_is() {
    let mut talk = talk(5, 400, 100_000);
    talk.say("go on");
    talk.assemble();
    let before = talk.request();
    assert!(talk.is_over_budget());
    talk.compact(Err("no answer"));
    assert_eq!(talk.token(), "t/in-1/move/1");
    assert!(!talk.is_over_budget(), "it is not tried again before this reply");
    assert_eq!(talk.request(), before);
    assert!(talk.events().contains(&"context_compaction.failed".to_owned()) && talk.archive.is_empty());
    talk.reply("Yes.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed, "the turn never fails for it");
}

#[test]
fn a_context_beyond_the_window_becomes_shorter_without_the_model() {
    let mut talk = talk(5, 100, 300);
    talk.say("go on");
    talk.assemble();
    assert!(talk.is_over_budget());
    talk.compact(Err("no answer"));
    assert_eq!(talk.summarised.len(), 1, "once it has failed, it is not asked again");
    let all = summaries(&talk);
    assert!(all.last().unwrap().upto >= 6 && talk.archive.len() >= all.len());
    assert!(talk.archive[0].content.contains("nobody has summarised it") && talk.archive[0].content.contains("m1."));
    let text = shown(&talk.request());
    assert!(text.contains("[Context Summary") && text.contains("hello"), "{text}");
    talk.reply("Yes.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed);
}

#[test]
fn over_a_budget_the_rest_is_shortened_without_the_model_and_the_log_says_why() {
    let mut talk = talk(5, 300, 100_000);
    talk.say("go on");
    talk.assemble();
    assert!(talk.is_over_budget());
    let what = Measure::Tokens;
    let over = Over { scope: Scope::Turn, what, used: 150.0, next: 0.0, limit: 100.0, more: 100.0, times: 1 };
    let piece = talk.piece(Ok("They wrote."));
    talk.answer("compact", Compacted { over: Some(over), ..piece }.into());
    let asked = talk.summarised.len();
    talk.compact(Ok("Nobody is asked."));
    assert_eq!((talk.summarised.len(), talk.archive.len() > 1), (asked, true), "the pieces behind it");
    let events = talk.records(LogKind::Event).into_iter().map(|record| record.body.to_value());
    let told: Vec<_> = events.filter(|event| event["type"] == "context_compaction.failed").collect();
    assert_eq!(told.len(), 1, "once: {told:?}");
    assert_eq!(told[0]["message"], "This turn has used 150 of 100 tokens");
    talk.reply("Yes.", &[]);
    assert_eq!(talk.turn(0).status, TurnStatus::Completed, "the turn never fails for it");
}

#[test]
fn an_archive_that_fails_fails_no_turn() {
    let mut talk = talk(5, 400, 100_000);
    talk.say("go on");
    talk.assemble();
    talk.is_over_budget();
    talk.answer("compact", Outcome::Ok(json!("no compaction")));
    assert_eq!(talk.token(), "t/in-1/move/1");
    assert!(summaries(&talk).is_empty());
}

#[test]
fn the_replies_of_a_long_turn_are_summarised_with_their_results() {
    let mut talk = talk(0, 300, 100_000).with_tool("look", json!({}));
    talk.say("find it");
    talk.assemble();
    for n in 1..=5u32 {
        talk.reply("", &[(&format!("c{n}"), "look", json!({"n": n}))]);
        talk.guide(json!(format!("note{n}")));
        talk.result(&format!("in-1.{n}.0"), json!(format!("{:<250}", format!("r{n}."))));
    }
    assert!(talk.is_over_budget());
    talk.compact(Ok("They looked."));
    let all = summaries(&talk);
    assert!(!all.is_empty() && all.iter().all(|summary| summary.scope == Extent::Turn), "{all:?}");
    let upto = all.last().unwrap().upto;
    let request = talk.request();
    let text = format!("{:?}", request.messages);
    for n in 1..=5u64 {
        let is_there = n > upto;
        for what in [format!("r{n}."), format!("c{n}\""), format!("note{n}\"")] {
            assert_eq!(text.contains(&what), is_there, "{what} {upto} {text}");
        }
    }
    assert!((1..5).contains(&upto), "the last result has not been seen yet");
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles[..5], [Role::System, Role::User, Role::User, Role::Assistant, Role::Tool]);
    assert!(request.messages[1].plain_text().contains("hello"), "the question stays");
    assert!(request.messages[2].plain_text().starts_with("[Context Summary"));
    assert!(talk.archive.iter().all(|memory| memory.label.as_ref().unwrap().starts_with("compaction-batch-in-1-")));
    // It stands for this turn alone.
    assert_eq!(talk.talk().summary, None);
}

#[test]
fn sessions_of_one_agent_in_one_conversation_do_not_share_labels() {
    let seat = |session: &str, agent: &str, joined_at_ms: i64| {
        let (session, agent) = (SessionId::parse(session).unwrap(), AgentId::parse(agent).unwrap());
        participant_of(&session, &agent, None, joined_at_ms).expect("a seat")
    };
    let labels = |here: &[Participant]| -> Vec<String> {
        let mut talk = talk(5, 400, 100_000);
        talk.here = here.to_vec();
        talk.say("hello");
        talk.assemble();
        assert!(talk.is_over_budget());
        talk.compact(Ok("They wrote."));
        assert_eq!(talk.archive[0].metadata["conversation_id"], "c-1");
        talk.archive.iter().map(|memory| memory.label.clone().expect("a label")).collect()
    };
    // The session of these tests is s-1.
    let plain = labels(&[]);
    assert!(plain[0].starts_with("compaction-batch-c-1-19"), "{plain:?}");
    let (own, earlier) = (seat("s-1", "ada", 5), seat("s-0", "ada", 4));
    let (later, stranger) = (seat("s-2", "ada", 6), seat("s-3", "bob", 1));
    assert_eq!(labels(&[stranger.clone(), later.clone(), own.clone()]), plain, "the first of its agent");
    let second = labels(&[later, own.clone(), earlier.clone(), stranger]);
    assert_eq!(second.len(), plain.len());
    assert!(second.iter().all(|label| label.starts_with("compaction-batch-c-1-") && !plain.contains(label)));
    // It stays the second when the first has left.
    assert_eq!(labels(&[own, Participant { left_at_ms: Some(9), ..earlier }]), second);
}

#[test]
fn of_two_turns_that_compact_at_once_one_goes_on_from_the_other() {
    let mut talk = talk(5, 400, 100_000);
    talk.say("first");
    talk.assemble();
    talk.say("second");
    talk.assemble();
    assert!(talk.is_over_budget() && talk.is_over_budget());
    let keys: Vec<String> = talk.calls().into_iter().map(|call| call.key).collect();
    assert_eq!(keys, ["in-1/compact/1", "in-2/compact/1"]);
    // Both were asked with the same summary, namely none; the first answer counts.
    let piece = talk.piece(Ok("They wrote."));
    let answer = Outcome::from(piece);
    talk.answer("compact", answer.clone());
    talk.take_answer("in-2/compact/1", answer);
    assert_eq!(summaries(&talk).len(), 1);
    talk.compact(Ok("They wrote more."));
    let upto: Vec<u64> = summaries(&talk).iter().map(|summary| summary.upto).collect();
    assert_eq!(upto, [2, 4, 6], "none is made twice");
    assert_eq!(talk.talk().summary.unwrap().upto, 6);
    for _ in 0..2 {
        assert!(!talk.is_over_budget() && shown(&talk.request()).contains("[Context Summary: 6"));
        talk.reply("Yes.", &[]);
    }
}

#[test]
fn many_summaries_become_one_and_what_it_stands_for_is_forgotten_afterwards() {
    let mut talk = talk(10, 400, 100_000);
    talk.say("go on");
    talk.assemble();
    talk.is_over_budget();
    talk.compact(Ok("They wrote."));
    let all = summaries(&talk);
    let merged = all.iter().find(|summary| !summary.forget.is_empty()).expect("batches were joined");
    assert_eq!(merged.batches[0].depth, 1);
    assert!(merged.forget.iter().all(|label| merged.batches.iter().all(|batch| batch.label != *label)));
    let counted: u64 = all.last().unwrap().batches.iter().map(|batch| batch.count).sum();
    assert_eq!((counted, all.last().unwrap().upto), (16, 16));
}
