//! `GET /api/sessions`, `GET /api/sessions/{id}`, `GET /api/agents…`.

use std::time::Duration;

use axum::http::StatusCode;
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::world::World;

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["session_id"].as_str().unwrap().to_owned()).collect()
}

async fn seven(world: &World) {
    for n in 0..7 {
        let (agent, moniker) = if n < 4 { ("a1", "count") } else { ("a2", "echo") };
        world.create(&format!("s{n}"), agent, moniker).await;
        if n % 2 == 0 {
            tokio::time::advance(Duration::from_millis(10)).await;
        }
    }
    world.commit("s1", 2, SessionStatus::Running).await;
    world.commit("s2", 1, SessionStatus::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn pages_join_without_gap_or_repeat() {
    let world = World::new().await;
    seven(&world).await;
    let whole = ids(&world.get("/api/sessions").await.json());
    assert_eq!(whole.len(), 7);
    assert_eq!(whole[0], "s6", "the newest is first");
    for limit in 1..=8 {
        let (mut joined, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/api/sessions?limit={limit}&cursor={cursor}")).await.json();
            joined.extend(ids(&page));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(joined, whole, "limit {limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_conditions_must_hold() {
    let world = World::new().await;
    seven(&world).await;
    for (query, count) in [
        ("", 7),
        ("agent_id=a1", 4),
        ("moniker=echo", 3),
        ("agent_id=a1&moniker=echo", 0),
        ("status=running", 1),
        ("status=running,completed", 2),
        ("status=running&status=starting", 6),
        ("status=", 7),
        ("q=s", 7),
        ("q=s3", 1),
        ("q=a1", 4),
        ("q=a1&status=completed", 1),
        ("q=x", 0),
        ("q=%25", 0),
        ("q=s%27%20or%201%3D1", 0),
        ("conversation_id=c1", 0),
    ] {
        assert_eq!(ids(&world.get(&format!("/api/sessions?{query}")).await.json()).len(), count, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_parameters_are_named() {
    let world = World::new().await;
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=ten", "limit"),
        ("limit=-1", "limit"),
        ("limit=1&limit=2", "limit"),
        ("status=runing", "status"),
        ("agent_id=a%20b", "agent_id"),
        ("cursor=nonsense", "cursor"),
        ("cursor=1~a%20b", "cursor"),
        ("stauts=running", "stauts"),
    ] {
        let reply = world.get(&format!("/api/sessions?{query}")).await;
        assert_eq!(reply.refusal(), ("invalid_request".into(), vec![field.to_owned()]), "{query}");
    }
    assert!(world.get("/api/sessions?stauts=running").await.text.contains("did you mean \\\"status\\\"?"));
}

#[tokio::test(start_paused = true)]
async fn a_session_is_shown_whole() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    let young = world.get("/api/sessions/s1").await.json();
    assert_eq!((&young["session"]["status"], &young["state"]), (&json!("starting"), &json!(null)));
    assert_eq!((&young["pending_actions"], &young["session"]["last_offset"]), (&json!(1), &json!(0)));
    world.commit("s1", 3, SessionStatus::Running).await;
    let detail = world.get("/api/sessions/s1").await.json();
    assert_eq!((&detail["state"], &detail["result"]), (&json!({"n": 3}), &json!("step 2")));
    assert_eq!((&detail["session"]["iteration"], &detail["session"]["next_step_token"]), (&json!(2), &json!("n/3")));
    assert_eq!((&detail["spec"]["moniker"], &detail["pending_actions"]), (&json!("count"), &json!(0)));
    assert_eq!(detail["session"]["created_at"], "2030-01-01T00:00:00.000Z");
    world.archive_all().await;
    assert_eq!(world.get("/api/sessions/s1").await.json(), detail, "the archive answers alike");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_session_is_not_found() {
    let world = World::new().await;
    for path in ["/api/sessions/none", "/api/sessions/none/why", "/api/sessions/none/events"] {
        let reply = world.get(path).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::NOT_FOUND, "session_not_found"));
    }
}

#[tokio::test(start_paused = true)]
async fn agents_have_their_newest_session() {
    let world = World::new().await;
    seven(&world).await;
    let page = world.get("/api/agents?limit=1").await.json();
    assert_eq!((&page["items"][0]["agent_id"], &page["items"][0]["sessions"]), (&json!("a1"), &json!(4)));
    assert_eq!((&page["items"][0]["latest"]["session_id"], &page["next_cursor"]), (&json!("s3"), &json!("a1")));
    let page = world.get("/api/agents?limit=1&cursor=a1").await.json();
    assert_eq!((&page["items"][0]["latest"]["session_id"], &page["next_cursor"]), (&json!("s6"), &json!(null)));
    let page = world.get("/api/agents/a1/sessions?limit=3").await.json();
    assert_eq!(ids(&page), ["s3", "s2", "s1"]);
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(ids(&world.get(&format!("/api/agents/a1/sessions?cursor={cursor}")).await.json()), ["s0"]);
    assert_eq!(world.get("/api/agents/none/sessions").await.problem(), "agent_not_found");
}
