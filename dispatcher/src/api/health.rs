//! `GET /health` and `GET /metrics`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use domain::failure::Failure;
use domain::ports::{JournalLag, LedgerStats, ShardInfo};
use schemas::api::{ComponentHealth, HealthBody};
use schemas::session::SessionStatus;
use schemas::telemetry::metric;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::routes::Route;

/// Anybody may ask, so the stores are asked at most this often.
const KEEP: Duration = Duration::from_millis(500);
/// A component that does not answer by then counts as down.
const PATIENCE: Duration = Duration::from_secs(2);

/// The last answer.
#[derive(Default)]
pub struct HealthCache(Mutex<Option<(Instant, Arc<HealthBody>)>>);

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/health", get(health))
            .open()
            .summary("Components and lags. 200 with status ok or degraded; 503 if the store is down: nothing can be accepted.")
            .answers(200, "HealthBody"),
        Route::get("/metrics", get(render))
            .summary("Metrics in the Prometheus text format.")
            .answers_text(200, "text/plain"),
    ]
}

/// Counts that only the store can tell.
#[derive(Default)]
struct Counts {
    stats: LedgerStats,
    lag: Vec<JournalLag>,
    shards: Vec<ShardInfo>,
    statuses: Vec<(SessionStatus, u64)>,
}

async fn health(State(gateway): State<Gateway>) -> (StatusCode, Json<HealthBody>) {
    let mut cached = gateway.health.0.lock().await;
    let body = match &*cached {
        Some((at, body)) if at.elapsed() < KEEP => body.clone(),
        _ => {
            let body = Arc::new(look(&gateway).await);
            *cached = Some((Instant::now(), body.clone()));
            body
        }
    };
    let store_up = body.components.iter().any(|component| component.name == "store" && component.ok);
    let status = if store_up { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(HealthBody::clone(&body)))
}

async fn look(gateway: &Gateway) -> HealthBody {
    let (counts, archive, queue) =
        tokio::join!(patiently(counts(gateway)), patiently(gateway.archive.ping()), patiently(gateway.queue.ping()));
    let mut components = Vec::new();
    let store = counts.as_ref().map_err(String::clone).map(|counts| {
        let owned = owned(&counts.shards);
        match counts.shards.len() - owned {
            0 => "reads and writes".to_owned(),
            orphans => format!("reads and writes; {orphans} shards have no live owner"),
        }
    });
    components.push(component("store", store));
    components.push(component("archive", archive.map(|()| "readable".to_owned())));
    components.push(component("queue", queue.map(|()| "takes actions".to_owned())));
    let counts = counts.unwrap_or_default();
    let shards_owned = owned(&counts.shards) as u64;
    let healthy = components.iter().all(|component| component.ok) && shards_owned == counts.shards.len() as u64;
    let now_ms = gateway.clock.now_ms();
    HealthBody {
        status: if healthy { "ok" } else { "degraded" }.to_owned(),
        version: gateway.config.version.clone(),
        mode: gateway.config.mode.clone(),
        provider: gateway.effects.provider(),
        components,
        live_sessions: live(&counts.statuses),
        pending_actions: counts.stats.pending,
        queue_lag_ms: counts.stats.oldest_ms.map_or(0, |oldest| (now_ms - oldest).max(0) as u64),
        journal_lag_rows: unarchived(&counts.lag),
        shards_owned,
        shards: counts.shards.len() as u64,
    }
}

async fn counts(gateway: &Gateway) -> Result<Counts, Failure> {
    Ok(Counts {
        stats: gateway.ledger.stats().await?,
        lag: gateway.journal.lag().await?,
        shards: gateway.leases.shards().await?,
        statuses: gateway.sessions.count_by_status().await?,
    })
}

fn owned(shards: &[ShardInfo]) -> usize {
    shards.iter().filter(|info| info.owner.is_some() && info.lease_ms_left > 0).count()
}

fn live(statuses: &[(SessionStatus, u64)]) -> u64 {
    statuses.iter().filter(|(status, _)| !status.is_at_rest()).map(|(_, count)| count).sum()
}

fn unarchived(lags: &[JournalLag]) -> u64 {
    lags.iter().map(JournalLag::rows).sum()
}

/// An answer in time, or why there is none.
async fn patiently<T>(asked: impl Future<Output = Result<T, Failure>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|failure| failure.message),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

fn component(name: &str, state: Result<String, String>) -> ComponentHealth {
    let ok = state.is_ok();
    ComponentHealth { name: name.to_owned(), ok, detail: state.unwrap_or_else(|message| message) }
}

/// Also sets the gauges that only the store can tell.
async fn render(State(gateway): State<Gateway>) -> impl IntoResponse {
    if let Ok(counts) = patiently(counts(&gateway)).await {
        let now_ms = gateway.clock.now_ms();
        let lag_ms = counts.stats.oldest_ms.map_or(0, |oldest| (now_ms - oldest).max(0));
        metrics::gauge!(metric::SESSIONS_LIVE).set(live(&counts.statuses) as f64);
        metrics::gauge!(metric::QUEUE_DEPTH).set(counts.stats.pending as f64);
        metrics::gauge!(metric::QUEUE_LAG_SECONDS).set(lag_ms as f64 / 1_000.0);
        metrics::gauge!(metric::JOURNAL_LAG_ROWS).set(unarchived(&counts.lag) as f64);
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (gateway.metrics)())
}
