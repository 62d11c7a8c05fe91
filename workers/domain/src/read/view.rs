//! Bodies of the HTTP API made from history.

use schemas::api::{StepView, StreamEvent, StreamEventType};
use schemas::record::StoredStep;

use super::StreamItem;
use crate::time::rfc3339;

/// `<session>:<iteration>:<event_seq>`; unique within a namespace.
pub fn step_id(stored: &StoredStep) -> String {
    format!("{}:{}:0", stored.key.session_id, stored.step.iteration)
}

pub fn step_view(stored: &StoredStep) -> StepView {
    let step = &stored.step;
    StepView {
        id: step_id(stored),
        created_at: rfc3339(step.created_at_ms),
        agent_id: stored.agent_id.clone(),
        session_id: Some(stored.key.session_id.clone()),
        conversation_id: stored.conversation_id.clone(),
        turn_id: step.turn_id.clone(),
        iteration: step.iteration,
        step_token: step.step_token.clone(),
        next_step_token: step.next_step_token.clone(),
        status: step.status,
        text: step.text.clone(),
        data: step.data.clone(),
        state: Some(step.state.clone()),
        guidance: step.guidance.clone(),
        notes: step.notes.clone(),
        latency_ms: step.latency_ms,
        error: step.error.clone(),
    }
}

pub fn stream_event(item: &StreamItem) -> StreamEvent {
    let key = item.key();
    match item {
        StreamItem::Step(stored) => StreamEvent {
            offset: stored.step.offset,
            kind: StreamEventType::Step,
            session_id: key.session_id.clone(),
            at: rfc3339(stored.step.created_at_ms),
            step: Some(step_view(stored)),
            data: None,
        },
        StreamItem::Event(row) => StreamEvent {
            offset: row.event.offset,
            kind: row.event.kind.into(),
            session_id: key.session_id.clone(),
            at: rfc3339(row.event.at_ms),
            step: None,
            data: Some(row.event.data.clone()),
        },
    }
}
