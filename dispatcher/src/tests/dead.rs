//! Dead letters: admins alone see them, send them again and throw them away.

use axum::http::StatusCode;
use domain::ports::DeadLetter;
use serde_json::json;

use super::world::{ADMIN, OPERATE, World};

fn letter(id: &str) -> DeadLetter {
    DeadLetter {
        id: id.to_owned(),
        reason: "invalid_request: payload.moniker is missing".to_owned(),
        origin: "stepfleet.ingress".to_owned(),
        body: "é".repeat(300).into_bytes(),
        at_ms: 1_000,
        headers: vec![("x-client".to_owned(), "cron".to_owned())],
    }
}

#[tokio::test(start_paused = true)]
async fn they_are_listed_shown_redriven_and_dropped() {
    let world = World::new().await;
    world.dead.put(letter("d1"));
    world.dead.put(letter("d2"));
    let list = world.get_as(ADMIN, "/api/dead?limit=1").await.json();
    assert_eq!((list.as_array().map(Vec::len), &list[0]["id"]), (Some(1), &json!("d1")));
    assert_eq!(
        (&list[0]["bytes"], list[0]["body"].as_str().map(|text| text.chars().count())),
        (&json!(600), Some(200))
    );
    assert_eq!(list[0]["died_at"], "1970-01-01T00:00:01.000Z");
    let whole = world.get_as(ADMIN, "/api/dead/d2").await.json();
    assert_eq!(whole["body"].as_str().map(|text| text.chars().count()), Some(300));
    assert_eq!(whole["headers"], json!({ "x-client": "cron" }));
    assert_eq!(world.post("/api/dead/d1/redrive", json!({})).await.json(), json!({"id": "d1", "done": "redriven"}));
    assert_eq!(world.post("/api/dead/d2/drop", json!({})).await.json(), json!({"id": "d2", "done": "dropped"}));
    assert_eq!(world.dead.redriven(), [letter("d1")]);
    assert_eq!(world.get_as(ADMIN, "/api/dead").await.json(), json!([]));
    for path in ["/api/dead/d1/redrive", "/api/dead/d1/drop"] {
        assert_eq!(world.post(path, json!({})).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_else_sees_them() {
    let world = World::new().await;
    world.dead.put(letter("d1"));
    assert_eq!(world.get("/api/dead").await.status, StatusCode::FORBIDDEN);
    assert_eq!(world.post_as(OPERATE, "/api/dead/d1/drop", json!({})).await.status, StatusCode::FORBIDDEN);
    assert_eq!(world.get_as(ADMIN, "/api/dead").await.json().as_array().map(Vec::len), Some(1));
}
