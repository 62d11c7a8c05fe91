//! Sessions whose owner hears of them before it has read anything: the create that has just registered one says
//! what it is. If that is not so any more, nothing has left the process when the first commit meets its guard.

use schemas::action::{Action, ActionType, NewAction};
use schemas::limits::{FRESH_MS, OPENS_BYTES_MAX};
use schemas::session::{Head, SessionRow, SessionSpec};

/// What an accepted action tells of the session that it registers.
pub fn opens(new: &NewAction) -> Option<Box<SessionSpec>> {
    let session = new.session.as_ref().filter(|_| new.payload.as_str().len() <= OPENS_BYTES_MAX)?;
    Some(Box::new(session.spec.clone()))
}

/// The session of a create that was accepted just now, as its row must be: nothing is applied yet.
pub fn opened(action: &Action, now_ms: i64) -> Option<SessionRow> {
    let is_first = action.kind == ActionType::Create && action.session_seq == 1;
    let is_fresh = (0..FRESH_MS).contains(&now_ms.saturating_sub(action.accepted_at_ms));
    let spec = action.opens.as_deref().filter(|_| is_first && is_fresh)?;
    Some(SessionRow {
        key: action.key(),
        agent_id: action.agent_id.clone(),
        shard: action.shard,
        spec: spec.clone(),
        head: Head::starting(action.accepted_at_ms),
        created_at_ms: action.accepted_at_ms,
        control_seq: 0,
        work_seq: 1,
    })
}
