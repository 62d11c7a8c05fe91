//! `GET /api/dead`, `GET /api/dead/{id}`, `POST /api/dead/{id}/redrive`, `POST /api/dead/{id}/drop`; for all of
//! them `POST /api/dead/redrive` and `POST /api/dead/drop`.
//!
//! A dead letter belongs to no namespace: what is in it could not be read. So all of this needs an
//! admin's token.

mod sweep;

use axum::Json;
use axum::extract::State;
use axum::routing::{get, post};
use domain::ports::{DeadLetter, Scope};
use domain::time::rfc3339;
use schemas::api::{DeadDoneBody, DeadLetterView};
use schemas::limits::PAGE_DEFAULT;
use schemas::problem::Code;

use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::PathText;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;

/// Of a body in a list.
const EXCERPT_CHARS: usize = 200;

pub fn routes() -> Vec<Route> {
    let mut routes = vec![
        Route::get("/api/dead", get(list))
            .scope(Scope::Admin)
            .summary("Messages that could not be taken, the oldest first, with the beginning of their bodies.")
            .query(&[("limit", "At most so many; 100 if not given.")])
            .answers(200, "[DeadLetterView]")
            .refuses(&[Code::InvalidRequest]),
        Route::get("/api/dead/{id}", get(show))
            .scope(Scope::Admin)
            .summary("One of them, whole.")
            .answers(200, "DeadLetterView")
            .refuses(&[Code::InvalidRequest, Code::NotFound]),
        Route::post("/api/dead/{id}/redrive", post(redrive))
            .scope(Scope::Admin)
            .summary("Send one back to where it came from.")
            .answers(200, "DeadDoneBody")
            .refuses(&[Code::InvalidRequest, Code::NotFound]),
        Route::post("/api/dead/{id}/drop", post(discard))
            .scope(Scope::Admin)
            .summary("Throw one away.")
            .answers(200, "DeadDoneBody")
            .refuses(&[Code::InvalidRequest, Code::NotFound]),
    ];
    routes.extend(sweep::routes());
    routes
}

async fn list(State(gateway): State<Gateway>, mut params: Params) -> Answer<Json<Vec<DeadLetterView>>> {
    let limit = params.limit(PAGE_DEFAULT);
    params.finish()?;
    let letters = gateway.dead.list(limit).await?;
    Ok(Json(letters.iter().map(|letter| view(letter, EXCERPT_CHARS)).collect()))
}

async fn show(State(gateway): State<Gateway>, PathText(id): PathText) -> Answer<Json<DeadLetterView>> {
    match gateway.dead.get(&id).await? {
        Some(letter) => Ok(Json(view(&letter, usize::MAX))),
        None => Err(unknown(&id)),
    }
}

async fn redrive(State(gateway): State<Gateway>, caller: Caller, PathText(id): PathText) -> Answer<Json<DeadDoneBody>> {
    let found = gateway.dead.redrive(&id).await?;
    done(found, &caller, id, "redriven")
}

async fn discard(State(gateway): State<Gateway>, caller: Caller, PathText(id): PathText) -> Answer<Json<DeadDoneBody>> {
    let found = gateway.dead.discard(&id).await?;
    done(found, &caller, id, "dropped")
}

fn done(found: bool, caller: &Caller, id: String, done: &str) -> Answer<Json<DeadDoneBody>> {
    if !found {
        return Err(unknown(&id));
    }
    tracing::info!(dead_letter = %id, by = %caller.name, done, "a dead letter was attended to");
    Ok(Json(DeadDoneBody { id, done: done.to_owned() }))
}

fn unknown(id: &str) -> Refused {
    Refused::new(Code::NotFound, format!("There is no dead letter {id:?}. GET /api/dead lists those there are."))
}

fn view(letter: &DeadLetter, chars_max: usize) -> DeadLetterView {
    DeadLetterView {
        id: letter.id.clone(),
        reason: letter.reason.clone(),
        origin: letter.origin.clone(),
        died_at: if letter.at_ms > 0 { rfc3339(letter.at_ms) } else { String::new() },
        bytes: letter.body.len() as u64,
        body: String::from_utf8_lossy(&letter.body).chars().take(chars_max).collect(),
        headers: letter.headers.iter().cloned().collect(),
    }
}
