//! `POST /api/sessions/{id}/<verb>`, `POST /api/agents/{agent_id}/<verb>`, `POST /api/sessions/bulk`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::{MethodRouter, post};
use domain::action::bulk as bulk_body;
use domain::action::lift::{self, Target};
use domain::ports::Scope;
use schemas::action::ActionType;
use schemas::api::BulkAnswer;
use schemas::id::{ActionId, AgentId, SessionId};
use schemas::problem::Code;

use super::actions::{KEY_HEADER, REFUSALS};
use crate::answer::{Answer, Refused};
use crate::bulk;
use crate::caller::{Caller, scope_of};
use crate::extract::{JsonBody, PathId, idempotency_key};
use crate::gateway::Gateway;
use crate::routes::Route;
use crate::submit::{self, AcceptedAnswer};

/// Path by session, path by agent, summary, body.
const VERBS: [(ActionType, &str, &str, &str, &str); 5] = [
    (
        ActionType::Input,
        "/api/sessions/{id}/input",
        "/api/agents/{agent_id}/input",
        "Give a session something to work on. The body is the payload.",
        "InputPayload",
    ),
    (
        ActionType::Interrupt,
        "/api/sessions/{id}/interrupt",
        "/api/agents/{agent_id}/interrupt",
        "Give guidance to exactly one later step. The body is the payload.",
        "InterruptPayload",
    ),
    (
        ActionType::Pause,
        "/api/sessions/{id}/pause",
        "/api/agents/{agent_id}/pause",
        "Start no further step; a running one ends first. The body may be empty.",
        "ReasonPayload",
    ),
    (
        ActionType::Resume,
        "/api/sessions/{id}/resume",
        "/api/agents/{agent_id}/resume",
        "End a pause, or take up a session in error at its failed step. The body may be empty.",
        "ReasonPayload",
    ),
    (
        ActionType::Destroy,
        "/api/sessions/{id}/destroy",
        "/api/agents/{agent_id}/destroy",
        "End a session for good, within a grace period. The body may be empty.",
        "ReasonPayload",
    ),
];

pub fn routes() -> Vec<Route> {
    let mut routes = Vec::new();
    for (kind, by_session, by_agent, summary, body) in VERBS {
        let own: &[Code] = match kind {
            ActionType::Input => &[Code::InputNotTaken, Code::ConversationClosed, Code::TooManyRequests],
            ActionType::Interrupt => &[Code::TooManyRequests],
            _ => &[],
        };
        for (path, handler) in [(by_session, to_session(kind)), (by_agent, to_agent(kind))] {
            let route = Route::post(path, handler)
                .scope(scope_of(kind))
                .summary(summary)
                .header(KEY_HEADER.0, KEY_HEADER.1)
                .body(body)
                .answers(202, "AcceptedBody")
                .refuses(REFUSALS)
                .refuses(own);
            routes.push(route);
        }
    }
    routes.push(
        Route::post("/api/sessions/bulk", post(all))
            .scope(Scope::Operate)
            .summary(
                "One verb for all sessions that match. Without filter.status: those the verb can change. Repeat it \
                 with the same Idempotency-Key if no answer came; nothing acts twice.",
            )
            .header(KEY_HEADER.0, KEY_HEADER.1)
            .body("BulkBody")
            .answers(200, "BulkAnswer")
            .refuses(&[Code::InvalidRequest, Code::InvalidJson, Code::UnknownType, Code::TooLarge, Code::StorageFull]),
    );
    routes
}

fn to_session(kind: ActionType) -> MethodRouter<Gateway> {
    post(
        move |State(gateway): State<Gateway>,
              caller: Caller,
              id: PathId<SessionId>,
              headers: HeaderMap,
              body: JsonBody| async move {
            short(&gateway, &caller, &headers, kind, Target::Session(id.0.as_str()), body).await
        },
    )
}

fn to_agent(kind: ActionType) -> MethodRouter<Gateway> {
    post(
        move |State(gateway): State<Gateway>,
              caller: Caller,
              id: PathId<AgentId>,
              headers: HeaderMap,
              body: JsonBody| async move {
            short(&gateway, &caller, &headers, kind, Target::Agent(id.0.as_str()), body).await
        },
    )
}

async fn short(
    gateway: &Gateway,
    caller: &Caller,
    headers: &HeaderMap,
    kind: ActionType,
    target: Target<'_>,
    body: JsonBody,
) -> AcceptedAnswer {
    let whole = lift::whole(kind, target, body.0)?;
    submit::submit(gateway, caller, headers, &whole).await
}

async fn all(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer<Json<BulkAnswer>> {
    let key = match idempotency_key(&headers)? {
        None => gateway.fresh_id(),
        Some(text) => ActionId::parse(&text).map_err(|error| Refused::field("Idempotency-Key", error.to_string()))?,
    };
    let body = bulk_body::parse(&body.required()?)?;
    Ok(Json(bulk::run(&gateway, &caller, &key, body).await?))
}
