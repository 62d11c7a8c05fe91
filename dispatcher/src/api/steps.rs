//! `GET /api/agent-steps` (SPEC Q-TAB-06 to Q-TAB-08, Q-API-01).

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use domain::action::fields::not_one_of;
use domain::read::{self, StepsOf, StepsQuery, view};
use domain::time::parse_rfc3339;
use schemas::api::StepPage;
use schemas::id::{AgentId, Namespace, SessionId, SessionKey};
use schemas::limits::{PAGE_DEFAULT, PAGE_LATEST_DEFAULT, PAGE_MAX, PAGE_OFFSET_MAX, PAGE_SINCE_DEFAULT};
use schemas::problem::Code;
use schemas::record::StepStatus;

use crate::answer::Answer;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::patience;
use crate::routes::Route;

const ITERATION_MAX: u64 = i64::MAX as u64;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/agent-steps", get(list))
            .summary(
                "Steps of a session or of an agent. All given conditions must hold; then order, then offset and limit.",
            )
            .query(&[
                ("session_id", "Steps of this session; this or agent_id is needed, both must hold"),
                ("agent_id", "Steps of all sessions of this agent"),
                ("min_iteration", "Iterations from here on"),
                ("max_iteration", "Iterations up to here"),
                ("after_iteration", "Iterations strictly greater; makes the default limit 500"),
                ("since", "Steps committed at or after this time (RFC 3339)"),
                ("status", "ok, error or info"),
                ("order", "asc or desc, by iteration; asc if absent, desc with latest"),
                ("latest", "The newest steps: at most how many, or true for 20 or what limit says"),
                ("offset", "Rows to skip, at most 10000; a cursor is quicker and steadier"),
                ("limit", "Rows of a page, 1 to 1000; 100 if absent"),
                ("cursor", "next_cursor of the page before"),
            ])
            .answers(200, "StepPage")
            .refuses(&[Code::InvalidRequest, Code::TooLarge]),
    ]
}

/// What is asked for, and whether the newest steps are shown oldest first.
struct Asked {
    query: StepsQuery,
    /// Whose session it must be.
    agent: Option<AgentId>,
    turned: bool,
}

async fn list(State(gateway): State<Gateway>, caller: Caller, mut params: Params) -> Answer<Json<StepPage>> {
    let Some(asked) = read_query(&caller.namespace, &mut params) else {
        params.finish()?;
        return Ok(Json(StepPage { items: Vec::new(), next_cursor: None }));
    };
    params.finish()?;
    let read = read::steps(&*gateway.journal, &*gateway.archive, &*gateway.sessions, &asked.query);
    let page = patience::history(read).await?;
    let of_agent = |agent: &AgentId| asked.agent.as_ref().is_none_or(|wanted| wanted == agent);
    // A session has one agent, so either all of its steps pass or none.
    let mut items: Vec<_> =
        page.items.iter().filter(|stored| of_agent(&stored.agent_id)).map(view::step_view).collect();
    let next_cursor = page.next.filter(|_| !items.is_empty()).map(|place| place.to_string());
    if asked.turned {
        items.reverse();
    }
    Ok(Json(StepPage { items, next_cursor }))
}

/// `None` if nothing can be asked; what is wrong is noted in `params`.
fn read_query(namespace: &Namespace, params: &mut Params) -> Option<Asked> {
    let session = params.parsed::<SessionId>("session_id");
    let agent = params.parsed::<AgentId>("agent_id");
    if session.is_none() && agent.is_none() {
        params.problem("session_id", "is missing; name a session_id or an agent_id");
    }
    let latest = params.read("latest", read_latest);
    let order = params.read("order", read_order);
    let after_iteration = params.whole("after_iteration", 0, ITERATION_MAX);
    let min_iteration = params.whole("min_iteration", 0, ITERATION_MAX);
    let max_iteration = params.whole("max_iteration", 0, ITERATION_MAX);
    let since_ms = params.read("since", read_time);
    let status = params.read("status", read_status);
    let cursor = params.parsed("cursor");
    let offset = params.whole("offset", 0, PAGE_OFFSET_MAX as u64);
    if cursor.is_some() && offset.is_some() {
        params.problem("offset", "cannot be combined with cursor; send one of them");
    }
    let limit = params.limit(match (latest, after_iteration) {
        (Some(Latest::Page), _) => PAGE_LATEST_DEFAULT,
        (Some(Latest::Count(count)), _) => count,
        (_, Some(_)) => PAGE_SINCE_DEFAULT,
        (_, None) => PAGE_DEFAULT,
    });
    let limit = match latest {
        Some(Latest::Count(count)) => limit.min(count),
        _ => limit,
    };
    let is_latest = matches!(latest, Some(Latest::Page | Latest::Count(_)));
    let of = match (session, &agent) {
        (Some(session), _) => StepsOf::Session(SessionKey::new(namespace.clone(), session)),
        (None, Some(agent)) => StepsOf::Agent(namespace.clone(), agent.clone()),
        (None, None) => return None,
    };
    let query = StepsQuery {
        of,
        min_iteration,
        max_iteration,
        after_iteration,
        since_ms,
        status,
        descending: order == Some(Order::Descending),
        latest: is_latest,
        cursor,
        offset: offset.unwrap_or(0) as usize,
        limit,
    };
    Some(Asked { query, agent, turned: is_latest && order == Some(Order::Ascending) })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

/// Whether the newest steps are asked for, and how many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Latest {
    No,
    /// As many as a page has.
    Page,
    Count(usize),
}

fn read_latest(text: &str) -> Result<Latest, String> {
    match text {
        "true" => Ok(Latest::Page),
        "false" => Ok(Latest::No),
        number => {
            let count = number.parse().ok().filter(|count| (1..=PAGE_MAX).contains(count));
            count.map(Latest::Count).ok_or_else(|| format!("must be true, or how many: 1 to {PAGE_MAX}"))
        }
    }
}

pub fn read_order(text: &str) -> Result<Order, String> {
    match text {
        "asc" => Ok(Order::Ascending),
        "desc" => Ok(Order::Descending),
        other => Err(not_one_of(other, &["asc", "desc"])),
    }
}

fn read_status(text: &str) -> Result<StepStatus, String> {
    StepStatus::parse(text).ok_or_else(|| not_one_of(text, &["ok", "error", "info"]))
}

pub fn read_time(text: &str) -> Result<i64, String> {
    // A plus sign is a blank in a query unless it is escaped; no time has a blank there.
    let text = text.replace(' ', "+");
    parse_rfc3339(&text).ok_or_else(|| "must be an RFC 3339 time such as 2026-01-31T08:30:00Z".to_owned())
}
