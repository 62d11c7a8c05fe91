//! The gateway: HTTP, server-sent events and WebSockets in front of the ledger and of history.
//!
//! It knows ports only. [`app`] makes the router and starts the tasks behind it: the publisher and
//! sweeper of accepted actions, the intake of messages of other programs, and the refresher of
//! tokens. Reading order: [`routes`] (the table of all routes), `api` (one file per subject),
//! `submit` (how an action gets in), `stream` (how committed events get out), `talk` and `follow` (the
//! same for conversations).

mod again;
mod answer;
mod api;
mod assets;
mod auth;
mod bulk;
mod caller;
mod define;
mod delegated;
mod extract;
mod follow;
mod front;
mod gateway;
mod ingress;
mod openapi;
mod params;
mod patience;
mod publisher;
mod routes;
mod seats;
mod serve;
mod shell;
mod stream;
mod submit;
mod sweeper;
mod talk;
mod views;

#[cfg(test)]
mod tests;

pub use front::Front;
pub use gateway::{Config, Deps};
pub use serve::serve;

use axum::Router;
use host::tasks::Tasks;

use gateway::Gateway;

/// `/health` and `/metrics` only, for a worker's process.
pub fn probes(deps: Deps, tasks: &Tasks) -> Router {
    let (gateway, _) = Gateway::new(deps, tasks.stop());
    let behind = gateway.clone();
    tasks.spawn("probe-tokens", move |stop| auth::keep_fresh(behind, stop));
    routes::probe_router(gateway)
}

/// The whole gateway as a router. Its tasks and streams end when `tasks` are shut down.
pub fn app(deps: Deps, tasks: &Tasks) -> Router {
    let (gateway, accepted) = Gateway::new(deps, tasks.stop());
    let behind = gateway.clone();
    tasks.spawn("gateway-publisher", move |stop| publisher::run(behind, accepted, stop));
    let behind = gateway.clone();
    tasks.spawn("gateway-tokens", move |stop| auth::keep_fresh(behind, stop));
    if gateway.queue.is_durable() {
        let behind = gateway.clone();
        tasks.spawn("gateway-sweeper", move |stop| sweeper::run(behind, stop));
        let behind = gateway.clone();
        tasks.spawn("gateway-ingress", move |stop| ingress::run(behind, stop));
    }
    routes::router(gateway)
}
