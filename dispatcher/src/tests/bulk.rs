//! `POST /api/sessions/bulk`.

use axum::body::Body;
use axum::http::Method;
use schemas::action::ActionType;
use schemas::limits::{ACCEPT_BATCH_MAX, GUIDANCE_WAITING_MAX};
use schemas::session::SessionStatus;
use serde_json::{Value, json};

use super::docs::assert_documented;
use super::world::{OPERATE, Reply, World, request};

async fn bulk(world: &World, key: Option<&str>, body: Value) -> Reply {
    let mut request = request(Method::POST, "/api/sessions/bulk", OPERATE, Body::from(body.to_string()));
    if let Some(key) = key {
        request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    }
    world.send(request).await
}

fn pauses(world: &World) -> usize {
    world.store.all_actions().iter().filter(|rec| rec.kind == ActionType::Pause && rec.action.is_some()).count()
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_matching_sessions_are_reached_once() {
    let world = World::new().await;
    let count = 2 * ACCEPT_BATCH_MAX + 7;
    for n in 0..count {
        world.create(&format!("s{n}"), "many", "count").await;
    }
    world.create("stranger", "one", "count").await;
    let body = json!({"action": "pause", "filter": {"agent_id": "many"}, "payload": {"reason": "deploy"}});
    let answer = bulk(&world, Some("k1"), body.clone()).await.json();
    assert_eq!(answer, json!({"matched": count, "accepted": count, "refused": []}));
    assert_eq!(pauses(&world), count);
    assert_eq!(bulk(&world, Some("k1"), body.clone()).await.json()["accepted"], count, "a repeat is answered alike");
    assert_eq!(pauses(&world), count, "and acts on nobody twice");
    bulk(&world, None, body).await;
    assert_eq!(pauses(&world), 2 * count, "without a key it is another one");
}

#[tokio::test(start_paused = true)]
async fn the_filter_decides_who_is_meant() {
    let world = World::new().await;
    for (session, agent, moniker) in [("s1", "a1", "count"), ("s2", "a1", "echo"), ("s3", "a2", "count")] {
        world.create(session, agent, moniker).await;
    }
    world.commit("s3", 1, SessionStatus::Running).await;
    for (filter, matched) in [
        (json!({}), 3),
        (json!({"agent_id": "a1"}), 2),
        (json!({"moniker": "count"}), 2),
        (json!({"agent_id": "a1", "moniker": "count"}), 1),
        (json!({"status": ["running"]}), 1),
        (json!({"status": ["running", "starting"]}), 3),
        (json!({"session_ids": ["s1", "s3", "none"]}), 2),
        (json!({"conversation_id": "c"}), 0),
    ] {
        let answer = bulk(&world, None, json!({"action": "pause", "filter": filter})).await.json();
        assert_eq!((&answer["matched"], &answer["accepted"]), (&json!(matched), &json!(matched)), "{filter}");
    }
}

#[tokio::test(start_paused = true)]
async fn ended_sessions_are_meant_only_by_name() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.create("s2", "a1", "count").await;
    world.commit("s2", 1, SessionStatus::Completed).await;
    let answer = bulk(&world, None, json!({"action": "destroy", "filter": {}})).await.json();
    assert_eq!(answer["matched"], 1);
    let answer = bulk(&world, None, json!({"action": "destroy", "filter": {"status": ["completed"]}})).await.json();
    assert_eq!((&answer["matched"], &answer["accepted"]), (&json!(1), &json!(0)));
    assert_eq!(
        (&answer["refused"][0]["session_id"], &answer["refused"][0]["code"]),
        (&json!("s2"), &json!("session_ended"))
    );
}

#[tokio::test(start_paused = true)]
async fn members_show_where_they_come_from() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    bulk(&world, Some("k1"), json!({"action": "interrupt", "filter": {}, "payload": {"guidance": {"set": 5}}})).await;
    let actions = world.store.all_actions();
    let member = actions.iter().find(|rec| rec.kind == ActionType::Interrupt).unwrap();
    assert_eq!(member.asked.metadata.to_value(), json!({"bulk": "k1"}));
    assert_eq!(member.asked.payload.to_value(), json!({"guidance": {"set": 5}}));
    assert_eq!(member.asked.actor, OPERATE);
}

#[tokio::test(start_paused = true)]
async fn wrong_bodies_are_refused() {
    let world = World::new().await;
    for (body, field) in [
        (json!({"action": "pause"}), "filter"),
        (json!({"action": "create", "filter": {}}), "action"),
        (json!({"action": "pause", "filter": {"state": "running"}}), "filter.state"),
        (json!({"action": "pause", "filter": {}, "payload": {"x": 1}}), "payload.x"),
    ] {
        assert_eq!(bulk(&world, None, body).await.refusal().1, [field]);
    }
    assert_eq!(
        bulk(&world, Some("a b"), json!({"action": "pause", "filter": {}})).await.refusal().1,
        ["Idempotency-Key"]
    );
}

#[tokio::test(start_paused = true)]
async fn guidance_is_refused_where_too_much_of_it_waits_and_only_there() {
    let world = World::new().await;
    world.create("full", "a1", "count").await;
    world.create("free", "a1", "count").await;
    let guidance =
        json!({"action": "interrupt", "filter": {"session_ids": ["full"]}, "payload": {"guidance": {"set": 5}}});
    for n in 0..GUIDANCE_WAITING_MAX {
        let key = format!("k{n}");
        assert_eq!(bulk(&world, Some(&key), guidance.clone()).await.json()["accepted"], 1, "{n}");
    }
    let payload = json!({"guidance": {"set": 5}});
    let whole = json!({"type": "interrupt", "session_id": "full", "payload": payload});
    for (operation, path, body) in [
        ("post /api/sessions/{id}/interrupt", "/api/sessions/full/interrupt", payload),
        ("post /api/actions", "/api/actions", whole),
    ] {
        let one = world.post(path, body).await;
        assert_eq!((one.status.as_u16(), one.problem().as_str()), (429, "too_many_requests"), "{path}");
        assert_documented(operation, "too_many_requests");
    }

    let all = json!({"action": "interrupt", "filter": {"agent_id": "a1"}, "payload": {"guidance": {"set": 5}}});
    let answer = bulk(&world, Some("all"), all.clone()).await.json();
    assert_eq!((&answer["matched"], &answer["accepted"]), (&json!(2), &json!(1)), "{answer}");
    let refused = &answer["refused"];
    assert_eq!((&refused[0]["session_id"], &refused[0]["code"]), (&json!("full"), &json!("too_many_requests")));
    assert!(refused[0]["detail"].as_str().unwrap().contains("later"), "{refused}");
    assert_eq!(refused.as_array().unwrap().len(), 1);
    assert_eq!(bulk(&world, Some("all"), all).await.json(), answer, "a repeat is answered alike");
    assert_eq!(bulk(&world, Some("k0"), guidance).await.json()["accepted"], 1, "a repeat of what waits is not refused");
    let pause = json!({"action": "pause", "filter": {"agent_id": "a1"}});
    assert_eq!(bulk(&world, None, pause).await.json()["accepted"], 2, "a pause is never held up by guidance");
}

#[tokio::test(start_paused = true)]
async fn input_is_refused_for_sessions_that_take_none() {
    let world = World::new().await;
    world.create("takes", "a1", "echo").await;
    world.create("refuses", "a1", "count").await;
    let answer = bulk(&world, None, json!({"action": "input", "filter": {}, "payload": {"text": "hi"}})).await.json();
    assert_eq!((&answer["matched"], &answer["accepted"]), (&json!(2), &json!(1)), "{answer}");
    let refused = &answer["refused"][0];
    assert_eq!((&refused["session_id"], &refused["code"]), (&json!("refuses"), &json!("input_not_taken")));
    let inputs = world.store.all_actions().iter().filter(|rec| rec.kind == ActionType::Input).count();
    assert_eq!(inputs, 1, "what is refused here leaves no row");
}
