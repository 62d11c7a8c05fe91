//! An operation at its place: whose call it is, and under which id.

use schemas::conversation::{Operation, OperationState};
use schemas::id::{ActionId, ConversationId, Namespace, OperationId, SessionId, TurnId};
use schemas::json::Json;
use schemas::limits::ID_BYTES_MAX;

use super::dispatch::{Dispatch, ExecutionContext};
use super::pool_of;
use crate::action::hash;

/// Where a dispatched call belongs.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub namespace: Namespace,
    pub session_id: SessionId,
    pub conversation_id: ConversationId,
    pub turn_id: TurnId,
    /// Counts the model's answers of the turn.
    pub move_number: u32,
    /// Counts the calls of one answer.
    pub index: usize,
    pub tool_call_id: String,
    pub tool: String,
}

const RESULT: &str = ".result";

/// `<turn>.<move>.<index>`, or a hash of it if that is too long: the same for the same call, so that
/// dispatching it twice is dispatching it once.
pub fn operation_id(turn_id: &TurnId, move_number: u32, index: usize) -> OperationId {
    let name = format!("{turn_id}.{move_number}.{index}");
    // There must be room for what is derived from it.
    let fits = name.len() + RESULT.len() <= ID_BYTES_MAX;
    let text = if fits { name } else { format!("h.{}", hash::hex(&hash::sha256(&name))) };
    OperationId::parse(&text).expect("ids and numbers are plain")
}

/// Id of the action that ends an operation: whoever ends it first has ended it.
pub fn result_id(id: &OperationId) -> ActionId {
    let name = format!("{id}{RESULT}");
    let text = if name.len() <= ID_BYTES_MAX { name } else { format!("h.{}{RESULT}", hash::hex(&hash::sha256(&name))) };
    ActionId::parse(&text).expect("ids are plain")
}

/// Whether an id is kept for the end of an operation.
pub fn is_result_id(id: &ActionId) -> bool {
    id.as_str().ends_with(RESULT)
}

/// Id of the action that tells what an attempt has spent: once for each.
pub fn spent_id(id: &OperationId, attempt: u32) -> ActionId {
    let name = format!("{id}.spent.{attempt}");
    let text = if name.len() <= ID_BYTES_MAX { name } else { format!("h.{}", hash::hex(&hash::sha256(&name))) };
    ActionId::parse(&text).expect("ids and numbers are plain")
}

/// The `index`th call of a program that runs as `execution`: no operation, but a key like one.
pub fn called_id(execution: &OperationId, index: usize) -> OperationId {
    let name = format!("{execution}.call.{index}");
    let text = if name.len() <= ID_BYTES_MAX { name } else { format!("h.{}", hash::hex(&hash::sha256(&name))) };
    OperationId::parse(&text).expect("ids and numbers are plain")
}

/// What the commit of the step writes. Times are the store's.
pub fn operation(dispatch: Dispatch, place: Place, context: ExecutionContext) -> Operation {
    let mut request = dispatch.request;
    request.context = context;
    if !dispatch.wants_messages {
        request.context.messages = None;
    }
    Operation {
        operation_id: operation_id(&place.turn_id, place.move_number, place.index),
        session_id: place.session_id,
        conversation_id: place.conversation_id,
        turn_id: place.turn_id,
        tool_call_id: place.tool_call_id,
        tool: place.tool,
        kind: dispatch.kind,
        pool: pool_of(&place.namespace, &dispatch.pool),
        state: OperationState::Pending,
        request: Json::of(&request),
        approval: dispatch.approval,
        effect_class: dispatch.effect_class,
        attempt: 0,
        lost: 0,
        max_attempts: dispatch.max_attempts,
        backoff_ms: dispatch.backoff_ms,
        timeout_ms: dispatch.timeout_ms,
        wait_ms: dispatch.wait_ms,
        is_async: dispatch.is_async,
        created_at_ms: 0,
        due_at_ms: 0,
        claimed_by: None,
        until_ms: None,
        error: None,
    }
}
