//! `GET /api/agents/{agent_id}/memories`: what an agent remembers, for people to look at.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use domain::action::fields::not_one_of;
use domain::memory::MemoryFilter;
use domain::ports::MemoryListQuery;
use domain::time::rfc3339;
use schemas::id::{AgentId, MemoryId};
use schemas::limits::{MEMORY_PAGE_DEFAULT, MEMORY_PAGE_MAX};
use schemas::memory::{Memory, MemoryOwner, MemoryPage, MemoryTier, MemoryView};
use schemas::problem::Code;

use crate::answer::Answer;
use crate::api::conversations::read_cursor;
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/agents/{agent_id}/memories", get(list))
            .summary(
                "What an agent remembers, the latest changed first; nothing for an agent that nobody knows. Content \
                 with a content_ref is left out. A page may end before it is full.",
            )
            .query(&[
                ("tier", "core, working or archival"),
                ("limit", "Rows of a page, 1 to 200; 50 if absent"),
                ("cursor", "next_cursor of the page before"),
            ])
            .answers(200, "MemoryPage")
            .refuses(&[Code::InvalidRequest]),
    ]
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(agent_id): PathId<AgentId>,
    mut params: Params,
) -> Answer<Json<MemoryPage>> {
    let tier = params.read("tier", read_tier);
    let query = MemoryListQuery {
        filter: MemoryFilter { tiers: tier.into_iter().collect(), ..MemoryFilter::default() },
        after: params.read("cursor", |text| read_cursor(text, MemoryId::parse)),
        limit: params.whole("limit", 1, MEMORY_PAGE_MAX as u64).map_or(MEMORY_PAGE_DEFAULT, |limit| limit as usize),
    };
    params.finish()?;
    let owner = MemoryOwner { namespace: caller.namespace, agent_id };
    let page = gateway.memories.list(&owner, &query).await?;
    let next_cursor = page.next.map(|(at, id)| format!("{at}~{id}"));
    Ok(Json(MemoryPage { items: page.rows.into_iter().map(view).collect(), next_cursor }))
}

fn view(memory: Memory) -> MemoryView {
    let (created_at, updated_at) = (rfc3339(memory.created_at_ms), rfc3339(memory.updated_at_ms));
    MemoryView { memory, created_at, updated_at }
}

fn read_tier(text: &str) -> Result<MemoryTier, String> {
    MemoryTier::parse(text).ok_or_else(|| not_one_of(text, &MemoryTier::ALL.map(MemoryTier::as_str)))
}
