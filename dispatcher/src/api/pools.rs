//! `POST /api/pools/{id}/claim`: work for somebody else's workers, in any language. A worker claims
//! a task, runs it, and sends its end to `POST /api/tool-results`; or gives it back (`…/release`).

mod release;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use domain::failure::Failure;
use domain::ports::{Ended, Ending, Hold, OperationRow, Scope, Verdict};
use domain::tool::attempt::{self, Next, Start};
use domain::tool::{ActionRequest, pool_name, pool_of, settled, task_body};
use host::trace;
use schemas::api::TaskBody;
use schemas::limits::{NAME_BYTES_MAX, OPERATION_GRACE_MS, TASK_WAIT_S_DEFAULT, TASK_WAIT_S_MAX};
use schemas::problem::Code;
use tokio::time::Instant;

use crate::again::claimant;
use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::PathText;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::submit;

/// How often a waiting claim looks.
const LOOK: Duration = Duration::from_millis(250);

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/pools/{id}/claim", post(claim))
            .scope(Scope::Act)
            .summary(
                "Claim one task of a pool. It is the caller's until `until`; its end goes to POST /api/tool-results. \
                 204: there was none.",
            )
            .query(&[
                ("wait_s", "Wait up to so many seconds for a task, at most 25; 20 if not given."),
                ("worker", "A name of the caller for operators; the token's name if not given."),
            ])
            .answers(200, "TaskBody")
            .refuses(&[Code::InvalidRequest]),
        release::route(),
    ]
}

async fn claim(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathText(pool): PathText,
    mut params: Params,
) -> Answer<Response> {
    let wait_s = params.whole("wait_s", 0, TASK_WAIT_S_MAX).unwrap_or(TASK_WAIT_S_DEFAULT);
    let worker = params.text("worker").unwrap_or_else(|| caller.name.clone());
    if worker.len() > NAME_BYTES_MAX {
        params.problem("worker", format!("must have at most {NAME_BYTES_MAX} bytes"));
    }
    params.finish()?;
    let (pool, claimant) = (whole_name(&caller, &pool)?, claimant(&worker));
    let until = Instant::now() + Duration::from_secs(wait_s);
    loop {
        if let Some(task) = next(&gateway, &pool, &claimant).await? {
            return Ok(Json(task).into_response());
        }
        let rest = until.saturating_duration_since(Instant::now()).min(LOOK);
        if rest.is_zero() || gateway.stop.run_until_cancelled(tokio::time::sleep(rest)).await.is_none() {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        // It may have been revoked while it waited.
        caller.need(Scope::Act)?;
    }
}

/// What the pool of the path is called among the operations: it is one of the caller's namespace.
fn whole_name(caller: &Caller, pool: &str) -> Answer<String> {
    pool_name(pool).map_err(|why| Refused::field("id", format!("in the path: {why}")))?;
    Ok(pool_of(&caller.namespace, pool))
}

/// The next task that may be begun. Those that may not, because their worker died, end on the way.
async fn next(gateway: &Gateway, pool: &str, claimant: &str) -> Answer<Option<TaskBody>> {
    loop {
        let claimed = gateway.operations.claim(pool, claimant, Hold::Attempt(OPERATION_GRACE_MS), 1).await?;
        let Some(row) = claimed.into_iter().next() else { return Ok(None) };
        let error = match (attempt::start(&row.operation), row.operation.request.to::<ActionRequest>()) {
            (Start::Run, Ok(request)) => return Ok(Some(body(&row, request))),
            (Start::End(error), _) => error,
            (Start::Probe, Ok(request)) => {
                // Nobody here can ask their target.
                match attempt::probed(&row.operation, &request, domain::ports::Probe::Unknown, None) {
                    Next::End(Err(error)) => error,
                    _ => return Ok(Some(body(&row, request))),
                }
            }
            (_, Err(error)) => attempt::unreadable(&row.operation, &error),
        };
        end(gateway, &row, error, claimant).await?;
    }
}

/// Whether it ended with this.
async fn end(
    gateway: &Gateway,
    row: &OperationRow,
    error: domain::chat::ToolError,
    actor: &str,
) -> Result<bool, Failure> {
    let (state, action) = settled(&row.namespace, &row.operation, Err(error), actor);
    let ended = Ended::Settled { state, action: Box::new(action) };
    let (id, begun) = (&row.operation.operation_id, trace::begin());
    match gateway.operations.end(&row.namespace, id, None, ended).await? {
        Ending::Settled(Verdict::Accepted(accepted)) => {
            submit::accepted_at(begun, &accepted.action, "");
            submit::publish(gateway, accepted.action).await;
            Ok(true)
        }
        Ending::Settled(_) | Ending::Scheduled | Ending::NotOpen => {
            tracing::debug!(operation = %id, "had ended in the meantime");
            Ok(false)
        }
    }
}

fn body(row: &OperationRow, request: ActionRequest) -> TaskBody {
    task_body(&row.namespace, &row.operation, request)
}
