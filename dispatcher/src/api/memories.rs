//! `/api/agents/{agent_id}/memories`: what an agent remembers, for people to look at, to search and to read.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use domain::action::fields::not_one_of;
use domain::memory::input::MemorySearch;
use domain::memory::{MemoryFilter, MemoryKey};
use domain::ports::MemoryListQuery;
use domain::recall;
use domain::time::rfc3339;
use schemas::id::{AgentId, MemoryId};
use schemas::limits::{MEMORY_HITS_MAX, MEMORY_PAGE_DEFAULT, MEMORY_PAGE_MAX};
use schemas::memory::{Memory, MemoryOwner, MemoryPage, MemoryTier, MemoryView};
use schemas::problem::{Code, Problem};
use serde_json::json;

use crate::answer::{Answer, Refused};
use crate::api::conversations::read_cursor;
use crate::caller::Caller;
use crate::extract::{PathId, PathIds};
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/agents/{agent_id}/memories", get(list))
            .summary(
                "What an agent remembers, the latest changed first, or the best matches first of what is searched for; \
                 nothing for an agent that nobody knows. Content with a content_ref is left out. A page may end before \
                 it is full.",
            )
            .query(&[
                ("query", "What to search for, by meaning and by words, as the tool memory.search does; one page"),
                ("min_relevance", "Of what is searched for: 0 to 1; 0 if absent"),
                ("tier", "core, working or archival"),
                ("limit", "Rows of a page, 1 to 200; 50 if absent. Of a search, 1 to 100; 10 if absent"),
                ("cursor", "next_cursor of the page before"),
            ])
            .answers(200, "MemoryPage")
            .refuses(&[Code::InvalidRequest]),
        Route::get("/api/agents/{agent_id}/memories/{memory_id}", get(read))
            .summary("One memory with all of its content.")
            .answers(200, "MemoryView")
            .refuses(&[Code::InvalidRequest, Code::NotFound]),
    ]
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(agent_id): PathId<AgentId>,
    mut params: Params,
) -> Answer<Json<MemoryPage>> {
    let owner = MemoryOwner { namespace: caller.namespace, agent_id };
    let tier = params.read("tier", read_tier);
    if let Some(text) = params.text("query") {
        return search(&gateway, &owner, &text, tier, params).await;
    }
    let query = MemoryListQuery {
        filter: MemoryFilter { tiers: tier.into_iter().collect(), ..MemoryFilter::default() },
        after: params.read("cursor", |text| read_cursor(text, MemoryId::parse)),
        limit: params.whole("limit", 1, MEMORY_PAGE_MAX as u64).map_or(MEMORY_PAGE_DEFAULT, |limit| limit as usize),
    };
    params.finish()?;
    let page = gateway.memories.list(&owner, &query).await?;
    let next_cursor = page.next.map(|(at, id)| format!("{at}~{id}"));
    let items = page.rows.into_iter().map(|memory| view(memory, None)).collect();
    Ok(Json(MemoryPage { items, next_cursor, incomplete: false }))
}

/// The same search as an agent's tool makes, with what was written a moment ago in it.
async fn search(
    gateway: &Gateway,
    owner: &MemoryOwner,
    text: &str,
    tier: Option<MemoryTier>,
    mut params: Params,
) -> Answer<Json<MemoryPage>> {
    let mut asked = json!({"query": text, "tiers": tier.into_iter().collect::<Vec<_>>()});
    if let Some(limit) = params.whole("limit", 1, MEMORY_HITS_MAX as u64) {
        asked["limit"] = limit.into();
    }
    let number = |text: &str| text.parse::<f64>().map_err(|_| format!("must be a number from 0 to 1, not {text:?}"));
    if let Some(least) = params.read("min_relevance", number) {
        asked["min_relevance"] = least.into();
    }
    params.finish()?;
    let wrong = |errors| Problem::fields(Code::InvalidRequest, errors);
    let asked = MemorySearch::check(&asked).map_err(wrong)?;
    let found = recall::search(gateway.memories.as_ref(), gateway.embedder.as_ref(), owner, asked).await?;
    if let Some(failure) = found.not_embedded {
        tracing::warn!(%failure, "what is searched for could not be embedded; words alone count for it");
    }
    let items = found.value.hits.into_iter().map(|hit| view(hit.memory, Some(hit.relevance))).collect();
    Ok(Json(MemoryPage { items, next_cursor: None, incomplete: found.value.incomplete }))
}

async fn read(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathIds(agent_id, id): PathIds<AgentId, MemoryId>,
) -> Answer<Json<MemoryView>> {
    let missing = format!("The agent {agent_id} has no memory {id}. GET /api/agents/{agent_id}/memories lists them.");
    let owner = MemoryOwner { namespace: caller.namespace, agent_id };
    let memory = gateway.memories.read(&owner, &MemoryKey::Id(id)).await?;
    let memory = memory.ok_or_else(|| Refused::new(Code::NotFound, missing))?;
    Ok(Json(view(memory, None)))
}

fn view(memory: Memory, relevance: Option<f64>) -> MemoryView {
    let (created_at, updated_at) = (rfc3339(memory.created_at_ms), rfc3339(memory.updated_at_ms));
    MemoryView { memory, created_at, updated_at, relevance }
}

fn read_tier(text: &str) -> Result<MemoryTier, String> {
    MemoryTier::parse(text).ok_or_else(|| not_one_of(text, &MemoryTier::ALL.map(MemoryTier::as_str)))
}
