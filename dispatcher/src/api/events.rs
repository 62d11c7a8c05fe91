//! `GET /api/sessions/{id}/events`: server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream;
use schemas::id::SessionId;
use schemas::limits::STREAM_HEARTBEAT_MS;
use schemas::problem::Code;

use crate::answer::Answer;
use crate::caller::Caller;
use crate::extract::PathId;
use crate::gateway::Gateway;
use crate::params::Params;
use crate::routes::Route;
use crate::stream::{self as streams, Frame, Stream};

pub const CURSOR_PARAMS: &[(&str, &str)] = &[
    ("after", "Offset of the last event already known; 0 if absent"),
    ("token", "The token, for clients that cannot send headers"),
];

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/sessions/{id}/events", get(events))
            .stream()
            .summary(
                "Committed events, each once and in order, as server-sent events: `id` is the offset, `event` the type, \
                 `data` a StreamEvent. `end` says that nothing follows: close then.",
            )
            .query(CURSOR_PARAMS)
            .header("Last-Event-ID", "The same as after; wins over it")
            .answers(200, "StreamEvent")
            .refuses(&[Code::InvalidRequest, Code::SessionNotFound, Code::TooManyRequests]),
    ]
}

async fn events(
    State(gateway): State<Gateway>,
    caller: Caller,
    PathId(id): PathId<SessionId>,
    headers: HeaderMap,
    params: Params,
) -> Answer<Response> {
    let stream = streams::open(&gateway, &caller, id, &headers, params).await?;
    let frames = stream::unfold(stream, |mut stream: Stream<Frame>| async {
        let frame = stream.next().await?;
        let event = Event::default().id(frame.offset.to_string()).event(frame.name()).data(frame.json);
        Some((Ok::<_, Infallible>(event), stream))
    });
    let heartbeat = KeepAlive::new().interval(Duration::from_millis(STREAM_HEARTBEAT_MS)).text("alive");
    let mut response = Sse::new(frames).keep_alive(heartbeat).into_response();
    // Proxies that buffer would turn a live stream into a late one.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response.headers_mut().insert(unbuffered.0, unbuffered.1);
    Ok(response)
}
