//! `POST /api/pools/{id}/release`: a worker that has to stop gives back what it has claimed, so that nobody waits
//! for the end of its claim.

use axum::Json;
use axum::extract::State;
use axum::routing::post;
use domain::failure::Failure;
use domain::ports::{Claim, Ended, Ending, OperationRow, Scope};
use domain::tool::attempt;
use domain::tool::release::{Release, parse};
use schemas::api::ReleaseAnswer;
use schemas::conversation::{OperationKind, OperationState};
use schemas::id::{Namespace, OperationId};
use schemas::problem::Code;

use super::{claimant, end, whole_name};
use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::{JsonBody, PathText};
use crate::gateway::Gateway;
use crate::routes::Route;

pub fn route() -> Route {
    Route::post("/api/pools/{id}/release", post(release))
        .scope(Scope::Act)
        .summary(
            "Give a claimed task back, so that another worker can claim it at once. Not begun, it costs no attempt; \
             begun, it is as if its worker had died. A repeat, or a claim that has ended, answers `released: false`.",
        )
        .body("ReleaseBody")
        .answers(200, "ReleaseAnswer")
        .refuses(&[Code::InvalidRequest, Code::InvalidJson, Code::TooLarge, Code::OperationNotFound])
        .refuses(&[Code::StorageFull])
}

async fn release(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathText(pool): PathText,
    body: JsonBody,
) -> Answer<Json<ReleaseAnswer>> {
    let asked = parse(&body.required()?, &caller.name)?;
    let (pool, claimant) = (whole_name(&caller, &pool)?, claimant(&asked.worker));
    let id = &asked.operation_id;
    let row = task(&gateway, &caller.namespace, &pool, id).await?;
    let claim = Claim { claimant: &claimant, until_ms: Some(asked.until_ms) };
    let left_as = if claim.holds(&row.operation) { give_back(&gateway, &row, claim, &asked).await? } else { None };
    let state = match left_as {
        Some(state) => state,
        None => task(&gateway, &caller.namespace, &pool, id).await?.operation.state,
    };
    let released = left_as.is_some();
    tracing::debug!(operation = %id, claimant, begun = asked.begun, released, "a worker gave a task back");
    Ok(Json(ReleaseAnswer { operation_id: asked.operation_id, released, state }))
}

/// A task of this pool, and so of this namespace.
async fn task(gateway: &Gateway, namespace: &Namespace, pool: &str, id: &OperationId) -> Answer<OperationRow> {
    let row = gateway.operations.operation(namespace, id).await?;
    let row = row.filter(|row| row.operation.kind == OperationKind::Task && row.operation.pool == pool);
    row.ok_or_else(|| {
        let detail = format!("This pool has no task {id}. Send a task back to the pool that it was claimed of.");
        Refused::new(Code::OperationNotFound, detail)
    })
}

/// What the task is then; `None`: it was somebody else's, or had ended.
async fn give_back(
    gateway: &Gateway,
    row: &OperationRow,
    claim: Claim<'_>,
    asked: &Release,
) -> Result<Option<OperationState>, Failure> {
    // The next claim ends later than this one, even within a clock's tick: a late repeat of this request does not
    // fit it.
    let after_ms = asked.after_ms.max(1);
    let (ended, state) = if asked.begun {
        // Whoever claimed it next would end it like this, too, so it does no harm if the claim ends just now.
        if let Some(error) = attempt::given_up(&row.operation) {
            let has_ended = end(gateway, row, error, claim.claimant).await?;
            return Ok(has_ended.then_some(OperationState::Failed));
        }
        let error = format!("{} was stopped while it ran", claim.claimant);
        (Ended::Left { after_ms, error }, OperationState::Running)
    } else {
        let error = format!("{} gave it back before it began", claim.claimant);
        (Ended::Back { after_ms, error }, OperationState::Pending)
    };
    match gateway.operations.end(&row.namespace, &row.operation.operation_id, Some(claim), ended).await? {
        Ending::Scheduled => Ok(Some(state)),
        Ending::Settled(_) | Ending::NotOpen => Ok(None),
    }
}
