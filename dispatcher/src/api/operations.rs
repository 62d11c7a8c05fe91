//! `GET /api/operations` and `…/{id}`, `POST /api/operations/{id}/approve` and `…/deny`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use domain::action::fields::not_one_of;
use domain::conversation::{approval, view};
use domain::ports::{Ended, Ending, OperationQuery, Scope, Verdict};
use host::trace;
use schemas::action::NewAction;
use schemas::api::AcceptedBody;
use schemas::conversation::{ApprovalAnswer, Operation, OperationKind, OperationPage, OperationState, OperationView};
use schemas::id::{Namespace, OperationId};
use schemas::limits::PAGE_DEFAULT;
use schemas::problem::Code;

use super::conversations::read_cursor;
use crate::answer::{Answer, Refused};
use crate::api::sessions::PAGE_PARAMS;
use crate::caller::Caller;
use crate::extract::{JsonBody, PathId};
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::submit;

pub fn routes() -> Vec<Route> {
    let verdict = |path, approved, summary| {
        Route::post(path, answer(approved))
            .scope(Scope::Operate)
            .summary(summary)
            .body("ApprovalBody")
            .answers(202, "ApprovalAnswer")
            .refuses(&[Code::InvalidRequest, Code::InvalidJson, Code::TooLarge, Code::OperationNotFound])
            .refuses(&[Code::ApprovalMismatch, Code::NoOpenOperation, Code::SessionEnded, Code::StorageFull])
    };
    vec![
        Route::get("/api/operations", get(list))
            .summary("What turns have dispatched, oldest first. All given conditions must hold.")
            .query(&[
                ("state", "pending, running, completed, failed or cancelled"),
                ("kind", "task, agent or approval; of the last, the pending ones wait for a person"),
                ("conversation_id", "Operations of this conversation"),
                ("turn_id", "Operations of this turn"),
            ])
            .query(PAGE_PARAMS)
            .answers(200, "OperationPage")
            .refuses(&[Code::InvalidRequest]),
        Route::get("/api/operations/{id}", get(one))
            .summary("One operation; of an approval, what is asked, until when, and what counts without an answer.")
            .answers(200, "OperationView")
            .refuses(&[Code::InvalidRequest, Code::OperationNotFound]),
        verdict(
            "/api/operations/{id}/approve",
            true,
            "Let an agent do what it asks to do. The answer counts for the arguments that its hash names. A question \
             of an action of kind `human` may be answered with more than a yes: `answer` is the result of the call.",
        ),
        verdict(
            "/api/operations/{id}/deny",
            false,
            "Do not let an agent do what it asks to do; it is told so, with the reason.",
        ),
    ]
}

async fn list(State(gateway): State<Gateway>, caller: Caller, mut params: Params) -> Answer<Json<OperationPage>> {
    let limit = params.limit(PAGE_DEFAULT);
    let query = OperationQuery {
        namespace: caller.namespace,
        conversation_id: params.parsed("conversation_id"),
        turn_id: params.parsed("turn_id"),
        kind: params.read("kind", read_kind),
        state: params.read("state", read_state),
        after: params.read("cursor", |text| read_cursor(text, OperationId::parse)),
        limit: limit + 1,
    };
    params.finish()?;
    let mut rows = gateway.operations.operations(&query).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more).map(|row| &row.operation);
    let next_cursor = last.map(|operation| format!("{}~{}", operation.created_at_ms, operation.operation_id));
    Ok(Json(OperationPage { items: rows.iter().map(|row| view::operation(&row.operation)).collect(), next_cursor }))
}

async fn one(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<OperationId>,
) -> Answer<Json<OperationView>> {
    Ok(Json(view::operation(&found(&gateway, &caller.namespace, &id).await?)))
}

async fn found(gateway: &Gateway, namespace: &Namespace, id: &OperationId) -> Answer<Operation> {
    let row = gateway.operations.operation(namespace, id).await?;
    row.map(|row| row.operation).ok_or_else(|| {
        let detail = format!("There is no operation {id}. GET /api/operations?state=pending lists those that wait.");
        Refused::new(Code::OperationNotFound, detail)
    })
}

fn read_kind(text: &str) -> Result<OperationKind, String> {
    OperationKind::parse(text).ok_or_else(|| not_one_of(text, &["task", "agent", "approval"]))
}

fn read_state(text: &str) -> Result<OperationState, String> {
    let names = ["pending", "running", "completed", "failed", "cancelled"];
    OperationState::parse(text).ok_or_else(|| not_one_of(text, &names))
}

fn answer(approved: bool) -> MethodRouter<Gateway> {
    post(move |State(gateway): State<Gateway>, caller: Caller, id: PathId<OperationId>, body: JsonBody| async move {
        decide(&gateway, &caller, id.0, approved, body).await
    })
}

async fn decide(
    gateway: &Gateway,
    caller: &Caller,
    id: OperationId,
    approved: bool,
    body: JsonBody,
) -> Answer<(StatusCode, Json<ApprovalAnswer>)> {
    let answer = approval::parse(&body.required()?, approved, &caller.name)?;
    let operation = found(gateway, &caller.namespace, &id).await?;
    let action = approval::result(&caller.namespace, &operation, &answer)?;
    let done = end(gateway, &operation, action).await?;
    tracing::info!(operation = %id, approved, by = %answer.by, token = %caller.name, "approval answered");
    let answer = ApprovalAnswer {
        operation_id: id,
        approved,
        by: answer.by,
        action_id: done.action_id,
        accepted: done.accepted,
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// Ends an operation with the answer, and sends the result on its way: one transaction, so the first
/// answer counts. The same once more is no error: its sender may not have heard that it was taken.
async fn end(gateway: &Gateway, operation: &Operation, action: NewAction) -> Answer<AcceptedBody> {
    let begun = trace::begin();
    let (namespace, id, action_id) = (action.namespace.clone(), &operation.operation_id, action.action_id.clone());
    // That a person said no is a result too, and no failure.
    let ended = Ended::Settled { state: OperationState::Completed, action: Box::new(action) };
    match gateway.operations.end(&namespace, id, None, ended).await? {
        Ending::Settled(Verdict::Refused(refusal))
            if !matches!(refusal.code, Code::ActionConflict | Code::NoOpenOperation) =>
        {
            submit::send_on(gateway, &action_id, Verdict::Refused(refusal), begun, "").await
        }
        Ending::Settled(verdict @ (Verdict::Accepted(_) | Verdict::Repeated(_))) => {
            submit::send_on(gateway, &action_id, verdict, begun, "").await
        }
        Ending::Settled(Verdict::Refused(_)) | Ending::Scheduled | Ending::NotOpen => {
            let newest = gateway.operations.operation(&namespace, id).await?;
            Err(approval::not_open(newest.as_ref().map_or(operation, |row| &row.operation)).into())
        }
    }
}
