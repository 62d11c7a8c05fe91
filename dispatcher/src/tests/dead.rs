//! Dead letters: admins alone see them, send them again and throw them away.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use domain::ports::DeadLetter;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::world::{ADMIN, OPERATE, READ, Reply, World, request};

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

fn early(id: &str) -> DeadLetter {
    DeadLetter { reason: "session_not_found: it is not there yet".to_owned(), ..letter(id) }
}

/// The lines of an answer.
fn lines(reply: &Reply) -> Vec<Value> {
    assert_eq!((reply.status, reply.header("content-type")), (StatusCode::OK, "application/x-ndjson"));
    reply.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[tokio::test(start_paused = true)]
async fn all_or_those_of_a_reason_are_attended_to_and_told_of_on_the_way() {
    let world = World::new().await;
    for n in 0..3 {
        world.dead.put(letter(&format!("d{n}")));
        world.dead.put(early(&format!("e{n}")));
    }
    let told = lines(&world.post("/api/dead/redrive", json!({"all": true, "reason": "session_not_found"})).await);
    let end = json!({"done": "redriven", "letters": 3, "kept": 3, "stuck": 0, "finished": true});
    assert_eq!(told.last(), Some(&end));
    assert!(told.len() > 3, "now and then it says how far it is: {told:?}");
    assert!(told[..told.len() - 1].iter().all(|line| line["finished"] == false), "{told:?}");
    let counts: Vec<u64> = told.iter().map(|line| line["letters"].as_u64().expect("a number")).collect();
    assert!(counts.is_sorted(), "{counts:?}");
    assert_eq!(world.dead.redriven(), [early("e0"), early("e1"), early("e2")]);
    let told = lines(&world.post("/api/dead/drop", json!({"all": true})).await);
    let end = json!({"done": "dropped", "letters": 3, "kept": 0, "stuck": 0, "finished": true});
    assert_eq!(told.last(), Some(&end));
    assert_eq!(world.get_as(ADMIN, "/api/dead").await.json(), json!([]));
    let told = lines(&world.post("/api/dead/drop", json!({"all": true})).await);
    assert_eq!(told, [json!({"done": "dropped", "letters": 0, "kept": 0, "stuck": 0, "finished": true})]);
}

#[tokio::test(start_paused = true)]
async fn what_breaks_off_says_how_far_it_came() {
    let world = World::new().await;
    for n in 0..4 {
        world.dead.put(letter(&format!("d{n}")));
    }
    world.dead.fail_after(2);
    let told = lines(&world.post("/api/dead/drop", json!({"all": true})).await);
    let last = told.last().expect("a line");
    assert_eq!((&last["letters"], &last["finished"]), (&json!(2), &json!(false)));
    assert!(last["error"].as_str().is_some_and(|why| why.contains("away")), "{last}");
    // Before it has begun, it is a refusal like others.
    let reply = world.post("/api/dead/redrive", json!({"all": true})).await;
    assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "unavailable"));
    assert_eq!(world.get_as(ADMIN, "/api/dead").await.json().as_array().map(Vec::len), Some(2));
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_reading_ends_it() {
    let world = World::new().await;
    for n in 0..100 {
        world.dead.put(letter(&format!("d{n}")));
    }
    let body = Body::from(json!({"all": true}).to_string());
    let response = world.app.clone().oneshot(request(Method::POST, "/api/dead/drop", ADMIN, body)).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    drop(response);
    tokio::time::sleep(Duration::from_secs(200)).await;
    let left = world.get_as(ADMIN, "/api/dead").await.json().as_array().map_or(0, Vec::len);
    assert!(left > 90, "{left}");
}

#[tokio::test(start_paused = true)]
async fn all_of_them_are_meant_only_if_the_body_says_so() {
    let world = World::new().await;
    world.dead.put(letter("d1"));
    for (body, field) in [
        (json!({}), "all"),
        (json!({"all": false}), "all"),
        (json!({"all": "yes"}), "all"),
        (json!({"reason": "x"}), "all"),
        (json!({"all": true, "reason": " "}), "reason"),
        (json!({"all": true, "id": "d1"}), "id"),
        (json!([]), "body"),
    ] {
        let reply = world.post("/api/dead/drop", body.clone()).await;
        assert_eq!(reply.refusal(), ("invalid_request".to_owned(), vec![field.to_owned()]), "{body}");
    }
    for token in [OPERATE, READ] {
        assert_eq!(world.post_as(token, "/api/dead/drop", json!({"all": true})).await.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(world.get_as(ADMIN, "/api/dead").await.json().as_array().map(Vec::len), Some(1));
}

#[tokio::test(start_paused = true)]
async fn nobody_else_sees_them() {
    let world = World::new().await;
    world.dead.put(letter("d1"));
    assert_eq!(world.get("/api/dead").await.status, StatusCode::FORBIDDEN);
    assert_eq!(world.post_as(OPERATE, "/api/dead/d1/drop", json!({})).await.status, StatusCode::FORBIDDEN);
    assert_eq!(world.get_as(ADMIN, "/api/dead").await.json().as_array().map(Vec::len), Some(1));
}
