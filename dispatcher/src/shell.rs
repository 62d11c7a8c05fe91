//! What is around every handler: a bound on its time, a net for its panics, headers, a log line.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use schemas::limits::REQUEST_MS_MAX;
use schemas::problem::Code;
use tokio::time::Instant;

use crate::answer::Refused;

/// Nothing but our own files may run or be loaded, and nobody may frame us.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Stream addresses may hold a token in their query.
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Ends what takes too long. Not for streams.
pub async fn time_limit(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match tokio::time::timeout(Duration::from_millis(REQUEST_MS_MAX), next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let hint = if reads {
                "Ask for less, or later."
            } else {
                "It may have been accepted: repeat it with the same action_id."
            };
            Refused::new(Code::Unavailable, format!("No answer within {} s. {hint}", REQUEST_MS_MAX / 1_000))
                .into_response()
        }
    }
}

/// The outermost layer.
pub async fn shell(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    // The matched pattern, never the address: a query may hold a token, a path may hold anything.
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let api = request.uri().path().starts_with("/api/");
    let mut response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            tracing::error!(%method, route = route.as_deref(), panic = %text, "handler panicked");
            Refused::new(Code::Internal, "The log of the dispatcher has the details.").into_response()
        }
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if api && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let status = response.status().as_u16();
    let micros = started.elapsed().as_micros() as u64;
    tracing::debug!(%method, route = route.as_deref().unwrap_or("none"), status, micros, "request");
    response
}
