//! Answers of the calls beside the steps: a context, a summary, a reply of the model, the end of an
//! extraction.

use schemas::conversation::{LogKind, TurnError, TurnUsage};
use schemas::id::TurnId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::apply::Applying;
use super::budget::Purse;
use super::decision::TurnDecision;
use super::ids;
use super::open::Calls;
use super::reply;
use super::seats::Seat;
use super::state::{Lane, Stage};
use super::summary::{Compacting, Known};
use super::{budget, compacting};
use crate::chat::{ProviderCallRecord, ToolResult};
use crate::effect::{EffectFailure, Outcome};
use crate::moniker::StepInput;
use crate::tool::PROVIDER_CALLS;

/// Whose the session is, for what its turns cause.
pub(super) struct Place<'a> {
    pub input: &'a StepInput<'a>,
    pub conversation: &'a schemas::id::ConversationId,
    pub depth: u64,
}

/// The kinds of calls, as their keys name them.
pub(super) const ASSEMBLE: &str = "assemble";
pub(super) const COMPACT: &str = "compact";
pub(super) const CHAT: &str = "chat";
pub(super) const EXTRACT: &str = "extract";

pub(super) fn key(turn: &TurnId, what: &str, number: u32) -> String {
    format!("{turn}/{what}/{number}")
}

/// The call that a lane waits for: its kind, and its number among those of the turn.
fn awaited(lane: &Lane) -> Option<(&'static str, u32)> {
    match lane.stage {
        Stage::Assemble => Some((ASSEMBLE, lane.turn.moves)),
        Stage::Compact => Some((COMPACT, lane.compactions + 1)),
        Stage::Think => Some((CHAT, lane.next_reply())),
        Stage::Extract => Some((EXTRACT, 0)),
        Stage::Queued | Stage::Wait | Stage::WaitAsync => None,
    }
}

/// The key of that call.
pub(super) fn awaited_key(lane: &Lane) -> Option<String> {
    awaited(lane).map(|(what, number)| key(&lane.turn.turn_id, what, number))
}

/// Takes an answer; `false` if no lane waits for it any more.
pub(super) fn take(step: &mut Applying, place: &Place<'_>, key_of: &str, outcome: &Outcome) -> bool {
    let waits = step.state.lanes.iter().find_map(|lane| {
        let (turn, (what, number)) = (&lane.turn.turn_id, awaited(lane)?);
        (key(turn, what, number) == key_of).then(|| (turn.clone(), what, number))
    });
    let Some((turn, what, number)) = waits else { return false };
    step.emits.turn = Some(turn.clone());
    match what {
        ASSEMBLE => assembled(step, &turn, outcome),
        COMPACT => compacting::taken(step, &turn, number, outcome),
        CHAT => replied(step, place, &turn, number, outcome),
        _ => extracted(step, &turn, outcome),
    }
    true
}

/// Critical: without a context the turn fails (SPEC W-CTX-07).
fn assembled(step: &mut Applying, turn: &TurnId, outcome: &Outcome) {
    let assembly = match outcome.assembly() {
        Ok(assembly) => assembly,
        Err(EffectFailure { code, message, .. }) => {
            step.event(turn, ids::ASSEMBLY_FAILED, json!({"code": code.as_str(), "message": message}));
            let error = TurnError { code: code.as_str().to_owned(), message, provider: None, raw: None };
            step.apply(vec![TurnDecision::FailTurn { turn_id: turn.clone(), error, cancelled: false }]);
            return;
        }
    };
    let notes = std::mem::take(&mut step.state.notes);
    let upto = |known: &Option<Known>| known.as_ref().map(|known| known.upto);
    if upto(&assembly.summary) > upto(&step.state.summary) {
        step.state.summary.clone_from(&assembly.summary);
    }
    let Some(lane) = step.state.lane_mut(turn) else { return };
    let run = ids::assembly_id(turn, lane.turn.moves);
    lane.turn.context_assembly_run_id = Some(run.clone());
    let mut limits = assembly.limits.clone();
    if let Some(to) = &lane.spent_to {
        limits.budgets = limits.budgets.within(&to.bounds());
    }
    lane.limits = Some(limits);
    if assembly.limits.per_call {
        lane.notes.extend(notes);
    }
    step.record(LogKind::Assembly, turn, run, assembly.as_ref());
    step.apply(vec![TurnDecision::ResumeFromTool { turn_id: turn.clone() }]);
}

fn replied(step: &mut Applying, place: &Place<'_>, turn: &TurnId, number: u32, outcome: &Outcome) {
    let reply = match outcome.reply() {
        Ok(reply) => reply,
        Err(failure) => {
            let (code, message) = ("provider_failed".to_owned(), failure.message);
            let error = TurnError { code, message, provider: None, raw: None };
            step.apply(vec![TurnDecision::FailTurn { turn_id: turn.clone(), error, cancelled: false }]);
            return;
        }
    };
    if reply.is_uncalled && (reply.over.is_some() || reply.over_budget.is_some()) {
        // No model was asked, and the turn is about to end: nobody is asked about it either.
        return;
    }
    if let Some(over) = &reply.over {
        return budget::ask(step, turn, over);
    }
    if let Some(tokens) = reply.over_budget {
        compacting::begin(step, turn, tokens);
        return;
    }
    if let Some(record) = &reply.record {
        called(step, turn, record);
    }
    let Some(lane) = step.state.lane(turn) else { return };
    // Turns beside this one may have looped somebody in meanwhile.
    let seats: Vec<Seat> = reply.seats.iter().cloned().chain(step.state.seats_since(lane)).collect();
    let calls = Calls {
        namespace: &place.input.session.namespace,
        conversation: place.conversation,
        session: &place.input.session.session_id,
        agent: place.input.agent,
        turn,
        depth: place.depth.max(lane.depth),
        number,
        tools: &reply.tools,
        constraints: &reply.constraints,
        projects: &reply.project_ids,
        seats: &seats,
        purse: Purse::of(lane, &step.state, reply),
        room: step.state.room(),
        messages: &reply.messages,
        may_compact: lane.limits.as_ref().is_some_and(|limits| limits.context.is_some()),
    };
    let acted = reply::plan(lane, &calls, reply);
    count(step, turn, &acted);
    if let Some(record) = &acted.record {
        step.record(LogKind::Move, turn, ids::record_id_of(turn, ids::MOVE, number), record);
    }
    for result in &acted.results {
        let id = ids::record_id_of(turn, ids::RESULT, format_args!("{number}.{}", result.tool_call_id));
        step.record(LogKind::ToolResult, turn, bounded(id), &SyncResult { number, result });
        if let Some(error) = &result.error {
            let id = result.tool_call_id.as_str();
            let call = reply.reply.as_ref().and_then(|said| said.tool_calls().find(|call| call.id == id));
            let of = (call.map_or("", |call| call.name.as_str()), id);
            failed_tool(step, turn, &format!("{number}.{id}"), of, &json!(error));
        }
    }
    step.apply(acted.decisions);
}

/// The body of a `tool_result` record.
#[derive(Serialize)]
pub(super) struct SyncResult<'a> {
    #[serde(rename = "move")]
    pub number: u32,
    #[serde(flatten)]
    pub result: &'a ToolResult,
}

/// Takes the calls of models that were made for an operation, as its result or guidance of the fleet tells them;
/// `false` if none are told. Whatever became of the turn, they cost.
pub(super) fn called_for(step: &mut Applying, told: &Value) -> bool {
    let told = told.get(PROVIDER_CALLS).and_then(|calls| Vec::<ProviderCallRecord>::deserialize(calls).ok());
    let calls = told.unwrap_or_default();
    for call in &calls {
        if let Ok(turn) = TurnId::parse(&call.turn_id) {
            step.state.moves = step.state.moves.saturating_add(1);
            called(step, &turn, call);
            step.emits.turn.get_or_insert(turn);
        }
    }
    !calls.is_empty()
}

/// A call of a provider: its record, and what it used.
pub(super) fn called(step: &mut Applying, turn: &TurnId, record: &ProviderCallRecord) {
    let id = bounded(format!("{}.{}", record.id, ids::CALL.as_str()));
    step.record(LogKind::ProviderCall, turn, id, record);
    let mut used = TurnUsage { cost: record.cost.unwrap_or(0.0), ..TurnUsage::default() };
    if let Some(usage) = &record.usage {
        (used.input_tokens, used.output_tokens) = (usage.input_tokens, usage.output_tokens);
    }
    step.state.spend(turn, used);
}

/// Rounds and issues of the lane.
fn count(step: &mut Applying, turn: &TurnId, acted: &reply::Acted) {
    step.state.moves += u64::from(acted.record.is_some());
    let Some(lane) = step.state.lane_mut(turn) else { return };
    if !acted.compacts.is_empty() {
        lane.compaction = Some(Compacting { calls: acted.compacts.clone(), ..Compacting::default() });
    }
    lane.turn.moves += u32::from(acted.record.is_some());
    lane.rounds += u32::from(acted.is_round);
    lane.declined = acted.is_declined;
    lane.turn.issues.response_cut |= acted.is_cut;
    lane.turn.issues.moves_exhausted |= acted.is_exhausted;
}

/// Never silent (SPEC W-ERR-07, W-ASY-03). `tool` is its name and the model's id of the call.
pub(super) fn failed_tool(step: &mut Applying, turn: &TurnId, which: &str, (tool, call): (&str, &str), error: &Value) {
    if let Some(lane) = step.state.lane_mut(turn) {
        lane.turn.issues.tool_failures += 1;
    }
    let detail = json!({"type": "tool.failed", "turn_id": turn, "tool": tool, "tool_call_id": call, "error": error});
    let id = bounded(ids::record_id_of(turn, ids::TOOL_FAILED, which));
    step.record(LogKind::Event, turn, id, &detail);
}

/// Ids of calls are the provider's: of any length and alphabet.
pub(super) fn bounded(id: String) -> String {
    const MAX: usize = schemas::limits::ID_BYTES_MAX;
    if id.len() <= MAX { id } else { crate::action::hash::hex(&crate::action::hash::sha256(&id)) }
}

fn extracted(step: &mut Applying, turn: &TurnId, outcome: &Outcome) {
    let Some(at) = step.state.lanes.iter().position(|lane| lane.turn.turn_id == *turn) else { return };
    let lane = step.state.lanes.remove(at);
    let failure = match outcome {
        Outcome::Failed(failure) => Some((failure.code.as_str(), failure.message.as_str())),
        _ => None,
    };
    step.extracted(lane, failure);
}
