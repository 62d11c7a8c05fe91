//! `/api/agents/{agent_id}/memories`.

use domain::memory::NewMemory;
use domain::ports::Memories;
use schemas::id::{AgentId, MemoryId, Namespace};
use schemas::memory::{MemoryOwner, MemoryTier};
use serde_json::{Value, json};

use super::world::{OTHER, World};

async fn remember(world: &World, agent: &str, id: &str, tier: MemoryTier) {
    remember_text(world, agent, id, tier, &format!("what {id} says")).await;
}

async fn remember_text(world: &World, agent: &str, id: &str, tier: MemoryTier, text: &str) {
    let owner = MemoryOwner { namespace: Namespace::default_ns(), agent_id: AgentId::parse(agent).unwrap() };
    let memory = NewMemory {
        id: MemoryId::parse(id).unwrap(),
        label: None,
        tier,
        kind: "fact".into(),
        content: text.to_owned(),
        significance: 0.5,
        metadata: Default::default(),
        embedding: None,
        expect_version: None,
    };
    world.store.write(&owner, &memory).await.unwrap();
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_memories_of_an_agent_are_listed_page_by_page() {
    let world = World::new().await;
    for (id, tier) in [("m1", MemoryTier::Archival), ("m2", MemoryTier::Core), ("m3", MemoryTier::Archival)] {
        remember(&world, "a1", id, tier).await;
    }
    remember(&world, "a2", "m4", MemoryTier::Core).await;
    let mut found: Vec<String> = Vec::new();
    let mut path = "/api/agents/a1/memories?limit=2".to_owned();
    loop {
        let page = world.get(&path).await.json();
        found.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/agents/a1/memories?limit=2&cursor={cursor}");
    }
    found.sort();
    assert_eq!(found, ["m1", "m2", "m3"], "each once, and none of another agent");
    let core = world.get("/api/agents/a1/memories?tier=core").await.json();
    assert_eq!(ids(&core), ["m2"]);
    let one = &core["items"][0];
    assert_eq!((&one["content"], &one["type"], &one["tier"]), (&json!("what m2 says"), &json!("fact"), &json!("core")));
    assert!(one["updated_at"].as_str().unwrap().ends_with('Z'), "{one}");
}

#[tokio::test(start_paused = true)]
async fn memories_of_strangers_are_none_and_wrong_questions_are_refused() {
    let world = World::new().await;
    remember(&world, "a1", "m1", MemoryTier::Core).await;
    assert_eq!(world.get("/api/agents/nobody/memories").await.json()["items"], json!([]));
    assert_eq!(world.get_as(OTHER, "/api/agents/a1/memories").await.json()["items"], json!([]), "another namespace");
    for wrong in ["tier=deep", "limit=0", "limit=201", "cursor=x", "kind=fact"] {
        let reply = world.get(&format!("/api/agents/a1/memories?{wrong}")).await;
        let field = wrong.split('=').next().unwrap().to_owned();
        assert_eq!(reply.refusal(), ("invalid_request".to_owned(), vec![field]), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn memories_are_searched_as_the_tool_searches_them() {
    let world = World::new().await;
    for (id, tier, text) in [
        ("m1", MemoryTier::Archival, "likes green tea"),
        ("m2", MemoryTier::Core, "lives in Oslo"),
        ("m3", MemoryTier::Core, "drinks tea at four"),
    ] {
        remember_text(&world, "a1", id, tier, text).await;
    }
    remember_text(&world, "a2", "m4", MemoryTier::Core, "tea").await;
    let found = world.get("/api/agents/a1/memories?query=green%20tea&limit=2").await.json();
    assert_eq!(ids(&found), ["m1", "m3"], "the best match first, and none of another agent");
    let relevance = |n: usize| found["items"][n]["relevance"].as_f64().expect("a relevance");
    assert!(relevance(0) > relevance(1), "{found}");
    assert_eq!(found["next_cursor"], Value::Null);
    let core = world.get("/api/agents/a1/memories?query=green%20tea&tier=core&min_relevance=0.01").await.json();
    assert_eq!(ids(&core), ["m3"]);
    let elsewhere = world.get_as(OTHER, "/api/agents/a1/memories?query=tea").await.json();
    assert_eq!(elsewhere["items"], json!([]), "another namespace");
    for (wrong, field) in [
        ("query=tea&limit=101", "limit"),
        ("query=tea&min_relevance=2", "min_relevance"),
        ("query=tea&min_relevance=x", "min_relevance"),
        ("query=tea&cursor=1~m1", "cursor"),
        ("query=%20", "query"),
        ("min_relevance=0.5", "min_relevance"),
    ] {
        let reply = world.get(&format!("/api/agents/a1/memories?{wrong}")).await;
        assert_eq!(reply.refusal(), ("invalid_request".to_owned(), vec![field.to_owned()]), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_memory_is_read_with_all_of_its_content() {
    let world = World::new().await;
    let text = "long ".repeat(1_500);
    remember_text(&world, "a1", "m1", MemoryTier::Archival, &text).await;
    let listed = world.get("/api/agents/a1/memories").await.json();
    assert_eq!(listed["items"][0]["content"], "", "too long for a list");
    let read = world.get("/api/agents/a1/memories/m1").await.json();
    assert_eq!((&read["id"], &read["content"]), (&json!("m1"), &json!(text)));
    for path in ["/api/agents/a1/memories/m2", "/api/agents/a2/memories/m1"] {
        let reply = world.get(path).await;
        assert_eq!(reply.refusal().0, "not_found", "{path}");
    }
    assert_eq!(world.get_as(OTHER, "/api/agents/a1/memories/m1").await.refusal().0, "not_found");
}
