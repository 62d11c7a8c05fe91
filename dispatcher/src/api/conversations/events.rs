//! `GET /api/conversations/{id}/events`: server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream;
use schemas::id::ConversationId;
use schemas::limits::STREAM_HEARTBEAT_MS;
use schemas::problem::Code;

use crate::answer::Answer;
use crate::api::events::CURSOR_PARAMS;
use crate::caller::Caller;
use crate::extract::PathId;
use crate::follow::{self, Line};
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::stream::Stream;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/conversations/{id}/events", get(events))
            .stream()
            .summary(
                "What is said and done, as server-sent events: `event` is the type of the frame, `data` a \
                 ConversationFrame. Committed ones have an `id`, the offset to come back with; tokens have none.",
            )
            .query(CURSOR_PARAMS)
            .header("Last-Event-ID", "The same as after; wins over it")
            .answers(200, "ConversationFrame")
            .refuses(&[Code::InvalidRequest, Code::ConversationNotFound, Code::TooManyRequests]),
    ]
}

async fn events(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<ConversationId>,
    headers: HeaderMap,
    params: Params,
) -> Answer<Response> {
    let followed = follow::open(&gateway, &caller, id, &headers, params).await?;
    let frames = stream::unfold(followed, |mut followed: Stream<Line>| async {
        let line = followed.next().await?;
        let event = Event::default().event(line.name).data(line.json);
        let event = match line.offset {
            Some(offset) => event.id(offset.to_string()),
            None => event,
        };
        Some((Ok::<_, Infallible>(event), followed))
    });
    let heartbeat = KeepAlive::new().interval(Duration::from_millis(STREAM_HEARTBEAT_MS)).text("alive");
    let mut response = Sse::new(frames).keep_alive(heartbeat).into_response();
    // Proxies that buffer would turn a live stream into a late one.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response.headers_mut().insert(unbuffered.0, unbuffered.1);
    Ok(response)
}
