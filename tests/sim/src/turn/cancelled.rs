//! A turn that is cancelled while its model speaks: by itself, or with its session, which is destroyed. It ends once,
//! what was said by then is recorded and paid for, and nobody is asked again.
//!
//! What is under way at a crash is lost: the beginning of the reply that was to be cut short may be missing after a
//! crash, with the records of its call, and nothing else.

use std::time::Duration;

use domain::chat::{ChatCall, Part};
use schemas::action::ActionOutcome;
use schemas::conversation::{LogKind, TurnStatus};
use schemas::event::EventKind;
use schemas::session::{SessionStatus, StopReason};
use serde_json::{Value, json};
use testkit::crash::Run;
use testkit::unreliable::CrashPoint;

use super::check::{check, said};
use super::place::Place;
use super::script::{PLAIN, Script, TURN, ben_counts, tool_call};
use super::speaking::half;
use super::{Drilled, Ended, every, person, played};
use crate::drill::post;

static SCRIPT: Script = Script {
    said: "count for me",
    definitions: ben_counts,
    // So that there is time to end the turn meanwhile.
    thought: Duration::from_millis(200),
    reply,
    ..PLAIN
};

/// The call of the model that is cut short, and what the log has of it.
const SPEAKING: &str = "t1.2";
const MAY_BE_LOST: [&str; 3] = ["t1.2.call", "t1.move.2", "t1.m2"];
/// The id of what is ordered.
const ORDER: &str = "order";

/// What is ordered while the model speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Cancel,
    Destroy,
}

impl Order {
    fn body(self) -> Value {
        match self {
            Self::Cancel => {
                let payload = json!({"guidance": {"cancel_turn": TURN}, "mode": "now"});
                json!({"type": "interrupt", "session_id": "s1", "payload": payload})
            }
            Self::Destroy => json!({"type": "destroy", "session_id": "s1"}),
        }
    }
}

/// The turn is cancelled; one crash at every `stride`th call, before and after it.
///
/// # Errors
/// The first crash that changes history.
pub fn drill_cancelling(stride: usize) -> Result<Drilled, String> {
    every(stride, |crash| play(crash, Order::Cancel))
}

/// The same, and its session is destroyed.
///
/// # Errors
/// The first crash that changes history.
pub fn drill_destroying(stride: usize) -> Result<Drilled, String> {
    every(stride, |crash| play(crash, Order::Destroy))
}

async fn play(crash: Option<CrashPoint>, order: Order) -> (Run<Vec<String>>, Drilled) {
    let ended = played(&SCRIPT, crash, move |place| orders(place, order)).await;
    let drilled = check(&ended).await;
    let cut_short = transcript(&ended).await;
    moves(&ended, cut_short).await;
    over(&ended, order).await;
    let run = Run { calls: ended.calls, history: came_to(&ended.place).await };
    (run, Drilled { cut_short: u64::from(cut_short), ..drilled })
}

async fn orders(place: Place, order: Order) {
    person::until(|| place.models.asked().iter().any(|call| call.id == SPEAKING)).await;
    post(&place.world, ORDER, &order.body()).await;
}

fn reply(call: &ChatCall) -> Vec<Part> {
    if call.id == SPEAKING { vec![Part::text("One, two, three.")] } else { vec![tool_call("look")] }
}

/// Answers whether the beginning of the reply that was cut short is there.
async fn transcript(ended: &Ended) -> bool {
    let Ended { place, crashed, at, .. } = ended;
    let (said, begun) = (said(place).await, format!("ben: {}", half(SPEAKING)));
    let cut_short = said.contains(&begun);
    let mut expected = vec![format!("user: {}", SCRIPT.said)];
    expected.extend(cut_short.then_some(begun));
    assert_eq!(said, expected, "{at}");
    assert!(*crashed || cut_short, "{at}: nothing was lost, and it is not there");
    cut_short
}

/// Moves are numbered without a gap, what models were asked for them is paid for, and they were asked for no other.
async fn moves(ended: &Ended, cut_short: bool) {
    let Ended { place, at, .. } = ended;
    let rows = place.log().await;
    let bodies = |kind: LogKind| -> Vec<Value> {
        rows.iter().filter(|row| row.record.kind == kind).map(|row| row.record.body.to_value()).collect()
    };
    let (moves, calls) = (bodies(LogKind::Move), bodies(LogKind::ProviderCall));
    let told: Vec<_> = moves.iter().map(|body| (body["move"].as_u64(), body["cut"] == true)).collect();
    // A call that is cut before its model is asked is a move in which nothing was said, and that nobody bills.
    let expected = [(Some(1_u64), false), (Some(2), true)];
    assert!(told == expected || (!cut_short && told == expected[..1]), "{at}: {moves:?}");
    assert_eq!(calls.len(), 1 + usize::from(cut_short), "{at}: {calls:?}");
    let used: u64 = calls.iter().filter_map(|call| call["usage"]["input_tokens"].as_u64()).sum();
    let turn = place.turn().await;
    assert_eq!((turn.moves as usize, turn.usage.input_tokens), (moves.len(), used), "{at}: {calls:?}");
    let asked: Vec<String> = place.models.asked().into_iter().map(|call| call.id).collect();
    assert!(asked.iter().all(|id| ["t1.1", SPEAKING].contains(&id.as_str())), "{at}: {asked:?}");
}

/// The turn, and the session if it was destroyed, ended as was ordered, once.
async fn over(ended: &Ended, order: Order) {
    let Ended { place, at, .. } = ended;
    let (turn, is_destroyed) = (place.turn().await, order == Order::Destroy);
    let why = turn.error.as_ref().map(|error| error.code.as_str());
    let expected = if is_destroyed { "session_ended" } else { "cancelled" };
    assert_eq!((turn.status, turn.cancelled, why), (TurnStatus::Failed, true, Some(expected)), "{at}");
    let events = place.log().await.into_iter().filter(|row| row.record.kind == LogKind::Event);
    let names = events.filter_map(|row| row.record.body.to_value()["type"].as_str().map(str::to_owned));
    let ends: Vec<String> = names.filter(|name| name.starts_with("turn.")).collect();
    assert_eq!(ends, ["turn.failed"], "{at}");
    let sessions = place.world.store.all_sessions();
    let [session] = &sessions[..] else { panic!("{at}: {sessions:?}") };
    let expected = match order {
        Order::Cancel => (SessionStatus::Running, None),
        Order::Destroy => (SessionStatus::Stopped, Some(StopReason::Destroyed)),
    };
    assert_eq!((session.head.status, session.head.stop_reason), expected, "{at}");
    let commits = place.world.store.commit_log();
    let steps = commits.iter().flat_map(|commit| &commit.entry.steps);
    let cancels = steps.filter(|step| step.data.as_ref().is_some_and(|data| data.as_str().contains("FAIL_TURN")));
    let events = commits.iter().flat_map(|commit| &commit.entry.events);
    let statuses = events.filter(|event| event.kind == EventKind::Status).map(|event| event.data.to_value());
    let stops = statuses.filter(|data| data["status"] == "stopped");
    let times = (cancels.count(), stops.count());
    assert_eq!(times, (usize::from(!is_destroyed), usize::from(is_destroyed)), "{at}: {commits:?}");
    let ordered = place.world.store.all_actions().into_iter().find(|rec| rec.action_id.as_str() == ORDER);
    assert_eq!(ordered.and_then(|rec| rec.outcome), Some(ActionOutcome::Ok), "{at}");
}

/// The log and the end of the turn, without what a crash may lose.
async fn came_to(place: &Place) -> Vec<String> {
    let rows = place.log().await;
    let kept = rows.iter().filter(|row| !MAY_BE_LOST.contains(&row.record.id.as_str()));
    let mut all: Vec<String> = kept.map(|row| format!("{} {}", row.record.kind.as_str(), row.record.id)).collect();
    let turn = place.turn().await;
    all.push(format!("{:?} {:?}, {} open", turn.status, turn.error, turn.pending_operations));
    all
}
