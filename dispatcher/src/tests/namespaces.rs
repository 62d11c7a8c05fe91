//! Nothing of one namespace shows in another (invariant N1).

use axum::http::StatusCode;
use schemas::session::SessionStatus;
use serde_json::json;

use super::world::{ADMIN, OTHER, World};

#[tokio::test(start_paused = true)]
async fn reads_see_their_own_namespace_only() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 3, SessionStatus::Running).await;
    for path in ["/api/sessions", "/api/agents", "/api/agent-steps?session_id=s1", "/api/agent-steps?agent_id=a1"] {
        assert_ne!(world.get_as(ADMIN, path).await.json()["items"], json!([]), "{path}");
        assert_eq!(world.get_as(OTHER, path).await.json()["items"], json!([]), "{path}");
    }
    for path in ["/api/sessions/s1", "/api/sessions/s1/why", "/api/sessions/s1/events"] {
        let reply = world.get_as(OTHER, path).await;
        assert_eq!((reply.status, reply.problem().as_str()), (StatusCode::NOT_FOUND, "session_not_found"), "{path}");
    }
    assert_eq!(world.get_as(OTHER, "/api/agents/a1/sessions").await.problem(), "agent_not_found");
    let action = world.post("/api/sessions/s1/pause", json!({})).await.json()["action_id"].as_str().unwrap().to_owned();
    assert_eq!(world.get_as(ADMIN, &format!("/api/actions/{action}")).await.status, StatusCode::OK);
    assert_eq!(world.get_as(OTHER, &format!("/api/actions/{action}")).await.problem(), "action_not_found");
}

#[tokio::test(start_paused = true)]
async fn actions_reach_their_own_namespace_only() {
    let world = World::new().await;
    world.create("s1", "a1", "echo").await;
    for verb in ["pause", "resume", "destroy"] {
        assert_eq!(
            world.post_as(OTHER, &format!("/api/sessions/s1/{verb}"), json!({})).await.problem(),
            "session_not_found"
        );
        assert_eq!(
            world.post_as(OTHER, &format!("/api/agents/a1/{verb}"), json!({})).await.problem(),
            "agent_not_found"
        );
    }
    let reply = world.post_as(OTHER, "/api/sessions/s1/input", json!({"text": "x"})).await;
    assert_eq!(reply.problem(), "session_not_found");
    let bulk = json!({"action": "destroy", "filter": {"session_ids": ["s1"]}});
    assert_eq!(world.post_as(OTHER, "/api/sessions/bulk", bulk).await.json()["matched"], 0);
    assert_eq!(world.store.open_actions().len(), 1, "only the create is there");
}

#[tokio::test(start_paused = true)]
async fn ids_may_be_the_same_in_two_namespaces() {
    let world = World::new().await;
    let body = json!({"type": "create", "action_id": "act1", "session_id": "s1", "agent_id": "a1",
                      "payload": {"moniker": "count"}});
    for token in [ADMIN, OTHER] {
        let reply = world.post_as(token, "/api/actions", body.clone()).await;
        assert_eq!((reply.status, &reply.json()["accepted"]), (StatusCode::ACCEPTED, &json!(true)));
    }
    assert_eq!(world.store.all_sessions().len(), 2);
    world.commit("s1", 2, SessionStatus::Running).await;
    assert_eq!(world.get_as(ADMIN, "/api/sessions/s1").await.json()["session"]["iteration"], 1);
    assert_eq!(world.get_as(OTHER, "/api/sessions/s1").await.json()["session"]["iteration"], json!(null));
}
