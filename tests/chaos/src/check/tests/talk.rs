//! A good conversation for the record, and what only conversations can get wrong.

use super::{all, good};
use crate::plan::Word;
use crate::seen::talk::{Asked, Move, Operation, Posted, Said, Talk, ToolEnd, Turn, Verdict};
use crate::seen::{Call, Heard, Seen, Stream, Told};

const TURN: &str = "turn-1";

fn said(offset: u64, id: &str, sender: &str, event: &str) -> Said {
    let (id, sender, event) = (id.to_owned(), sender.to_owned(), event.to_owned());
    Said { offset, id, turn: TURN.into(), sender, event, ..Said::default() }
}

/// A call of a tool, and then an answer.
fn turn() -> Turn {
    let result = ToolEnd { call: "call_1".into(), key: Some(format!("default:{TURN}.1.0")), usage: (0, 0) };
    let calls = Move { offset: 6, number: 1, calls: vec!["call_1".into()], results: vec![result], ..Move::default() };
    let answers = Move { offset: 9, number: 2, spoke: true, ..Move::default() };
    let work = Operation { id: format!("{TURN}.1.0"), state: "completed".into(), ..Operation::default() };
    let question = Operation { id: format!("{}.ask", work.id), is_question: true, ..work.clone() };
    Turn {
        id: TURN.into(),
        status: "completed".into(),
        counted: 2,
        usage: (20, 6),
        assembled: true,
        spent: vec![Some((10, 3)), Some((10, 3))],
        replies: 2,
        moves: vec![calls, answers],
        operations: vec![work, question],
        ..Turn::default()
    }
}

/// A conversation with one turn, whose log has twelve records.
pub fn talking(seen: &mut Seen) {
    let text = "please once (t-m0)".to_owned();
    let posted = Said { text: text.clone(), turn: String::new(), ..said(2, "t-m0", "user", "utterance") };
    let transcript = vec![
        said(1, "conversation_started", "system", "status"),
        posted,
        said(3, "turn-1.conversation_turn", "system", "status"),
        said(6, "turn-1.move.1", "agent", "tool_call"),
        said(7, "turn-1.result.1", "agent", "tool_result"),
        said(10, "turn-1.m2", "agent", "utterance"),
        said(11, "turn-1.turn.completed", "system", "status"),
        said(12, "conversation_ended", "system", "status"),
    ];
    let heard = |said: &Said| {
        let kind = if said.event == "utterance" { "message" } else { "event" };
        Heard { offset: said.offset, kind: kind.into(), what: said.id.clone(), at_ms: 1 }
    };
    let items = transcript.iter().map(heard).collect();
    let post = Posted { id: "t-m0".into(), word: Word::Once, text, told: Told::Accepted, offset: 2, turn: TURN.into() };
    seen.talks.push(Talk {
        id: "t".into(),
        posts: vec![post],
        last_offset: 12,
        said: transcript,
        turns: vec![turn()],
        stream: Some(Stream { session: "t".into(), connections: 2, items, ended: true }),
        ..Talk::default()
    });
    seen.verdicts.insert(format!("{TURN}.1.0.ask"), Verdict { approved: true, heard: true });
    let (key, answer) = (format!("default:{TURN}.1.0"), "answered".to_owned());
    seen.tools.push(Call { key, session: "s".into(), once: true, answer, at_ms: 1 });
    // The second move was asked for again after a crash.
    let asked = |number: u64| Asked { key: format!("{TURN}.{number}"), content: format!("question {number}") };
    seen.asked.extend([asked(1), asked(2), asked(2)]);
}

/// The rules that object to a good record after a change.
fn objections(change: impl FnOnce(&mut Talk)) -> Vec<&'static str> {
    let mut seen = good();
    change(&mut seen.talks[0]);
    all(&seen).counts.into_keys().collect()
}

#[test]
fn a_turn_fails_as_the_script_plans_or_not_at_all() {
    let fail = |talk: &mut Talk, error: &str| {
        talk.turns[0].status = "failed".into();
        talk.turns[0].error = Some(error.to_owned());
    };
    let planned = "provider_failed: scripted: as planned";
    assert_eq!(objections(|talk| fail(talk, planned)), ["turn failed"]);
    let doomed = |talk: &mut Talk| talk.posts[0].word = Word::Doomed;
    assert_eq!(objections(doomed), ["turn ended wrong"]);
    let both = |error: &'static str| {
        objections(|talk| {
            doomed(talk);
            fail(talk, error);
        })
    };
    assert!(both(planned).is_empty());
    assert_eq!(both("internal: the context is missing"), ["turn failed"]);
}

#[test]
fn work_in_the_background_has_its_result_in_the_transcript() {
    let in_background = |talk: &mut Talk| {
        let first = &mut talk.turns[0].moves[0];
        first.results.clear();
        first.background.push(("call_1".into(), format!("{TURN}.1.0")));
        talk.turns[0].operations[0].is_async = true;
    };
    assert_eq!(objections(in_background), ["result lost"]);
    let with_result = |talk: &mut Talk| {
        in_background(talk);
        talk.said[4].operation = Some(format!("{TURN}.1.0"));
    };
    assert!(objections(with_result).is_empty());
    let of_nobody = |talk: &mut Talk| talk.said[4].operation = Some("turn-9.1.0".into());
    assert_eq!(objections(of_nobody), ["result from nowhere"]);
}

#[test]
fn nothing_is_said_asked_or_called_for_nobody() {
    let of = |change: fn(&mut Seen)| {
        let mut seen = good();
        change(&mut seen);
        all(&seen).counts.into_keys().collect::<Vec<_>>()
    };
    let strange = |seen: &mut Seen| seen.talks[0].posts.clear();
    assert_eq!(of(strange), ["post from nowhere", "turn from nowhere"]);
    let asked = |seen: &mut Seen| seen.asked.push(Asked { key: "turn-9.1".into(), content: String::new() });
    assert_eq!(of(asked), ["model asked from nowhere"]);
    let called = |seen: &mut Seen| seen.tools[0].key = "default:turn-9.1.0".into();
    assert_eq!(of(called), ["tool answer from nowhere", "tool called from nowhere"]);
}

#[test]
fn a_turn_is_cancelled_by_its_user_or_with_the_call_that_it_serves() {
    let cancel = |talk: &mut Talk| {
        (talk.turns[0].status, talk.turns[0].cancelled) = ("failed".into(), true);
    };
    assert_eq!(objections(cancel), ["turn cancelled"]);
    let by_its_user = |talk: &mut Talk| {
        cancel(talk);
        talk.cancels.push(TURN.into());
    };
    assert!(objections(by_its_user).is_empty());
    assert!(objections(|talk| talk.cancels.push(TURN.into())).is_empty(), "it may have ended before");
    let is_stray = |state: &str| {
        let mut seen = good();
        cancel(&mut seen.talks[0]);
        seen.talks[0].called_by = Some("turn-0.1.0".into());
        let call = Operation { id: "turn-0.1.0".into(), state: state.into(), ..Operation::default() };
        let caller = Turn { id: "turn-0".into(), operations: vec![call], ..Turn::default() };
        seen.talks.push(Talk { id: "u".into(), turns: vec![caller], ..Talk::default() });
        all(&seen).counts.contains_key("turn cancelled")
    };
    assert_eq!(["completed", "cancelled", "failed"].map(is_stray), [true, false, false]);
}

#[test]
fn who_is_given_guidance_may_say_something_else() {
    let doomed = |talk: &mut Talk| {
        talk.guided = true;
        talk.posts[0].word = Word::Doomed;
    };
    assert!(objections(doomed).is_empty());
    let asked_twice = |guided: bool| {
        let mut seen = good();
        seen.talks[0].guided = guided;
        seen.asked.push(Asked { key: format!("{TURN}.2"), content: "with a note".into() });
        all(&seen).counts.into_keys().collect::<Vec<_>>()
    };
    assert!(asked_twice(true).is_empty());
    assert_eq!(asked_twice(false), ["model asked otherwise"]);
}

#[test]
fn a_call_that_was_cut_short_is_a_move_and_is_paid_for_without_a_reply() {
    // Before the one that answers, in a log that is longer by two.
    let one_more = |talk: &mut Talk, cut: bool| {
        let turn = &mut talk.turns[0];
        turn.moves[1].number = 3;
        turn.moves.insert(1, Move { offset: 12, number: 2, cut, ..Move::default() });
        turn.counted = 3;
        turn.spent.push(Some((10, 0)));
        turn.usage = (30, 6);
        let items = &mut talk.stream.as_mut().unwrap().items;
        (talk.said[5].id, items[5].what) = ("turn-1.m3".into(), "turn-1.m3".into());
        (talk.said[7].offset, items[7].offset, talk.last_offset) = (14, 14, 14);
    };
    let told = |cut: bool| {
        let mut seen = good();
        one_more(&mut seen.talks[0], cut);
        seen.asked.push(Asked { key: format!("{TURN}.3"), content: "question 3".into() });
        all(&seen).counts.into_keys().collect::<Vec<_>>()
    };
    assert!(told(true).is_empty());
    assert_eq!(told(false), ["spending"]);
}

#[test]
fn what_needs_a_yes_waits_for_it() {
    let of = |change: fn(&mut Seen)| {
        let mut seen = good();
        change(&mut seen);
        all(&seen).counts.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(of(|seen| seen.verdicts.clear()), ["done without a yes"]);
    let elsewhere = |seen: &mut Seen| {
        seen.verdicts.insert("turn-7.1.0.ask".into(), Verdict { approved: false, heard: true });
    };
    assert_eq!(of(elsewhere), ["question from nowhere"]);
}

#[test]
fn a_called_agent_is_paid_for_by_its_caller() {
    let paid = |talk: &mut Talk| {
        talk.turns[0].moves[0].results[0].usage = (20, 5);
        talk.turns[0].usage = (40, 11);
    };
    assert!(objections(paid).is_empty());
    assert_eq!(objections(|talk| talk.turns[0].usage = (10, 3)), ["spending"]);
}
