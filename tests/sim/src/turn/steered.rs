//! A person who speaks while an agent is at work: while a tool runs, while a model says something long, which is cut
//! short, and while a model answers, which does not know of it and is asked again. Each message is told once, as a
//! note and not as a turn of its own, and whatever is said in the end was said by a model that knew of all of them.
//!
//! What is under way at a crash is lost: the beginning of a reply that was to be cut short, or a reply that would have
//! been overtaken. So two lines of the transcript may be missing after a crash, and only those.

use std::time::Duration;

use domain::chat::{ChatCall, Part};
use domain::ports::{ActionCall, Conversations};
use schemas::action::{ActionOutcome, ActionType};
use schemas::conversation::{Busy, LogKind, LogRow, TurnStatus};
use schemas::id::Namespace;
use serde_json::{Value, json};
use testkit::contract::words::{conversation_id, turn_query};
use testkit::crash::Run;
use testkit::fake::MemStore;
use testkit::fake::tools::Work;
use testkit::unreliable::CrashPoint;

use super::check::{check, said};
use super::history::memories;
use super::place::Place;
use super::script::{CONVERSATION, LOOK, PLAIN, Script, ben_counts, tool_call};
use super::speaking::half;
use super::{Drilled, Ended, every, person, played};

static SCRIPT: Script = Script {
    said: "count for me",
    definitions: ben_counts,
    // So that there is time to say something meanwhile.
    thought: Duration::from_millis(200),
    reply,
    work,
    ..PLAIN
};

/// What Ada says: to steer, to interrupt, and to steer again.
const FRENCH: &str = "in French";
const STOP: &str = "stop counting";
const KIND: &str = "be kind";
/// The reply that she interrupts, the answer that she does not wait for, and the one that is the last.
const COUNT: &str = "Un, deux, trois.";
const CURT: &str = "D'accord.";
const POLITE: &str = "Avec plaisir.";
/// The note that the tool waits for, and the call of the model that is interrupted.
const NOTE: &str = "t1.note.1";
const INTERRUPTED: &str = "t1.2";

/// One crash at every `stride`th call, before and after it.
///
/// # Errors
/// The first crash that changes history.
pub fn drill_steering(stride: usize) -> Result<Drilled, String> {
    every(stride, play)
}

async fn play(crash: Option<CrashPoint>) -> (Run<Vec<String>>, Drilled) {
    let ended = played(&SCRIPT, crash, speaks).await;
    let drilled = check(&ended).await;
    let (cut_short, overtaken) = transcript(&ended).await;
    moves(&ended, cut_short, overtaken).await;
    notes(&ended).await;
    let run = Run { calls: ended.calls, history: came_to(&ended.place).await };
    (run, Drilled { cut_short: u64::from(cut_short), overtaken: u64::from(overtaken), ..drilled })
}

async fn speaks(place: Place) {
    person::until(|| place.tools.performed().iter().any(|call| call.tool == "look")).await;
    person::posts(&place.world, "p1", FRENCH, Busy::Steer).await;
    person::until(|| !asked(&place, |words| words.contains(FRENCH)).is_empty()).await;
    person::posts(&place.world, "p2", STOP, Busy::Interrupt).await;
    person::until(|| !asked(&place, |words| words.contains(STOP)).is_empty()).await;
    person::posts(&place.world, "p3", KIND, Busy::Steer).await;
}

/// Calls whose models are shown such words.
fn asked(place: &Place, is_such: impl Fn(&str) -> bool) -> Vec<ChatCall> {
    let mut calls = place.models.asked();
    calls.retain(|call| is_such(&SCRIPT.words(call)));
    calls
}

/// What is said follows from what was told last.
fn reply(call: &ChatCall) -> Vec<Part> {
    let words = SCRIPT.words(call);
    if words.contains(KIND) {
        vec![Part::text(POLITE)]
    } else if words.contains(STOP) {
        vec![Part::text(CURT)]
    } else if words.contains(FRENCH) {
        vec![Part::text(COUNT)]
    } else {
        vec![tool_call("look")]
    }
}

/// The tool runs until somebody has said something.
fn work(store: MemStore, call: ActionCall) -> Work {
    Box::pin(async move {
        while !store.has_record(&Namespace::default_ns(), &conversation_id(CONVERSATION), NOTE) {
            tokio::time::sleep(LOOK).await;
        }
        Ok(json!({ "done": call.tool }))
    })
}

/// Answers whether the beginning of the reply that was cut short is there, and the reply that was overtaken.
async fn transcript(ended: &Ended) -> (bool, bool) {
    let Ended { place, crashed, at, .. } = ended;
    let said = said(place).await;
    let [begun, curt, polite] = [half(INTERRUPTED).as_str(), CURT, POLITE].map(|text| format!("ben: {text}"));
    let (cut_short, overtaken) = (said.contains(&begun), said.contains(&curt));
    let mut expected = Vec::from(["count for me", FRENCH, STOP].map(|text| format!("user: {text}")));
    expected.extend(cut_short.then_some(begun));
    expected.push(format!("user: {KIND}"));
    expected.extend(overtaken.then_some(curt));
    expected.push(polite);
    assert_eq!(said, expected, "{at}");
    assert!(*crashed || (cut_short && overtaken), "{at}: nothing was lost, and something is not there: {said:?}");
    (cut_short, overtaken)
}

/// A model is asked again if something was cut short or is not heard of, and only then; what it was asked is paid for.
async fn moves(ended: &Ended, cut_short: bool, overtaken: bool) {
    let Ended { place, at, .. } = ended;
    let rows = place.log().await;
    let bodies = |kind: LogKind| -> Vec<Value> {
        rows.iter().filter(|row| row.record.kind == kind).map(|row| row.record.body.to_value()).collect()
    };
    let moves = bodies(LogKind::Move);
    let cut = moves.iter().filter(|body| body["cut"] == true).count();
    assert!(usize::from(cut_short) <= cut && cut <= 1, "{at}: {moves:?}");
    assert_eq!(moves.len(), 2 + cut + usize::from(overtaken), "{at}: {moves:?}");
    let last: Vec<String> = asked(place, |words| words.contains(KIND)).into_iter().map(|call| call.id).collect();
    assert_eq!(last.last(), Some(&format!("t1.{}", moves.len())), "{at}: nothing came after that");
    assert!(last.iter().all(|id| Some(id) == last.last()), "{at}: who knew of all was asked once: {last:?}");
    let turn = place.turn().await;
    let calls = bodies(LogKind::ProviderCall);
    let used: u64 = calls.iter().filter_map(|call| call["usage"]["input_tokens"].as_u64()).sum();
    assert_eq!((turn.moves as usize, turn.usage.input_tokens), (moves.len(), used), "{at}: {calls:?}");
    if cut_short {
        let place_of = |id: &str| rows.iter().position(|row| row.record.id == id);
        let [said, told] = ["t1.move.2", "t1.note.2"].map(|id| place_of(id).expect("a record"));
        assert!(said < told, "{at}: what was cut short was said before");
        let knew = asked(place, |words| words.contains(KIND) && words.contains(&half(INTERRUPTED)));
        assert_eq!(knew.len(), last.len(), "{at}: the model knows what it had said");
    }
}

/// Each message became a note, once, and none of them a turn.
async fn notes(ended: &Ended) {
    let Ended { place, at, .. } = ended;
    let rows = place.log().await;
    let notes = rows.iter().filter(|row| row.record.kind == LogKind::Note);
    let of: Vec<Value> = notes.map(|row| row.record.body.to_value()["message_id"].clone()).collect();
    assert_eq!(of, ["p1", "p2", "p3"], "{at}");
    let turns = place.world.store.turns(&turn_query()).await.expect("no faults are scripted");
    assert!(turns.len() == 1 && turns[0].status == TurnStatus::Completed, "{at}: {turns:?}");
    let actions = place.world.store.all_actions().into_iter().filter(|rec| rec.asked.actor == person::NAME);
    let outcomes: Vec<_> = actions.map(|rec| (rec.kind, rec.outcome)).collect();
    assert_eq!(outcomes, [(ActionType::Interrupt, Some(ActionOutcome::Ok)); 3], "{at}");
    for text in [FRENCH, STOP, KIND] {
        let last = place.models.asked().pop().expect("a call");
        assert!(SCRIPT.words(&last).contains(text), "{at}: {last:?}");
    }
}

/// What the turn came to, without what a crash may lose.
async fn came_to(place: &Place) -> Vec<String> {
    let mut all: Vec<String> = place.log().await.iter().filter_map(line).collect();
    let last = place.models.asked().pop().expect("a call");
    let shown = last.request.messages.iter().map(|message| SCRIPT.in_words(message));
    all.extend(shown.filter(|words| !may_be_lost(words)));
    all.extend(memories(place).await);
    all
}

/// A record in words, without the numbers of replies.
fn line(row: &LogRow) -> Option<String> {
    let (record, body) = (&row.record, row.record.body.to_value());
    let told = match record.kind {
        LogKind::Message => json!([body["sender_type"], body["text"]]).to_string(),
        LogKind::Note => format!("{} {body}", record.id),
        LogKind::ToolResult => format!("{} {}", record.id, SCRIPT.result(&body)),
        LogKind::Event => body["type"].to_string(),
        LogKind::Move | LogKind::Assembly | LogKind::ProviderCall | LogKind::AsyncResult | LogKind::Summary => {
            return None;
        }
    };
    Some(told).filter(|told| !may_be_lost(told))
}

fn may_be_lost(words: &str) -> bool {
    words.contains(&half(INTERRUPTED)) || words.contains(CURT)
}
