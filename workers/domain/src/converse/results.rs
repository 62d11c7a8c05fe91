//! An operation has ended (SPEC W-LOOP-03, W-LOOP-06): its result goes to the turn that waits for it.

use schemas::conversation::TurnPhase;
use schemas::definition::InvocationMode;
use schemas::id::OperationId;
use serde_json::Value;

use super::agents;
use super::decision::TurnDecision;
use super::open;
use super::state::{Approved, Ended, Lane, Open, Stage};
use crate::chat::ToolResult;
use crate::tool;

/// How a result says what it is of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Named<'a> {
    Operation(&'a str),
    /// By the model's own id of the call.
    Call(&'a str),
}

/// The result that an action brings; `None` if it names no operation.
pub(super) fn read(payload: &Value, known: impl Fn(Named<'_>) -> Option<(OperationId, String)>) -> Option<Ended> {
    let text = |name: &str| payload.get(name).filter(|id| !id.is_null()).and_then(Value::as_str);
    let named = text("operation_id").map(Named::Operation).or_else(|| text("tool_call_id").map(Named::Call))?;
    let (operation_id, call_id) = known(named)?;
    let result = match (payload.get("error"), payload.get("result")) {
        (Some(error), _) if !error.is_null() => ToolResult::failed(call_id, tool::tool_error(error)),
        (_, result) => ToolResult::ok(call_id, result.cloned().unwrap_or(Value::Null)),
    };
    Some(Ended { operation_id, result, payload: payload.clone() })
}

/// What follows from a result.
pub(super) struct Settled {
    /// The result as the model gets it; absent if it only opened a gate.
    pub result: Option<ToolResult>,
    pub decisions: Vec<TurnDecision>,
}

/// Plans what a result means for its lane. `open` has not been taken out of the lane yet.
pub(super) fn plan(lane: &Lane, open: &Open, ended: &Ended) -> Settled {
    let turn_id = lane.turn.turn_id.clone();
    let mut decisions = Vec::new();
    let mut result = ended.result.clone();
    if let Some(approved) = &open.approved {
        let (is_yes, reason) = answer(&result);
        match approved {
            Approved::Answer if is_yes => result = said(result),
            // Budgets are no matter of one lane: they have been settled before.
            Approved::Answer | Approved::Budget { .. } => {}
            _ if !is_yes => result = open::denied(&open.call_id, reason.as_deref()),
            Approved::Task { operation } => {
                let Open { is_async, number, asks_model, .. } = *open;
                let operation = operation.clone();
                decisions.push(TurnDecision::DispatchTask { turn_id, operation, is_async, number, asks_model });
                return Settled { result: None, decisions };
            }
            Approved::Agent { call } => {
                let (turn_id, number) = (turn_id.clone(), open.number);
                decisions.push(TurnDecision::DispatchAgent { turn_id, call: call.clone(), number });
                if call.mode == InvocationMode::Delegate {
                    return Settled { result: None, decisions };
                }
                result = agents::joined(call);
            }
        }
    }
    if open.is_async {
        decisions.push(TurnDecision::AsyncOperationCompleted {
            turn_id: turn_id.clone(),
            operation_id: open.operation_id.clone(),
            result: Box::new(result.clone()),
        });
        // Others may still be awaited; a model that is being asked is asked again afterwards.
        if lane.stage == Stage::WaitAsync {
            decisions.push(TurnDecision::ResumeFromTool { turn_id });
        }
        return Settled { result: Some(result), decisions };
    }
    let others = lane.open.iter().any(|other| !other.is_async && other.operation_id != open.operation_id);
    decisions.push(if others {
        TurnDecision::MarkWaiting { turn_id, phase: TurnPhase::WaitingTool }
    } else {
        TurnDecision::ResumeFromTool { turn_id }
    });
    Settled { result: Some(result), decisions }
}

/// What a person said, and why.
pub(super) fn answer(result: &ToolResult) -> (bool, Option<String>) {
    let said = result.result.as_ref();
    let is_yes = said.and_then(|said| said.get("approved")).and_then(Value::as_bool).unwrap_or(false);
    let reason = said.and_then(|said| said.get("reason")).and_then(Value::as_str).map(str::to_owned);
    (result.success && is_yes, reason)
}

/// What a person answered takes the place of the yes, where it is more than that.
fn said(yes: ToolResult) -> ToolResult {
    let more = yes.result.as_ref().and_then(|said| said.get("answer")).filter(|more| !more.is_null()).cloned();
    match more {
        Some(more) => ToolResult::ok(yes.tool_call_id, more),
        None => yes,
    }
}
