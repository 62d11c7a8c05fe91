//! A context becomes shorter, piece by piece (SPEC 1.24, 4.8): each piece is asked for, archived, and
//! recorded by a step of its own, so that a crash loses at most the one that was not recorded, and none
//! is asked for twice.

use schemas::conversation::LogKind;
use schemas::id::TurnId;
use serde_json::{Value, json};

use super::answers::{SyncResult, bounded, called};
use super::apply::Applying;
use super::decision::TurnDecision;
use super::state::Stage;
use super::summary::{Compacted, Compacting, Extent, Known, Summarised};
use super::{asking, ids};
use crate::chat::ToolResult;
use crate::effect::Outcome;

/// The next request would be over its budget.
pub(super) fn begin(step: &mut Applying, turn: &TurnId, tokens: u64) {
    if let Some(lane) = step.state.lane_mut(turn) {
        lane.stage = Stage::Compact;
        lane.compaction = Some(Compacting { tokens_before: Some(tokens), ..Compacting::default() });
    }
}

/// Takes what the `number`th piece of the turn came to. Nothing in here fails a turn.
pub(super) fn taken(step: &mut Applying, turn: &TurnId, number: u32, outcome: &Outcome) {
    let compacted = outcome.compacted().cloned();
    let compacted =
        compacted.unwrap_or_else(|failure| Compacted { failure: Some(failure.message), ..Compacted::default() });
    if let Some(record) = &compacted.record {
        called(step, turn, record);
    }
    let Some(lane) = step.state.lane_mut(turn) else { return };
    lane.compactions = number;
    if compacted.cut {
        // Its turn ends. If it does not, the piece is made all the same.
        return;
    }
    let Some(compaction) = &mut lane.compaction else { return };
    // A call that broke off has counted nothing.
    let tokens = Some(compacted.tokens).filter(|tokens| *tokens > 0).or(compaction.tokens_before).unwrap_or(0);
    compaction.tokens_before.get_or_insert(tokens);
    match (compacted.made, compacted.failure) {
        (Some(made), _) => {
            record(step, turn, number, &made);
            if let Some(over) = &compacted.over {
                go_on_without_model(step, turn, number, &asking::met(over));
            }
        }
        (None, Some(failure)) if must_go_on(step, turn, tokens) => go_on_without_model(step, turn, number, &failure),
        (None, Some(failure)) => {
            failed(step, turn, number, &failure, "the context is as it was");
            end(step, turn, number, tokens, Some(failure));
        }
        (None, None) => end(step, turn, number, tokens, None),
    }
}

/// Its batch is in the archive; from here on the model is shown the summary (invariant C1).
fn record(step: &mut Applying, turn: &TurnId, number: u32, made: &Summarised) {
    let id = ids::record_id_of(turn, ids::SUMMARY, number);
    if made.summary.scope == Extent::Conversation {
        let known = step.state.summary.as_ref().map(|known| &known.id);
        if known != made.base.as_ref() {
            // Another turn was faster: this one goes on from there.
            return;
        }
        step.state.summary = Some(Known { id: id.clone(), upto: made.summary.upto });
    }
    if let Some(compaction) = step.state.lane_mut(turn).and_then(|lane| lane.compaction.as_mut()) {
        compaction.batches += u64::from(made.messages > 0);
        compaction.messages += made.messages;
    }
    step.record(LogKind::Summary, turn, id, &made.summary);
}

/// For this piece, or for those that are still to come.
fn go_on_without_model(step: &mut Applying, turn: &TurnId, number: u32, why: &str) {
    failed(step, turn, number, why, "the oldest messages are shortened without a model");
    if let Some(compaction) = step.state.lane_mut(turn).and_then(|lane| lane.compaction.as_mut()) {
        compaction.without_model = true;
    }
}

/// A context that fits the window is left as it is when the model fails (SPEC 4.8). One that does not is
/// made shorter all the same: else no model would take it.
fn must_go_on(step: &Applying, turn: &TurnId, tokens: u64) -> bool {
    let Some(lane) = step.state.lane(turn) else { return false };
    let window = lane.limits.as_ref().and_then(|limits| limits.context.as_ref()).map(|context| context.window);
    let is_first = lane.compaction.as_ref().is_some_and(|compaction| !compaction.without_model);
    is_first && window.is_some_and(|window| tokens > window)
}

fn failed(step: &mut Applying, turn: &TurnId, number: u32, message: &str, so: &str) {
    let detail = json!({"type": "context_compaction.failed", "turn_id": turn, "message": message, "so": so});
    step.record(LogKind::Event, turn, ids::record_id_of(turn, ids::COMPACTION_FAILED, number), &detail);
}

/// Tells who asked, and goes on to the reply.
fn end(step: &mut Applying, turn: &TurnId, number: u32, tokens: u64, failure: Option<String>) {
    let Some(lane) = step.state.lane_mut(turn) else { return };
    let Some(compaction) = lane.compaction.take() else { return };
    lane.compacted_for = Some(lane.next_reply());
    let moves = lane.turn.moves;
    let statistics = statistics(&compaction, tokens, failure);
    for call in &compaction.calls {
        let result = ToolResult::ok(call.clone(), statistics.clone());
        let id = bounded(ids::record_id_of(turn, ids::RESULT, format_args!("{moves}.{call}")));
        step.record(LogKind::ToolResult, turn, id, &SyncResult { number: moves, result: &result });
    }
    if compaction.messages > 0 {
        let mut detail = statistics;
        detail["type"] = "context_compaction.completed".into();
        detail["turn_id"] = json!(turn);
        step.record(LogKind::Event, turn, ids::record_id_of(turn, ids::COMPACTED, number), &detail);
    }
    step.apply(vec![TurnDecision::ResumeFromTool { turn_id: turn.clone() }]);
}

/// What `compact_context` answers (SPEC 4.8): all zero but the tokens if there was nothing to do.
fn statistics(compaction: &Compacting, tokens: u64, failure: Option<String>) -> Value {
    let mut statistics = json!({
        "compacted": compaction.messages > 0,
        "batches_created": compaction.batches,
        "messages_compressed": compaction.messages,
        "tokens_before": compaction.tokens_before.unwrap_or(tokens),
        "tokens_after": tokens,
    });
    if let Some(failure) = failure {
        statistics["message"] = format!("no more could be summarised: {failure}").into();
    }
    statistics
}
