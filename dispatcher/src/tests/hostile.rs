//! Whatever a client sends, it gets an answer that is meant: never a 5xx, always a whole problem.

use axum::body::Body;
use axum::http::{Method, Request, Uri};
use proptest::prelude::*;
use schemas::limits::JSON_DEPTH_MAX;
use serde_json::json;

use super::docs::assert_documented;
use super::world::{ADMIN, World};
use crate::routes::{self, Verb};

/// The places in paths that a client fills in.
const PLACES: [&str; 5] = ["{id}", "{agent_id}", "{pid}", "{v}", "{code}"];

/// Parameters as clients mistype, repeat and escape them.
fn any_query() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        prop::sample::select(vec![
            "status",
            "agent_id",
            "moniker",
            "q",
            "limit",
            "cursor",
            "session_id",
            "latest",
            "since",
            "order",
            "offset",
            "after",
            "after_iteration",
            "min_iteration",
            "max_iteration",
            "token",
        ])
        .prop_map(str::to_owned),
        "[a-z%&=+]{0,8}",
    ];
    let value = prop_oneof![
        prop::sample::select(vec![
            "",
            "0",
            "1",
            "-1",
            "true",
            "desc",
            "running",
            "ok",
            "s1",
            "a1",
            "1~1~s1",
            "1~s1",
            "18446744073709551616",
            "2030-01-01T00:00:00Z",
            "%00",
            "%ff",
            "%27",
            "%",
            "_",
        ])
        .prop_map(str::to_owned),
        "[!-~]{0,20}",
    ];
    prop::collection::vec((name, value), 0..5).prop_map(|pairs| {
        let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("&").replace('#', "%23")
    })
}

fn any_segment() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "s1", "a1", "none", "bulk", "internal", "%00", "%2e%2e", "%F0%9F", "a%20b", "..", "%2F"
        ])
        .prop_map(str::to_owned),
        "[A-Za-z0-9._:%-]{1,40}",
    ]
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        Just(Vec::new()),
        Just(br#"{"type":"create","payload":{"moniker":"count"}}"#.to_vec()),
        Just(br#"{"action":"pause","filter":{}}"#.to_vec()),
        Just(br#"{"text":"hi"}"#.to_vec()),
        Just(br#"{"guidance":{"a":1}}"#.to_vec()),
        Just([vec![b'['; JSON_DEPTH_MAX + 1], vec![b']'; JSON_DEPTH_MAX + 1]].concat()),
        r#"[\{\}\[\]:,"a-z0-9 \\]{0,40}"#.prop_map(String::into_bytes),
    ]
}

fn method(verb: Verb) -> Method {
    match verb {
        Verb::Get => Method::GET,
        Verb::Post => Method::POST,
        Verb::Patch => Method::PATCH,
        Verb::Delete => Method::DELETE,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_route_answers_what_is_meant(
        rounds in prop::collection::vec((any_segment(), any_query(), any_body(), any::<prop::sample::Index>()), 8)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            world.create("s1", "a1", "echo").await;
            world.commit("s1", 3, schemas::session::SessionStatus::Running).await;
            // Streams have tests of their own: an open one has no end to wait for.
            let table: Vec<_> = routes::table().into_iter().filter(|route| !route.stream).collect();
            for (segment, query, body, index) in rounds {
                let route = index.get(&table);
                let path = PLACES.iter().fold(route.path.to_owned(), |path, name| path.replace(name, &segment));
                let Ok(uri) = format!("{path}?{query}").parse::<Uri>() else { continue };
                let request = Request::builder().method(method(route.verb)).uri(uri);
                let request = request.header("authorization", format!("Bearer {ADMIN}"));
                let reply = world.send(request.body(Body::from(body)).unwrap()).await;
                assert!(reply.status.as_u16() < 500, "{path}?{query}: {} {}", reply.status, reply.text);
                if reply.status.is_client_error() {
                    let code = reply.problem();
                    // The id of a session that is a path of its own, with verbs of its own.
                    let is_elsewhere = segment == "bulk" && code == "method_not_allowed";
                    if !is_elsewhere {
                        assert_documented(&format!("{} {}", route.verb.as_str(), route.path), &code);
                    }
                }
            }
            assert_eq!(world.get("/api/sessions/s1").await.json()["session"]["session_id"], json!("s1"));
        });
    }
}
