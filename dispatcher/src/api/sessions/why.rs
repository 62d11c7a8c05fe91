//! `GET /api/sessions/{id}/why`: what is known of a session, and of those that it waits for.

use axum::Json;
use axum::extract::State;
use domain::effect::EffectRow;
use domain::failure::Failure;
use domain::moniker;
use domain::ports::{OperationQuery, Pending, ShardInfo};
use domain::why::{Descent, Facts, ShardFacts};
use schemas::action::{Action, Lane};
use schemas::api::WhyBody;
use schemas::conversation::{Operation, OperationState};
use schemas::id::{ConversationId, SessionId, SessionKey};
use schemas::problem::Code;
use schemas::session::SessionRow;

use super::missing;
use crate::answer::{Answer, Refused};
use crate::api::fleet::WORKER_AGE_MS;
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;

/// Pending actions that are looked at, per lane, and open operations, per state.
const LOOKED_AT: usize = 50;
/// Sessions of a conversation that are told of.
const SEATS_MAX: usize = 8;

/// What all sessions of the chain share.
struct Fleet {
    shards: Vec<ShardInfo>,
    has_executor: bool,
    now_ms: i64,
}

/// What is read of one session.
struct Known {
    row: SessionRow,
    control: Vec<Action>,
    work: Vec<Action>,
    pending: u64,
    effects: Vec<EffectRow>,
    operations: Vec<Operation>,
}

impl Known {
    async fn read(gateway: &Gateway, row: SessionRow) -> Result<Self, Failure> {
        let (control, work, pending, effects, operations) = tokio::try_join!(
            gateway.ledger.pending(&row.key, Lane::Control, 0, LOOKED_AT),
            gateway.ledger.pending(&row.key, Lane::Work, 0, LOOKED_AT),
            gateway.ledger.pending_count(&row.key),
            gateway.journal.open_effects(&row.key),
            open_operations(gateway, &row),
        )?;
        let (Pending { actions: control, .. }, Pending { actions: work, .. }) = (control, work);
        Ok(Self { row, control, work, pending, effects, operations })
    }

    fn facts(&self, fleet: &Fleet) -> Facts<'_> {
        let shard = fleet.shards.iter().find(|info| info.shard == self.row.shard);
        Facts {
            row: &self.row,
            control: &self.control,
            work: &self.work,
            pending: self.pending,
            effects: &self.effects,
            operations: &self.operations,
            shard: shard.map(|info| ShardFacts {
                owner: info.owner.as_ref().map(ToString::to_string),
                lease_ms_left: info.lease_ms_left,
            }),
            has_executor: fleet.has_executor,
            takes_input: moniker::find(&self.row.spec.moniker).is_some_and(|moniker| moniker.takes_input()),
            now_ms: fleet.now_ms,
        }
    }
}

/// What turns of the session wait for, oldest first.
async fn open_operations(gateway: &Gateway, row: &SessionRow) -> Result<Vec<Operation>, Failure> {
    let Some(conversation) = &row.spec.conversation_id else { return Ok(Vec::new()) };
    let of = |state| OperationQuery {
        namespace: row.key.namespace.clone(),
        conversation_id: Some(conversation.clone()),
        turn_id: None,
        kind: None,
        state: Some(state),
        after: None,
        limit: LOOKED_AT,
    };
    let (pending, running) = (of(OperationState::Pending), of(OperationState::Running));
    let (pending, running) =
        tokio::try_join!(gateway.operations.operations(&pending), gateway.operations.operations(&running))?;
    let all = pending.into_iter().chain(running).map(|row| row.operation);
    let mut own: Vec<Operation> = all.filter(|one| one.session_id == row.key.session_id).collect();
    own.sort_by(|one, other| (one.created_at_ms, &one.operation_id).cmp(&(other.created_at_ms, &other.operation_id)));
    Ok(own)
}

/// Whoever asks about a conversation is told where its sessions stand, and to ask about those.
async fn not_there(gateway: &Gateway, fleet: &Fleet, key: &SessionKey) -> Result<Refused, Failure> {
    let Ok(id) = ConversationId::parse(key.session_id.as_str()) else { return Ok(missing(key)) };
    if gateway.conversations.conversation(&key.namespace, &id).await?.is_none() {
        return Ok(missing(key));
    }
    let seats = gateway.conversations.participants(&key.namespace, &id).await?;
    let taken = seats.into_iter().filter(|seat| seat.left_at_ms.is_none()).filter_map(|seat| seat.session_id);
    let sessions: Vec<SessionId> = taken.collect();
    let mut detail = match sessions.len() {
        0 => format!("{id} is a conversation that no session takes part in."),
        _ => format!("{id} is a conversation; ask about one of its sessions."),
    };
    for session in sessions.iter().take(SEATS_MAX) {
        let key = SessionKey::new(key.namespace.clone(), session.clone());
        if let Some(row) = gateway.sessions.session(&key).await? {
            let stands = Descent::new(&Known::read(gateway, row).await?.facts(fleet)).finish();
            detail.push_str(&format!(" {session}: {}", stands.summary));
        }
    }
    if sessions.len() > SEATS_MAX {
        detail.push_str(&format!(" GET /api/conversations/{id}/participants lists all {}.", sessions.len()));
    }
    Ok(Refused::new(Code::SessionNotFound, detail))
}

pub async fn why(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<SessionId>,
) -> Answer<Json<WhyBody>> {
    let (shards, workers) = tokio::try_join!(gateway.leases.shards(), gateway.leases.workers(WORKER_AGE_MS))?;
    let has_executor = workers.iter().any(|worker| worker.runs_operations());
    let fleet = Fleet { shards, has_executor, now_ms: gateway.clock.now_ms() };
    let key = SessionKey::new(caller.namespace.clone(), id);
    let Some(first) = gateway.sessions.session(&key).await? else {
        return Err(not_there(&gateway, &fleet, &key).await?);
    };
    let mut descent = Descent::new(&Known::read(&gateway, first).await?.facts(&fleet));
    while let Some(id) = descent.below() {
        let key = SessionKey::new(caller.namespace.clone(), id);
        match gateway.sessions.session(&key).await? {
            Some(row) => descent.meets(&Known::read(&gateway, row).await?.facts(&fleet)),
            None => descent.misses(),
        }
    }
    Ok(Json(descent.finish()))
}
