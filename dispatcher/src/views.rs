//! Rows as clients read them.

use domain::action::hash::hex;
use domain::definition::shown;
use domain::ports::DefinitionRow;
use domain::time::rfc3339;
use schemas::api::{DefinitionView, SessionView};
use schemas::session::SessionRow;

pub fn session_view(row: &SessionRow) -> SessionView {
    let head = &row.head;
    SessionView {
        session_id: row.key.session_id.clone(),
        agent_id: row.agent_id.clone(),
        moniker: row.spec.moniker.clone(),
        status: head.status,
        iteration: head.iteration(),
        step_token: head.step_token.clone(),
        next_step_token: head.next_step_token.clone(),
        cause: head.cause.clone(),
        wake_at: head.wake_at_ms.map(rfc3339),
        last_error: head.last_error.clone(),
        stop_reason: head.stop_reason,
        conversation_id: row.spec.conversation_id.clone(),
        parent: row.spec.parent.clone(),
        shard: row.shard,
        created_at: rfc3339(row.created_at_ms),
        started_at: head.started_at_ms.map(rfc3339),
        updated_at: rfc3339(head.updated_at_ms),
        last_offset: head.next_offset.saturating_sub(1),
    }
}

pub fn definition_view(row: &DefinitionRow) -> DefinitionView {
    DefinitionView {
        kind: row.kind,
        id: row.id.clone(),
        version: row.version,
        content_hash: hex(&row.content_hash),
        created_at: rfc3339(row.created_at_ms),
        updated_at: rfc3339(row.updated_at_ms),
        definition: shown(row.kind, &row.content),
    }
}
