//! `GET /api/agents`, `GET /api/agents/{agent_id}/sessions`.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use domain::ports::SessionQuery;
use schemas::api::{AgentPage, AgentView, SessionFilter, SessionPage};
use schemas::id::AgentId;
use schemas::limits::PAGE_DEFAULT;
use schemas::problem::Code;

use super::sessions::{self, PAGE_PARAMS};
use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::views::session_view;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/agents", get(list))
            .summary("Agents in id order, each with its newest session.")
            .query(PAGE_PARAMS)
            .answers(200, "AgentPage")
            .refuses(&[Code::InvalidRequest]),
        Route::get("/api/agents/{agent_id}/sessions", get(of_agent))
            .summary("The sessions of an agent, newest first.")
            .query(PAGE_PARAMS)
            .answers(200, "SessionPage")
            .refuses(&[Code::InvalidRequest, Code::AgentNotFound]),
    ]
}

async fn list(State(gateway): State<Gateway>, caller: Caller, mut params: Params) -> Answer<Json<AgentPage>> {
    let after = params.parsed::<AgentId>("cursor");
    let limit = params.limit(PAGE_DEFAULT);
    params.finish()?;
    let mut rows = gateway.sessions.agents(&caller.namespace, after.as_ref(), limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).map(|(row, _)| row.agent_id.to_string());
    let items = rows
        .iter()
        .map(|(row, sessions)| AgentView {
            agent_id: row.agent_id.clone(),
            latest: session_view(row),
            sessions: *sessions,
        })
        .collect();
    Ok(Json(AgentPage { items, next_cursor }))
}

async fn of_agent(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(agent): PathId<AgentId>,
    mut params: Params,
) -> Answer<Json<SessionPage>> {
    let (after, limit) = sessions::place(&mut params);
    params.finish()?;
    if after.is_none() && gateway.sessions.latest(&caller.namespace, &agent).await?.is_none() {
        let detail = format!("Agent {agent} has no session. GET /api/agents lists those that have one.");
        return Err(Refused::new(Code::AgentNotFound, detail));
    }
    let filter = SessionFilter { agent_id: Some(agent), ..SessionFilter::default() };
    sessions::page(&gateway, SessionQuery { namespace: caller.namespace, filter, prefix: None, after, limit }).await
}
