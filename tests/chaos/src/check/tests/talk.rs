//! A good conversation for the record, and what only conversations can get wrong.

use super::{all, good};
use crate::plan::Word;
use crate::seen::talk::{Asked, Move, Operation, Posted, Said, Talk, ToolEnd, Turn};
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
    Turn {
        id: TURN.into(),
        status: "completed".into(),
        counted: 2,
        usage: (20, 6),
        assembled: true,
        spent: vec![Some((10, 3)), Some((10, 3))],
        moves: vec![calls, answers],
        operations: vec![Operation { id: format!("{TURN}.1.0"), state: "completed".into(), ..Operation::default() }],
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
        delegated: false,
        posts: vec![post],
        last_offset: 12,
        said: transcript,
        turns: vec![turn()],
        stream: Some(Stream { session: "t".into(), connections: 2, items, ended: true }),
    });
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
fn a_called_agent_is_paid_for_by_its_caller() {
    let paid = |talk: &mut Talk| {
        talk.turns[0].moves[0].results[0].usage = (20, 5);
        talk.turns[0].usage = (40, 11);
    };
    assert!(objections(paid).is_empty());
    assert_eq!(objections(|talk| talk.turns[0].usage = (10, 3)), ["spending"]);
}
