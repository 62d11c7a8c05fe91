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
use schemas::id::{SessionId, SessionKey};
use schemas::session::SessionRow;

use super::row;
use crate::answer::Answer;
use crate::api::fleet::WORKER_AGE_MS;
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;

/// Pending actions that are looked at, per lane, and open operations, per state.
const LOOKED_AT: usize = 50;

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

pub async fn why(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<SessionId>,
) -> Answer<Json<WhyBody>> {
    let first = row(&gateway, &caller.namespace, id).await?;
    let (shards, workers) = tokio::try_join!(gateway.leases.shards(), gateway.leases.workers(WORKER_AGE_MS))?;
    let has_executor = workers.iter().any(|worker| worker.runs_operations());
    let fleet = Fleet { shards, has_executor, now_ms: gateway.clock.now_ms() };
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
