//! Tokens and scopes.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use domain::ports::{Scope, Tokens};
use host::secret::Secret;
use schemas::id::Namespace;
use serde_json::json;

use super::world::{ACT, ADMIN, OPERATE, READ, World, request, token_row};
use crate::Config;
use crate::routes::{self, Verb};

/// Nouns of definitions, and the name of their id in a path.
const DEFINITIONS: [[&str; 4]; 9] = [
    ["/api/libraries", "/api/libraries/{id}", "/api/libraries/{id}/versions", "/api/libraries/{id}/versions/{v}"],
    ["/api/projects", "/api/projects/{id}", "/api/projects/{id}/versions", "/api/projects/{id}/versions/{v}"],
    [
        "/api/model-profiles",
        "/api/model-profiles/{id}",
        "/api/model-profiles/{id}/versions",
        "/api/model-profiles/{id}/versions/{v}",
    ],
    ["/api/personas", "/api/personas/{id}", "/api/personas/{id}/versions", "/api/personas/{id}/versions/{v}"],
    ["/api/tools", "/api/tools/{id}", "/api/tools/{id}/versions", "/api/tools/{id}/versions/{v}"],
    ["/api/agents", "/api/agents/{agent_id}", "/api/agents/{agent_id}/versions", "/api/agents/{agent_id}/versions/{v}"],
    ["/api/tasks", "/api/tasks/{id}", "/api/tasks/{id}/versions", "/api/tasks/{id}/versions/{v}"],
    [
        "/api/action-defs",
        "/api/action-defs/{id}",
        "/api/action-defs/{id}/versions",
        "/api/action-defs/{id}/versions/{v}",
    ],
    [
        "/api/prompt-specs",
        "/api/prompt-specs/{id}",
        "/api/prompt-specs/{id}/versions",
        "/api/prompt-specs/{id}/versions/{v}",
    ],
];

/// As [`expected`], of conversations.
const CONVERSATIONS: [(&str, &str, Scope); 23] = [
    ("GET", "/api/conversations", Scope::Read),
    ("GET", "/api/conversations/{id}", Scope::Read),
    ("GET", "/api/conversations/{id}/participants", Scope::Read),
    ("GET", "/api/conversations/{id}/messages", Scope::Read),
    ("GET", "/api/conversations/{id}/turns", Scope::Read),
    ("GET", "/api/conversations/{id}/events", Scope::Read),
    ("GET", "/conversations/{id}", Scope::Read),
    ("GET", "/api/turns/{id}", Scope::Read),
    ("GET", "/api/turns/{id}/moves", Scope::Read),
    ("GET", "/api/turns/{id}/context", Scope::Read),
    ("GET", "/api/agents/{agent_id}/memories", Scope::Read),
    ("GET", "/api/agents/{agent_id}/memories/{memory_id}", Scope::Read),
    ("GET", "/api/operations", Scope::Read),
    ("GET", "/api/operations/{id}", Scope::Read),
    ("GET", "/api/spending", Scope::Read),
    ("POST", "/api/conversations", Scope::Act),
    ("POST", "/api/conversations/{id}/participants", Scope::Act),
    ("POST", "/api/conversations/{id}/messages", Scope::Act),
    ("POST", "/api/turns/{id}/cancel", Scope::Act),
    ("POST", "/api/operations/{id}/approve", Scope::Operate),
    ("POST", "/api/operations/{id}/deny", Scope::Operate),
    ("PATCH", "/api/conversations/{id}", Scope::Act),
    ("DELETE", "/api/conversations/{id}/participants/{pid}", Scope::Act),
];

/// What each route must ask for; written down apart from the table that it checks.
fn expected() -> BTreeMap<(&'static str, &'static str), Option<Scope>> {
    let read = [
        "/api/actions/{id}",
        "/api/sessions",
        "/api/sessions/{id}",
        "/api/sessions/{id}/why",
        "/api/sessions/{id}/events",
        "/sessions/{id}",
        "/api/agents",
        "/api/agents/{agent_id}/sessions",
        "/api/agent-steps",
        "/api/shards",
        "/api/workers",
        "/metrics",
    ];
    let mut expected: BTreeMap<_, _> = read.iter().map(|path| (("GET", *path), Some(Scope::Read))).collect();
    for path in ["/health", "/openapi.json", "/problems/{code}"] {
        expected.insert(("GET", path), None);
    }
    for path in [
        "/api/actions",
        "/api/tool-results",
        "/api/pools/{id}/claim",
        "/api/pools/{id}/release",
        "/api/sessions/{id}/input",
        "/api/sessions/{id}/interrupt",
        "/api/agents/{agent_id}/input",
        "/api/agents/{agent_id}/interrupt",
    ] {
        expected.insert(("POST", path), Some(Scope::Act));
    }
    for path in [
        "/api/sessions/bulk",
        "/api/sessions/{id}/pause",
        "/api/sessions/{id}/resume",
        "/api/sessions/{id}/destroy",
        "/api/agents/{agent_id}/pause",
        "/api/agents/{agent_id}/resume",
        "/api/agents/{agent_id}/destroy",
    ] {
        expected.insert(("POST", path), Some(Scope::Operate));
    }
    for path in ["/api/dead", "/api/dead/{id}"] {
        expected.insert(("GET", path), Some(Scope::Admin));
    }
    for path in [
        "/api/dead/{id}/redrive",
        "/api/dead/{id}/drop",
        "/api/dead/redrive",
        "/api/dead/drop",
        "/api/workers/{id}/drain",
    ] {
        expected.insert(("POST", path), Some(Scope::Admin));
    }
    for paths in DEFINITIONS {
        expected.extend(paths.map(|path| (("GET", path), Some(Scope::Read))));
        expected.insert(("POST", paths[0]), Some(Scope::Operate));
    }
    expected.insert(("POST", "/api/definitions"), Some(Scope::Operate));
    expected.extend(CONVERSATIONS.iter().map(|(verb, path, scope)| ((*verb, *path), Some(*scope))));
    expected
}

fn method(verb: Verb) -> (&'static str, Method) {
    match verb {
        Verb::Get => ("GET", Method::GET),
        Verb::Post => ("POST", Method::POST),
        Verb::Patch => ("PATCH", Method::PATCH),
        Verb::Delete => ("DELETE", Method::DELETE),
    }
}

#[test]
fn every_route_asks_for_its_scope() {
    let table = routes::table();
    let actual: BTreeMap<_, _> = table.iter().map(|route| ((method(route.verb).0, route.path), route.scope)).collect();
    assert_eq!(actual, expected());
    assert_eq!(actual.len(), table.len(), "no route is there twice");
}

#[tokio::test(start_paused = true)]
async fn every_route_refuses_who_has_no_token_or_too_narrow_a_one() {
    let world = World::new().await;
    for ((verb, path), scope) in expected() {
        let verb: Method = verb.parse().unwrap();
        let address =
            path.replace("{id}", "s1").replace("{agent_id}", "a1").replace("{code}", "internal").replace("{v}", "1");
        let send = |token: &'static str| world.send(request(verb.clone(), &address, token, Body::from("{}")));
        let Some(scope) = scope else {
            assert_eq!(send("").await.status, StatusCode::OK, "{path}");
            continue;
        };
        for token in ["", "nonsense"] {
            let reply = send(token).await;
            assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::UNAUTHORIZED, "unauthorized"), "{path}");
            assert!(reply.header("www-authenticate").starts_with("Bearer"));
        }
        for (has, token) in [(Scope::Read, READ), (Scope::Act, ACT), (Scope::Operate, OPERATE), (Scope::Admin, ADMIN)] {
            let reply = send(token).await;
            assert_eq!(
                reply.status == StatusCode::FORBIDDEN,
                has < scope,
                "{verb} {path} with {token}: {}",
                reply.text
            );
            if has < scope {
                assert_eq!(reply.problem(), "forbidden");
                assert!(reply.text.contains(&format!("scope {}", scope.as_str())), "{}", reply.text);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn verbs_of_one_route_ask_for_their_own_scope() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    for (verb, payload, with_act) in [
        ("input", json!({"text": "x"}), true),
        ("interrupt", json!({"guidance": {}}), true),
        ("pause", json!({}), false),
        ("resume", json!({}), false),
        ("destroy", json!({}), false),
    ] {
        let body = json!({"type": verb, "session_id": "s1", "payload": payload});
        let reply = world.post_as(ACT, "/api/actions", body.clone()).await;
        assert_eq!(reply.status == StatusCode::ACCEPTED, with_act, "{verb}: {}", reply.text);
        assert_eq!(world.post_as(OPERATE, "/api/actions", body).await.status, StatusCode::ACCEPTED);
    }
}

#[tokio::test(start_paused = true)]
async fn the_scheme_is_bearer_in_any_case() {
    let world = World::new().await;
    for (value, status) in [
        (format!("bearer {READ}"), 200),
        (format!("BEARER   {READ} "), 200),
        (format!("Basic {READ}"), 401),
        (READ.to_owned(), 401),
        ("Bearer".to_owned(), 401),
        ("Bearer ".to_owned(), 401),
        (format!("Bearer {READ}x"), 401),
        (format!("Bearer {}", "x".repeat(5_000)), 401),
    ] {
        let request = Request::get("/api/sessions").header("authorization", &value).body(Body::empty()).unwrap();
        assert_eq!(world.send(request).await.status.as_u16(), status, "{value:.40}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_query_is_no_place_for_tokens_but_of_streams() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 1, schemas::session::SessionStatus::Completed).await;
    let reply = world.get_as("", &format!("/api/sessions/s1?token={READ}")).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
    let reply = world.get_as("", &format!("/api/sessions/s1/events?token={READ}")).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(world.get_as("", "/api/sessions/s1/events?token=wrong").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn new_tokens_work_at_once_and_revoked_ones_stop() {
    let world = World::new().await;
    assert_eq!(world.get_as("young", "/api/sessions").await.status, StatusCode::UNAUTHORIZED);
    world.store.put(&token_row("young", Namespace::default_ns(), vec![Scope::Read])).await.unwrap();
    tokio::time::advance(Duration::from_millis(250)).await;
    assert_eq!(world.get_as("young", "/api/sessions").await.status, StatusCode::OK);
    assert!(world.store.remove("young").await.unwrap());
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(world.get_as("young", "/api/sessions").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn a_token_without_scopes_is_no_token() {
    let world = World::new().await;
    world.store.put(&token_row("empty", Namespace::default_ns(), Vec::new())).await.unwrap();
    assert_eq!(world.get_as("empty", "/api/sessions").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn the_configured_token_is_an_admin_of_the_default_namespace() {
    let config = Config { admin_token: Some(Secret::new("from-the-environment")), ..Config::default() };
    let world = World::with(|deps| crate::Deps { config, ..deps }).await;
    world.create("s1", "a1", "count").await;
    let reply = world.post_as("from-the-environment", "/api/sessions/s1/pause", json!({})).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED);
    assert_eq!(world.get_as(READ, "/api/sessions").await.status, StatusCode::OK, "stored ones work too");
}
