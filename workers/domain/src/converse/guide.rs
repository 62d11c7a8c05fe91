//! Guidance for a conversation (SPEC K-23): a note for the model of each active turn, or for the next
//! turn if none is active; `{"cancel_turn": id}` ends a turn. A posted message is answered in any case: it
//! starts a turn if no active one can take it.

use schemas::conversation::{Caller, LogKind, Turn, TurnError};
use schemas::id::TurnId;
use serde_json::{Value, json};

use super::apply::Applying;
use super::decision::TurnDecision;
use super::quoting::{IN_REPLY_TO, heading, quoted};
use super::state::{Lane, Stage, TalkState};
use super::transcript::{BY, parts_in};
use super::{agents, answers, ids, start, voices};
use crate::chat::Part;

/// Fields of the fleet's own guidance: which turn a posted message becomes, and what a called agent has used.
/// Guidance of anybody else must not have them, for they speak for others.
pub const OWN_FIELDS: [&str; 2] = [start::AS_TURN, agents::SPENT];

/// Stands for pictures that came as guidance while no turn was active.
const NO_PICTURE: &str = "A picture came while nothing was going on. It was not kept; ask for it again.";
/// Cancelled turns that are remembered in case they begin later; of more, the oldest are forgotten.
const CANCELLED_MAX: usize = 64;

/// The turn that guidance ends; it is about no other then.
fn cancelled(guidance: &Value) -> Option<&str> {
    guidance.get("cancel_turn").and_then(Value::as_str)
}

/// Whether guidance ends a turn, and so what a model is asked for it, urgent or not.
pub(super) fn ends_work(guidance: &Value) -> bool {
    cancelled(guidance).is_some()
}

/// Keys of the calls that guidance ends before their time: the replies of all turns or, if it ends a turn, whatever a
/// model is asked for that turn, so that what was used by then is recorded. Turns beside it go on (SPEC W-TRN-06).
/// Without guidance the session ends, and all turns do. Calls of other kinds have nothing to say, and a summary is of
/// use after guidance that ends nothing, too.
pub(super) fn cuts(state: &TalkState, guidance: Option<&Value>) -> Vec<String> {
    let asks = |lane: &Lane| matches!(lane.stage, Stage::Think | Stage::Compact);
    let is_cut = |lane: &&Lane| match guidance.map(cancelled) {
        None => asks(lane),
        Some(Some(turn)) => asks(lane) && lane.turn.turn_id.as_str() == turn,
        Some(None) => lane.stage == Stage::Think,
    };
    state.lanes.iter().filter(is_cut).filter_map(answers::awaited_key).collect()
}

pub(super) fn take(step: &mut Applying, place: &start::Place<'_>, guidance: &Value) {
    if let Some(turn) = cancelled(guidance) {
        if let Ok(turn_id) = TurnId::parse(turn) {
            cancel(step, turn_id);
        }
        return;
    }
    if agents::told_spent(step, guidance) {
        return;
    }
    let parts = parts_in(guidance);
    let (text, replied) = (words(guidance, &parts), quoted(guidance));
    let told = step.state.lanes.iter().filter(|lane| lane.is_told());
    let active: Vec<(TurnId, Stage, Option<String>)> =
        told.map(|lane| (lane.turn.turn_id.clone(), lane.stage, somebody_else(guidance, &lane.turn))).collect();
    if active.is_empty()
        && let Some(decisions) = start::plan_posted(place, guidance)
        && start::begin(step, decisions)
    {
        return;
    }
    step.state.notes_taken += 1;
    let number = step.state.notes_taken;
    if let [(turn, ..)] = active.as_slice() {
        step.emits.turn = Some(turn.clone());
    }
    if active.is_empty() {
        let is_picture = text.is_empty() && !parts.is_empty();
        let text = if is_picture { NO_PICTURE } else { text.as_str() };
        step.state.keep_note(&format!("{}{text}", replied.as_deref().map(heading).unwrap_or_default()));
        return;
    }
    for (turn, stage, by) in active {
        let mut body = json!({"text": text, "message_id": guidance.get("message_id"), "from": "guidance"});
        if !parts.is_empty() {
            body["content"] = json!(parts);
        }
        for (field, known) in [(IN_REPLY_TO, &replied), (BY, &by)] {
            if let Some(known) = known {
                body[field] = json!(known);
            }
        }
        step.record(LogKind::Note, &turn, ids::record_id_of(&turn, ids::NOTE, number), &body);
        if stage == Stage::WaitAsync {
            step.apply(vec![TurnDecision::ResumeFromTool { turn_id: turn.clone() }]);
        }
        if let Some(lane) = step.state.lane_mut(&turn) {
            lane.tell();
            // A call that is under way does not know of it; one that begins later does, and its reply says so.
            lane.unseen += u32::from(stage == Stage::Think);
        }
    }
}

/// Who has posted what is told, if that is not the one whom the turn answers: the model cannot know. By the id, since
/// the one who is answered may go by the same name.
fn somebody_else(guidance: &Value, turn: &Turn) -> Option<String> {
    let user = guidance.get(start::AS_TURN)?.get("user_id")?.as_str()?;
    let is_answered = match &turn.caller {
        Caller::User { user_id } => [user, start::SOMEBODY].contains(&user_id.as_str()),
        // Nobody knows who it was.
        Caller::Agent { .. } | Caller::Workflow { .. } => user == start::SOMEBODY,
    };
    let name = guidance.get("name").and_then(Value::as_str).filter(|name| *name != user && voices::is_plain(name));
    let label = name.map_or_else(|| user.to_owned(), |name| format!("{name} ({user})"));
    (!is_answered).then_some(label)
}

/// Ends a turn. Control does not wait for work, so the input of the turn may still be to come: it is
/// remembered for a while.
pub(super) fn cancel(step: &mut Applying, turn_id: TurnId) {
    let cancelled = &mut step.state.cancelled;
    cancelled.retain(|known| *known != turn_id);
    if step.state.lanes.iter().all(|lane| lane.turn.turn_id != turn_id) {
        cancelled.push(turn_id);
        let excess = cancelled.len().saturating_sub(CANCELLED_MAX);
        cancelled.drain(..excess);
        return;
    }
    step.emits.turn = Some(turn_id.clone());
    let error = TurnError {
        code: "cancelled".to_owned(),
        message: "the turn was cancelled".to_owned(),
        provider: None,
        raw: None,
    };
    step.apply(vec![TurnDecision::FailTurn { turn_id, error, cancelled: true }]);
}

/// What is told in words; without a text of its own, that of its parts. Pictures are for turns alone: notes that wait
/// for one are in the state.
fn words(guidance: &Value, parts: &[Part]) -> String {
    let text = guidance.as_str().or_else(|| ["note", "text"].iter().find_map(|key| guidance.get(key)?.as_str()));
    match text {
        Some(text) => text.to_owned(),
        None if !parts.is_empty() => parts.iter().filter_map(Part::as_text).collect(),
        None => guidance.to_string(),
    }
}
