//! `POST /api/actions`, `GET /api/actions/{id}`, `POST /api/tool-results`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use domain::action::lift::{self, Target};
use domain::ports::Scope;
use domain::tool::result_id;
use schemas::action::{ActionType, ActionView};
use schemas::id::{ActionId, OperationId};
use schemas::problem::Code;
use serde_json::Value;

use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::{JsonBody, PathId};
use crate::gateway::Gateway;
use crate::routes::Route;
use crate::submit::{self, AcceptedAnswer};

/// What any action may be refused with, once its body is read.
pub const REFUSALS: &[Code] = &[
    Code::InvalidRequest,
    Code::InvalidJson,
    Code::UnknownType,
    Code::TooLarge,
    Code::SessionNotFound,
    Code::AgentNotFound,
    Code::WrongAgent,
    Code::SessionEnded,
    Code::ActionConflict,
    Code::StorageFull,
];

pub const KEY_HEADER: (&str, &str) =
    ("Idempotency-Key", "Another place for action_id: a repeat with it is answered alike and acts once");

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/actions", post(create))
            .scope(Scope::Act)
            .summary("Enqueue an action. pause, resume and destroy need scope operate.")
            .header(KEY_HEADER.0, KEY_HEADER.1)
            .body("ActionBody")
            .answers(202, "AcceptedBody")
            .refuses(REFUSALS)
            .refuses(&[Code::UnknownMoniker, Code::InputNotTaken, Code::SessionExists, Code::NoOpenOperation])
            .refuses(&[Code::ConversationClosed, Code::TooManyRequests]),
        Route::get("/api/actions/{id}", get(one))
            .summary("One action, with its outcome once it is processed.")
            .answers(200, "ActionView")
            .refuses(&[Code::InvalidRequest, Code::ActionNotFound]),
        Route::post("/api/tool-results", post(tool_result))
            .scope(Scope::Act)
            .summary(
                "Enqueue a tool_result; the fields of its payload may stand beside session_id, which an operation_id \
                 makes needless. Of two results of an operation the first counts. A retriable error of a task that may \
                 be repeated puts it back in line instead of ending it.",
            )
            .header(KEY_HEADER.0, KEY_HEADER.1)
            .body("ToolResultPayload")
            .answers(202, "AcceptedBody")
            .refuses(REFUSALS)
            .refuses(&[Code::NoOpenOperation]),
    ]
}

async fn create(State(gateway): State<Gateway>, caller: Caller, headers: HeaderMap, body: JsonBody) -> AcceptedAnswer {
    submit::submit(&gateway, &caller, &headers, &body.required()?).await
}

async fn tool_result(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> AcceptedAnswer {
    let mut whole = lift::whole(ActionType::ToolResult, Target::InBody, Some(body.required()?))?;
    let named = name_after_operation(&mut whole, &headers);
    let answer = submit::submit(&gateway, &caller, &headers, &whole).await;
    match (answer, named) {
        // The id that conflicts is not the caller's: what it stands for is.
        (Err(refused), Some(id)) if refused.0.code == Code::ActionConflict => {
            let detail =
                format!("{id} has another result already. The first one counts, and later ones change nothing.");
            Err(Refused::new(Code::NoOpenOperation, detail))
        }
        (answer, _) => answer,
    }
}

/// An operation has one end: a result without an id of its own gets the one that any end of this
/// operation has, so that sending it again is answered alike. Returns the operation if it was so named.
fn name_after_operation(whole: &mut Value, headers: &HeaderMap) -> Option<OperationId> {
    let has_id = whole.get("action_id").is_some_and(|id| !id.is_null()) || headers.contains_key(KEY_HEADER.0);
    let operation = whole["payload"]["operation_id"].as_str().and_then(|id| OperationId::parse(id).ok());
    let id = operation.filter(|_| !has_id)?;
    whole["action_id"] = result_id(&id).as_str().into();
    Some(id)
}

async fn one(State(gateway): State<Gateway>, caller: Caller, PathId(id): PathId<ActionId>) -> Answer<Json<ActionView>> {
    let found = gateway.ledger.action(&caller.namespace, &id).await?;
    let missing = || {
        let detail = format!("There is no action {id}. Ids of processed actions are forgotten after their retention.");
        Refused::new(Code::ActionNotFound, detail)
    };
    found.map(Json).ok_or_else(missing)
}
