//! `GET /api/sessions`, `GET /api/sessions/{id}`, `GET /api/sessions/{id}/why`.

mod why;

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use domain::action::bulk::read_status;
use domain::ports::SessionQuery;
use domain::read;
use schemas::api::{SessionDetail, SessionFilter, SessionPage};
use schemas::id::{AgentId, Namespace, SessionId, SessionKey};
use schemas::json::Json as Text;
use schemas::limits::PAGE_DEFAULT;
use schemas::problem::Code;
use schemas::session::SessionRow;

use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::patience;
use crate::routes::Route;
use crate::views::session_view;

pub const PAGE_PARAMS: &[(&str, &str)] =
    &[("limit", "Rows of a page, 1 to 1000; 100 if absent"), ("cursor", "next_cursor of the page before")];

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/sessions", get(list))
            .summary("Sessions, newest first. All given conditions must hold.")
            .query(&[
                ("status", "One or more of starting, running, paused, stopping, stopped, completed, error; repeated or separated by commas"),
                ("agent_id", "Sessions of this agent"),
                ("moniker", "Sessions that run this moniker"),
                ("conversation_id", "Sessions bound to this conversation"),
                ("q", "Prefix of a session id or agent id"),
            ])
            .query(PAGE_PARAMS)
            .answers(200, "SessionPage")
            .refuses(&[Code::InvalidRequest]),
        Route::get("/api/sessions/{id}", get(one))
            .summary("One session, with its settings and its newest committed state.")
            .answers(200, "SessionDetail")
            .refuses(&[Code::InvalidRequest, Code::SessionNotFound]),
        Route::get("/api/sessions/{id}/why", get(why::why))
            .summary("Why the session stands as it does: the chain of causes, down to the last session that it waits for, and the remedy.")
            .answers(200, "WhyBody")
            .refuses(&[Code::InvalidRequest, Code::SessionNotFound]),
    ]
}

async fn list(State(gateway): State<Gateway>, caller: Caller, mut params: Params) -> Answer<Json<SessionPage>> {
    let filter = SessionFilter {
        agent_id: params.parsed::<AgentId>("agent_id"),
        moniker: params.text("moniker"),
        status: statuses(&mut params),
        conversation_id: params.parsed("conversation_id"),
        session_ids: Vec::new(),
    };
    let prefix = params.text("q");
    let (after, limit) = place(&mut params);
    params.finish()?;
    // Ids have an alphabet: a prefix outside of it matches nothing.
    if prefix.as_deref().is_some_and(|text| SessionId::parse(text).is_err()) {
        return Ok(Json(SessionPage { items: Vec::new(), next_cursor: None }));
    }
    let query = SessionQuery { namespace: caller.namespace, filter, prefix, after, limit };
    page(&gateway, query).await
}

fn statuses(params: &mut Params) -> Vec<schemas::session::SessionStatus> {
    let mut statuses = Vec::new();
    for text in params.list("status") {
        match read_status(&text) {
            Ok(status) if statuses.contains(&status) => {}
            Ok(status) => statuses.push(status),
            Err(message) => params.problem("status", message),
        }
    }
    statuses
}

/// Where a page of sessions begins and how long it is.
pub fn place(params: &mut Params) -> (Option<(i64, SessionId)>, usize) {
    let after = params.read("cursor", |text| {
        let parsed = text.split_once('~').and_then(|(at, id)| Some((at.parse().ok()?, SessionId::parse(id).ok()?)));
        parsed.ok_or_else(|| "is no cursor of a page of sessions; send a next_cursor as it was answered".to_owned())
    });
    (after, params.limit(PAGE_DEFAULT))
}

/// Reads one row more than asked for, to know whether another page follows.
pub async fn page(gateway: &Gateway, mut query: SessionQuery) -> Answer<Json<SessionPage>> {
    let limit = query.limit;
    query.limit = limit + 1;
    let mut rows = gateway.sessions.list(&query).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more);
    let next_cursor = last.map(|row| format!("{}~{}", row.created_at_ms, row.key.session_id));
    Ok(Json(SessionPage { items: rows.iter().map(session_view).collect(), next_cursor }))
}

/// The row of a session of the caller's namespace.
pub async fn row(gateway: &Gateway, namespace: &Namespace, id: SessionId) -> Answer<SessionRow> {
    let key = SessionKey::new(namespace.clone(), id);
    gateway.sessions.session(&key).await?.ok_or_else(|| missing(&key))
}

fn missing(key: &SessionKey) -> Refused {
    let detail = format!("There is no session {}. GET /api/sessions lists those there are.", key.session_id);
    Refused::new(Code::SessionNotFound, detail)
}

async fn one(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<SessionId>,
) -> Answer<Json<SessionDetail>> {
    let row = row(&gateway, &caller.namespace, id).await?;
    let (snapshot, pending_actions) = tokio::join!(
        patience::history(read::snapshot(&*gateway.journal, &*gateway.archive, &row)),
        gateway.ledger.pending_count(&row.key)
    );
    let snapshot = snapshot?;
    Ok(Json(SessionDetail {
        session: session_view(&row),
        spec: row.spec,
        // Nothing is committed before the create action is applied.
        state: snapshot.as_ref().map_or_else(Text::null, |snapshot| snapshot.state.clone()),
        result: snapshot.and_then(|snapshot| snapshot.result),
        pending_actions: pending_actions?,
    }))
}
