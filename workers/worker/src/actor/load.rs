//! Bringing a session into memory: its row, and its newest state from the journal or, once that
//! is trimmed, from the archive. The cost does not depend on the length of its history.

use std::time::Duration;

use domain::effect::EffectState;
use domain::failure::Failure;
use domain::moniker;
use domain::session::{self, Session};
use schemas::action::Lane;
use schemas::id::SessionKey;
use schemas::json::Json;
use schemas::session::{SessionRow, SessionStatus};

use super::{Exit, Mail, ShardContext};

/// Attempts to find the state that belongs to the row, before a person must look.
const STATE_ATTEMPTS_MAX: u32 = 50;

/// The session, and what of its effects is in doubt.
pub(super) async fn load(
    context: &ShardContext,
    key: &SessionKey,
    first: Option<&Mail>,
) -> Result<(Session, Option<String>), Exit> {
    if let Some(session) = opened(context, first) {
        return Ok((session, None));
    }
    // An outage, however long, is not among the attempts to find what must be there.
    let (mut attempt, mut refusals) = (0, 0);
    loop {
        match try_load(context, key).await {
            Ok(Some(loaded)) => {
                host::stall::clear();
                return Ok(loaded);
            }
            Ok(None) => return Err(Exit::Gone),
            Err(failure) => {
                attempt += 1;
                refusals = if failure.retriable { 0 } else { refusals + 1 };
                if failure.retriable {
                    host::stall::note("sessions", &failure);
                } else if refusals == 1 {
                    tracing::warn!(%failure, session.id = %key, "cannot load a session; will go on trying");
                }
                if refusals >= STATE_ATTEMPTS_MAX {
                    tracing::error!(%failure, session.id = %key, "gave up loading a session");
                    return Err(Exit::Gone);
                }
                let wait = domain::retry::STORE.delay_ms(attempt).unwrap_or(1_000);
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
        }
    }
}

/// The session of a create that comes straight from its acceptance, without a read.
fn opened(context: &ShardContext, first: Option<&Mail>) -> Option<Session> {
    let Some(Mail::Action(action)) = first else { return None };
    let row = session::opened(action, context.now_ms())?;
    let moniker = moniker::find(&row.spec.moniker)?;
    Some(Session::resume(row, Json::null(), moniker))
}

/// One attempt. `None`: there is no such session here.
pub(super) async fn try_load(
    context: &ShardContext,
    key: &SessionKey,
) -> Result<Option<(Session, Option<String>)>, Failure> {
    let deps = &context.shared.deps;
    let Some(row) = deps.sessions.session(key).await? else { return Ok(None) };
    if row.shard != context.lease.shard {
        return Ok(None);
    }
    let Some(moniker) = moniker::find(&row.spec.moniker) else {
        return Err(Failure::internal(format!("this build has no moniker {:?}", row.spec.moniker)));
    };
    if row.head.status == SessionStatus::Starting && row.head.next_offset == 1 {
        // Nothing is applied yet: the lanes are whole, and the create action brings the state.
        return Ok(Some((Session::resume(row, Json::null(), moniker), None)));
    }
    let state = state(context, &row).await?;
    let in_doubt = in_doubt(context, key).await?;
    let mut session = Session::resume(row, state, moniker);
    for lane in Lane::ALL {
        session.inbox(lane).suspect();
    }
    Ok(Some((session, in_doubt)))
}

/// The state at the row's head. An archive handle may be a moment behind; the journal keeps rows
/// for longer than that, so a mismatch is rare and short.
async fn state(context: &ShardContext, row: &SessionRow) -> Result<Json, Failure> {
    let deps = &context.shared.deps;
    if let Some(newest) = deps.journal.latest(&row.key).await?
        && newest.entry.head.next_offset == row.head.next_offset
    {
        return Ok(newest.entry.state);
    }
    if let Some(snapshot) = deps.archive.snapshot(&row.key).await?
        && snapshot.head.next_offset == row.head.next_offset
    {
        return Ok(snapshot.state);
    }
    Err(Failure::internal(format!(
        "neither journal nor archive has the state of {} at offset {} (invariant J1)",
        row.key, row.head.next_offset
    )))
}

async fn in_doubt(context: &ShardContext, key: &SessionKey) -> Result<Option<String>, Failure> {
    let rows = context.shared.deps.journal.open_effects(key).await?;
    let sent = rows.into_iter().find(|row| row.state == EffectState::Sent);
    Ok(sent.map(|row| row.key))
}
