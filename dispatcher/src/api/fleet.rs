//! `GET /api/shards`, `GET /api/workers`, `POST /api/workers/{id}/drain`. A worker runs sessions of all namespaces,
//! so draining one needs an admin's token.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use domain::ports::Scope;
use schemas::api::{DrainBody, ShardView, WorkerView};
use schemas::id::WorkerId;
use schemas::limits::LEASE_MS;
use schemas::problem::Code;

use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;
use crate::routes::Route;

/// A worker without a heartbeat for this long is gone.
pub const WORKER_AGE_MS: i64 = 3 * LEASE_MS as i64;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/shards", get(shards))
            .summary("All shards: owner, lease, backlog and rows that wait for the archive.")
            .answers(200, "[ShardView]"),
        Route::get("/api/workers", get(workers))
            .summary("Live workers, whatever their roles, and the shards they own.")
            .answers(200, "[WorkerView]"),
        Route::post("/api/workers/{id}/drain", post(drain))
            .scope(Scope::Admin)
            .summary("Ask a worker to end what it runs, hand back its shards, if it has any, and take no more.")
            .answers(202, "DrainBody")
            .refuses(&[Code::InvalidRequest, Code::NotFound]),
    ]
}

async fn shards(State(gateway): State<Gateway>) -> Answer<Json<Vec<ShardView>>> {
    let infos = gateway.leases.shards().await?;
    let numbers: Vec<_> = infos.iter().map(|info| info.shard).collect();
    let backlog: HashMap<_, _> = gateway.ledger.backlog(&numbers).await?.into_iter().collect();
    let views = infos.into_iter().map(|info| ShardView {
        shard: info.shard,
        owner: info.owner.map(|worker| worker.to_string()),
        epoch: info.epoch.0,
        lease_ms_left: info.lease_ms_left,
        backlog: backlog.get(&info.shard).copied().unwrap_or(0),
        journal_rows: info.seq.saturating_sub(info.archived_seq),
    });
    Ok(Json(views.collect()))
}

async fn workers(State(gateway): State<Gateway>) -> Answer<Json<Vec<WorkerView>>> {
    let workers = gateway.leases.workers(WORKER_AGE_MS).await?;
    let shards = gateway.leases.shards().await?;
    let owned = |worker: &WorkerId| {
        let mine = shards.iter().filter(|info| info.lease_ms_left > 0 && info.owner.as_ref() == Some(worker));
        mine.map(|info| info.shard).collect()
    };
    let views = workers.into_iter().map(|info| WorkerView {
        shards: owned(&info.worker),
        worker_id: info.worker.to_string(),
        host: info.host,
        version: info.version,
        roles: info.roles,
        draining: info.draining,
        heartbeat_age_ms: info.heartbeat_age_ms,
    });
    Ok(Json(views.collect()))
}

async fn drain(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(worker): PathId<WorkerId>,
) -> Answer<(StatusCode, Json<DrainBody>)> {
    if !gateway.leases.set_draining(&worker).await? {
        let detail = format!("There is no worker {worker}. GET /api/workers lists those there are.");
        return Err(Refused::new(Code::NotFound, detail));
    }
    tracing::info!(%worker, by = %caller.name, "worker told to drain");
    Ok((StatusCode::ACCEPTED, Json(DrainBody { worker_id: worker.to_string(), draining: true })))
}
