//! `GET /api/agent-steps`: filters, order, pages, on journal and archive alike.

use std::sync::Arc;
use std::time::Duration;

use schemas::session::SessionStatus;
use serde_json::{Value, json};
use testkit::unreliable::{Faults, Unreliable};

use super::world::World;
use crate::Deps;

fn iterations(page: &Value) -> Vec<u64> {
    page["items"].as_array().unwrap().iter().map(|step| step["iteration"].as_u64().unwrap()).collect()
}

/// Twelve steps: the first six in the archive, the others in the journal; and another session.
async fn world() -> World {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    world.commit("s1", 6, SessionStatus::Running).await;
    world.archive_all().await;
    tokio::time::advance(Duration::from_secs(60)).await;
    world.commit("s1", 6, SessionStatus::Running).await;
    world.create("s2", "a1", "count").await;
    world.commit("s2", 2, SessionStatus::Running).await;
    world
}

async fn get(world: &World, query: &str) -> Value {
    let reply = world.get(&format!("/api/agent-steps?{query}")).await;
    assert_eq!(reply.status.as_u16(), 200, "{query}: {}", reply.text);
    reply.json()
}

#[tokio::test(start_paused = true)]
async fn filters_combine() {
    let world = world().await;
    let all: Vec<u64> = (0..12).collect();
    for (query, expected) in [
        ("session_id=s1", all.clone()),
        ("session_id=s1&agent_id=a1", all.clone()),
        ("session_id=s1&agent_id=a2", vec![]),
        ("session_id=none", vec![]),
        ("session_id=s1&min_iteration=10", vec![10, 11]),
        ("session_id=s1&max_iteration=1", vec![0, 1]),
        ("session_id=s1&min_iteration=5&max_iteration=6", vec![5, 6]),
        ("session_id=s1&after_iteration=9", vec![10, 11]),
        ("session_id=s1&after_iteration=11", vec![]),
        ("session_id=s1&status=info", vec![4, 9]),
        ("session_id=s1&status=info&after_iteration=4", vec![9]),
        ("session_id=s1&order=desc&limit=3", vec![11, 10, 9]),
        ("session_id=s1&offset=10", vec![10, 11]),
        ("session_id=s1&latest=3", vec![11, 10, 9]),
        ("session_id=s1&latest=3&order=asc", vec![9, 10, 11]),
        ("session_id=s1&latest=true&limit=2", vec![11, 10]),
        ("session_id=s1&latest=3&limit=5", vec![11, 10, 9]),
        ("session_id=s1&latest=5&limit=3", vec![11, 10, 9]),
        ("session_id=s1&latest=3&order=asc&limit=5", vec![9, 10, 11]),
        ("session_id=s1&latest=false&limit=2", vec![0, 1]),
        ("session_id=s1&since=2030-01-01T00:00:30Z", (6..12).collect()),
        ("session_id=s1&since=2030-01-01T01:00:30%2B01:00", (6..12).collect()),
        ("session_id=s1&since=2030-01-01T01:00:30+01:00", (6..12).collect()),
        ("agent_id=a1&max_iteration=1", vec![0, 0, 1, 1]),
    ] {
        assert_eq!(iterations(&get(&world, query).await), expected, "{query}");
    }
}

/// The journal is asked once which of them it has, not once for each of them.
#[tokio::test(start_paused = true)]
async fn an_agent_with_many_sessions_costs_few_reads() {
    let faults = Faults::none("gateway");
    let counted = faults.clone();
    let world =
        World::with(|deps| Deps { journal: Arc::new(Unreliable::new(deps.journal.clone(), faults)), ..deps }).await;
    for n in 0..50 {
        world.create(&format!("old{n}"), "a1", "count").await;
        world.commit(&format!("old{n}"), 1, SessionStatus::Running).await;
    }
    world.archive_all().await;
    for session in ["new1", "new2"] {
        world.create(session, "a1", "count").await;
        world.commit(session, 2, SessionStatus::Running).await;
    }
    let before = counted.calls();
    let page = get(&world, "agent_id=a1&limit=1000").await;
    let reads = counted.calls() - before;
    assert_eq!(iterations(&page), [vec![0; 52], vec![1; 2]].concat());
    assert!(reads <= 5, "{reads} reads of the journal");
}

#[tokio::test(start_paused = true)]
async fn pages_join_without_gap_or_repeat() {
    let world = world().await;
    for (query, expected) in [
        ("session_id=s1", (0..12).collect::<Vec<u64>>()),
        ("session_id=s1&order=desc", (0..12).rev().collect()),
        ("session_id=s1&after_iteration=3", (4..12).collect()),
    ] {
        for limit in [1, 4, 5, 12, 13] {
            let (mut joined, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = get(&world, &format!("{query}&limit={limit}&cursor={cursor}")).await;
                joined.extend(iterations(&page));
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = next.to_owned(),
                    None => break,
                }
            }
            assert_eq!(joined, expected, "{query} by {limit}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn default_limits_follow_the_question() {
    let world = World::new().await;
    world.create("s1", "a1", "count").await;
    for _ in 0..10 {
        world.commit("s1", 60, SessionStatus::Running).await;
    }
    for (query, count) in [("", 100), ("&after_iteration=0", 500), ("&latest=true", 20), ("&limit=1000", 600)] {
        assert_eq!(iterations(&get(&world, &format!("session_id=s1{query}")).await).len(), count, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_is_shown_whole() {
    let world = world().await;
    for iteration in [2, 8] {
        let page = get(&world, &format!("session_id=s1&min_iteration={iteration}&limit=1")).await;
        let step = &page["items"][0];
        assert_eq!(step["id"], format!("s1:{iteration}:0"));
        assert_eq!(
            (&step["step_token"], &step["state"]),
            (&json!(format!("n/{iteration}")), &json!({"n": iteration + 1}))
        );
        assert_eq!((&step["text"], &step["status"]), (&json!(format!("step {iteration}")), &json!("ok")));
        assert_eq!(
            (&step["agent_id"], &step["session_id"], &step["latency_ms"]),
            (&json!("a1"), &json!("s1"), &json!(3))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_questions_are_refused() {
    let world = World::new().await;
    for (query, fields) in [
        ("", vec!["session_id"]),
        ("limit=5", vec!["session_id"]),
        ("session_id=a%20b", vec!["session_id"]),
        ("session_id=s&status=fine", vec!["status"]),
        ("session_id=s&order=up", vec!["order"]),
        ("session_id=s&since=yesterday", vec!["since"]),
        ("session_id=s&min_iteration=-1", vec!["min_iteration"]),
        ("session_id=s&after_iteration=1.5", vec!["after_iteration"]),
        ("session_id=s&latest=0", vec!["latest"]),
        ("session_id=s&cursor=x", vec!["cursor"]),
        ("session_id=s&offset=10001", vec!["offset"]),
        ("session_id=s&limit=1001", vec!["limit"]),
        ("session_id=s&iteration=5", vec!["iteration"]),
        ("session_id=s&status=fine&order=up", vec!["order", "status"]),
        ("session_id=s&cursor=1~1~s&offset=5", vec!["offset"]),
    ] {
        let reply = world.get(&format!("/api/agent-steps?{query}")).await;
        assert_eq!(
            reply.refusal(),
            ("invalid_request".into(), fields.iter().map(|f| (*f).to_owned()).collect()),
            "{query}"
        );
    }
}
