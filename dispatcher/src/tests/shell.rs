//! What is around the handlers: unknown paths, wrong methods, headers, panics, slowness.

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use domain::failure::Failure;
use domain::ports::{SessionQuery, Sessions};
use schemas::id::{AgentId, Namespace, SessionKey, Shard};
use schemas::session::{Head, SessionRow, SessionStatus};

use super::world::{READ, World, request};
use crate::Deps;

#[tokio::test(start_paused = true)]
async fn unknown_paths_are_problems() {
    let world = World::new().await;
    for path in [
        "/api",
        "/api/",
        "/api/nothing",
        "/nothing",
        "/api/sessions/",
        "/api/sessions/s1/nothing",
        "/../etc/passwd",
        "/index.html/x",
    ] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let reply = world.send(request(method, path, READ, Body::empty())).await;
            assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::NOT_FOUND, "not_found"), "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_methods_are_problems_and_name_the_right_ones() {
    let world = World::new().await;
    for (method, path, allowed) in [
        (Method::GET, "/api/actions", "POST"),
        (Method::DELETE, "/api/sessions/s1", "GET"),
        (Method::PUT, "/api/sessions", "GET"),
        (Method::GET, "/api/sessions/s1/pause", "POST"),
        (Method::POST, "/health", "GET"),
        (Method::PATCH, "/api/tool-results", "POST"),
        (Method::POST, "/", "GET"),
        (Method::TRACE, "/js/main.js", "GET"),
    ] {
        for token in ["", READ] {
            let reply = world.send(request(method.clone(), path, token, Body::empty())).await;
            let answer = (reply.status, reply.problem());
            assert_eq!(answer, (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed".into()), "{method} {path}");
            assert!(reply.header("allow").contains(allowed), "{method} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn head_is_get_without_a_body() {
    let world = World::new().await;
    for path in ["/", "/health", "/api/sessions", "/openapi.json"] {
        let reply = world.send(request(Method::HEAD, path, READ, Body::empty())).await;
        assert_eq!((reply.status, reply.text.as_str()), (StatusCode::OK, ""), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_answer_has_the_headers_of_a_careful_server() {
    let world = World::new().await;
    for (method, path) in
        [(Method::GET, "/"), (Method::GET, "/api/sessions"), (Method::GET, "/nothing"), (Method::GET, "/api/actions")]
    {
        let reply = world.send(request(method, path, READ, Body::empty())).await;
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"));
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("referrer-policy"), "no-referrer");
        assert_eq!(reply.header("x-frame-options"), "DENY");
    }
    assert_eq!(world.get("/api/sessions").await.header("cache-control"), "no-store");
}

#[tokio::test(start_paused = true)]
async fn the_console_is_served_with_tags() {
    let world = World::new().await;
    let page = world.get_as("", "/").await;
    assert_eq!((page.status, page.header("content-type")), (StatusCode::OK, "text/html; charset=utf-8"));
    assert!(page.text.contains("<title>"));
    let script = world.get_as("", "/js/main.js").await;
    assert_eq!(script.status, StatusCode::OK);
    assert!(script.header("content-type").starts_with("text/javascript"), "{}", script.header("content-type"));
    let mut again = request(Method::GET, "/js/main.js", "", Body::empty());
    again.headers_mut().insert("if-none-match", script.header("etag").parse().unwrap());
    assert_eq!(world.send(again).await.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_problem_of_its_request_alone() {
    let world = World::with(|deps| Deps { metrics: Arc::new(|| panic!("boom: secret")), ..deps }).await;
    let reply = world.get("/metrics").await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::INTERNAL_SERVER_ERROR, "internal"));
    assert!(!reply.text.contains("boom"));
    assert_eq!(world.get("/api/sessions").await.status, StatusCode::OK);
}

/// A registry that never answers a list, and fails a look.
struct Stuck;

#[async_trait]
impl Sessions for Stuck {
    async fn session(&self, _: &SessionKey) -> Result<Option<SessionRow>, Failure> {
        Err(Failure::internal("row 7 of /var/secret is corrupt"))
    }

    async fn list(&self, _: &SessionQuery) -> Result<Vec<SessionRow>, Failure> {
        std::future::pending().await
    }

    async fn latest(&self, _: &Namespace, _: &AgentId) -> Result<Option<SessionRow>, Failure> {
        Err(Failure::storage_full("the disk is full"))
    }

    async fn agents(&self, _: &Namespace, _: Option<&AgentId>, _: usize) -> Result<Vec<(SessionRow, u64)>, Failure> {
        Err(Failure::in_doubt("the connection was lost"))
    }

    async fn due(
        &self,
        _: Shard,
        _: i64,
        _: Option<(i64, SessionKey)>,
        _: usize,
    ) -> Result<Vec<(i64, SessionKey)>, Failure> {
        Ok(Vec::new())
    }

    async fn heads(&self, _: Option<&SessionKey>, _: usize) -> Result<Vec<(SessionKey, Head)>, Failure> {
        Ok(Vec::new())
    }

    async fn rearm(&self, _: &SessionKey, _: u64) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn count_by_status(&self) -> Result<Vec<(SessionStatus, u64)>, Failure> {
        Ok(Vec::new())
    }
}

#[tokio::test(start_paused = true)]
async fn slow_and_failing_stores_are_problems() {
    let world = World::with(|deps| Deps { sessions: Arc::new(Stuck), ..deps }).await;
    let reply = world.get("/api/sessions").await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "unavailable"));
    let reply = world.get("/api/sessions/s1").await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::INTERNAL_SERVER_ERROR, "internal"));
    assert!(!reply.text.contains("secret"), "insides stay inside");
    let reply = world.get("/api/agents/a1/sessions").await;
    assert_eq!((reply.status.as_u16(), reply.problem().as_str()), (507, "storage_full"));
    let reply = world.get("/api/agents").await;
    assert!(reply.problem() == "unavailable" && reply.text.contains("same action_id"));
}
