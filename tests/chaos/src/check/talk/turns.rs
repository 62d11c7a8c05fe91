//! Every accepted message has its turn, and every turn an end: with one answer, with the failure that the
//! script has for it, or because somebody ended it.

use std::collections::BTreeSet;

use super::super::Findings;
use crate::fleet::agents::{PLANNED, ROUNDS_MAX};
use crate::plan::Word;
use crate::seen::Told;
use crate::seen::talk::{Said, Talk, Turn};

/// `over` are the operations that nobody waits for any more: agents that were called end with them.
pub fn check(talk: &Talk, over: &BTreeSet<&str>, findings: &mut Findings) {
    let id = Some(talk.id.as_str());
    for post in talk.posts.iter().filter(|post| post.told == Told::Accepted) {
        let count = talk.turns.iter().filter(|turn| turn.id == post.turn).count();
        findings.expect("turn lost", id, count == 1, || format!("{} has {count} turns {:?}", post.id, post.turn));
    }
    for turn in &talk.turns {
        let post = talk.posts.iter().find(|post| post.turn == turn.id);
        // What got no answer may have been taken.
        let unheard = talk.posts.iter().any(|post| post.told == Told::Nothing);
        findings.expect("turn from nowhere", id, post.is_some() || talk.delegated || unheard, || {
            format!("nobody has said what turn {} answers", turn.id)
        });
        if turn.cancelled {
            cancelled(talk, turn, over, findings);
        } else {
            ended(talk, turn, post.map(|post| post.word), findings);
        }
        moves(talk, turn, findings);
        messages(talk, turn, findings);
    }
}

/// Only those that somebody wanted to end, and those that nobody waits for any more.
fn cancelled(talk: &Talk, turn: &Turn, over: &BTreeSet<&str>, findings: &mut Findings) {
    let (id, name) = (Some(talk.id.as_str()), &turn.id);
    let with_call = talk.called_by.as_deref().is_some_and(|call| over.contains(call));
    findings.expect("turn cancelled", id, with_call || talk.cancels.contains(name), || {
        format!("{name} is cancelled ({:?}), and nobody wanted that", turn.error)
    });
    findings
        .expect("turn not ended", id, turn.status == "failed", || format!("{name} is cancelled and {:?}", turn.status));
}

/// A model that is shown guidance last says something else than the script has for the message.
fn ended(talk: &Talk, turn: &Turn, word: Option<Word>, findings: &mut Findings) {
    let (id, name) = (Some(talk.id.as_str()), &turn.id);
    match turn.status.as_str() {
        "completed" => {
            findings.expect("turn ended wrong", id, talk.guided || word != Some(Word::Doomed), || {
                format!("{name} is completed, and its model was to refuse")
            });
            let bounded = talk.guided || word != Some(Word::Limit) || turn.exhausted;
            findings.expect("turn ended wrong", id, bounded, || {
                format!("{name} was to reach the bound on its moves, and has not")
            });
        }
        "failed" => {
            let planned = turn.error.as_ref().is_some_and(|error| error.contains(PLANNED));
            findings.expect("turn failed", id, planned && word == Some(Word::Doomed), || {
                format!("{name} ({word:?}) failed: {:?}", turn.error)
            });
        }
        other => findings.add("turn not ended", id, format!("{name} is {other:?}")),
    }
}

/// Moves are numbered from 1, as many as the turn counts, and few enough call tools.
fn moves(talk: &Talk, turn: &Turn, findings: &mut Findings) {
    let (id, name) = (Some(talk.id.as_str()), &turn.id);
    let numbers: Vec<u64> = turn.moves.iter().map(|one| one.number).collect();
    let gapless = numbers.iter().copied().eq(1..=turn.counted);
    findings.expect("moves", id, gapless, || format!("{name} counts {} moves and has {numbers:?}", turn.counted));
    let rounds = turn.moves.iter().filter(|one| !one.calls.is_empty()).count() as u64;
    findings.expect("too many rounds", id, rounds <= ROUNDS_MAX, || {
        format!("{name} called tools in {rounds} moves; {ROUNDS_MAX} are allowed")
    });
}

/// What a move says is one message, and a completed turn ends with one.
fn messages(talk: &Talk, turn: &Turn, findings: &mut Findings) {
    let id = Some(talk.id.as_str());
    let is_answer = |said: &Said| said.sender == "agent" && said.role != "user" && said.event == "utterance";
    let is_its = |said: &&Said| said.turn == turn.id && is_answer(said);
    let said: Vec<&str> = talk.said.iter().filter(is_its).map(|said| said.id.as_str()).collect();
    let due: Vec<String> =
        turn.moves.iter().filter(|one| one.spoke).map(|one| format!("{}.m{}", turn.id, one.number)).collect();
    let same = said.len() == due.len() && said.iter().copied().collect::<BTreeSet<_>>().len() == said.len();
    findings.expect("message and move", id, same && due.iter().all(|due| said.contains(&due.as_str())), || {
        format!("turn {} has the messages {said:?}, and its moves said {due:?}", turn.id)
    });
    let last = format!("{}.m{}", turn.id, turn.counted);
    let count = said.iter().filter(|one| **one == last).count();
    findings.expect("final message", id, turn.status != "completed" || count == 1, || {
        format!("turn {} is completed with {count} final messages", turn.id)
    });
}
