//! `GET /api/agents`, `GET /api/agents/{agent_id}/sessions`. Definitions of agents are written and
//! read as those of other kinds: see `definitions`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use domain::ports::{DefinitionPage, DefinitionQuery, SessionQuery};
use schemas::api::{AgentPage, AgentView, SessionFilter, SessionPage};
use schemas::definition::DefinitionKind;
use schemas::id::{AgentId, DefinitionId};
use schemas::limits::{PAGE_BYTES_MAX, PAGE_DEFAULT};
use schemas::problem::Code;
use schemas::session::SessionRow;

use super::sessions::{self, PAGE_PARAMS};
use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::views::{definition_view, session_view};

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/agents", get(list))
            .summary("Agents in id order: those that are defined, and those that have sessions, with the newest.")
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
    let query = DefinitionQuery {
        namespace: caller.namespace.clone(),
        kind: DefinitionKind::Agent,
        name: None,
        library_id: None,
        project_id: None,
        after: after.as_ref().and_then(definition_id),
        limit,
        bytes: PAGE_BYTES_MAX,
    };
    let (rows, defined) = tokio::join!(
        gateway.sessions.agents(&caller.namespace, after.as_ref(), limit + 1),
        gateway.definitions.definitions(&query)
    );
    Ok(Json(merged(rows?, defined?, limit)))
}

/// Both lists in one, in id order. A page of one of them says nothing of ids beyond its own last, so
/// the merged page ends there.
fn merged(mut rows: Vec<(SessionRow, u64)>, defined: DefinitionPage, limit: usize) -> AgentPage {
    let more_rows = rows.len() > limit;
    rows.truncate(limit);
    let last_row = rows.last().filter(|_| more_rows).map(|(row, _)| row.agent_id.to_string());
    let last_defined = defined.rows.last().filter(|_| defined.more).map(|row| row.id.to_string());
    let end = [last_row, last_defined].into_iter().flatten().min();
    let mut agents: BTreeMap<String, AgentView> = BTreeMap::new();
    for (row, sessions) in &rows {
        let latest = Some(session_view(row));
        let view = AgentView { agent_id: row.agent_id.clone(), latest, sessions: *sessions, definition: None };
        agents.insert(row.agent_id.to_string(), view);
    }
    for row in &defined.rows {
        // The alphabets of the two ids are one.
        let Ok(agent_id) = AgentId::parse(row.id.as_str()) else { continue };
        let view = agents.entry(row.id.to_string()).or_insert_with(|| AgentView {
            agent_id,
            latest: None,
            sessions: 0,
            definition: None,
        });
        view.definition = Some(definition_view(row));
    }
    let found = agents.len();
    let within = |id: &String| end.as_ref().is_none_or(|end| id <= end);
    let items: Vec<AgentView> =
        agents.into_iter().filter(|(id, _)| within(id)).map(|(_, view)| view).take(limit).collect();
    let more = end.is_some() || found > items.len();
    let next_cursor = items.last().filter(|_| more).map(|view| view.agent_id.to_string());
    AgentPage { items, next_cursor }
}

fn definition_id(agent: &AgentId) -> Option<DefinitionId> {
    DefinitionId::parse(agent.as_str()).ok()
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
        let key = definition_id(&agent).map(|id| (DefinitionKind::Agent, id));
        let defined = gateway.definitions.known(&caller.namespace, key.as_slice()).await?;
        if !defined.is_empty() {
            return Ok(Json(SessionPage { items: Vec::new(), next_cursor: None }));
        }
        let detail = format!("Agent {agent} has no session. GET /api/agents lists those that have one.");
        return Err(Refused::new(Code::AgentNotFound, detail));
    }
    let filter = SessionFilter { agent_id: Some(agent), ..SessionFilter::default() };
    sessions::page(&gateway, SessionQuery { namespace: caller.namespace, filter, prefix: None, after, limit }).await
}
