//! `GET /api/agents/{agent_id}/memories`.

use domain::memory::NewMemory;
use domain::ports::Memories;
use schemas::id::{AgentId, MemoryId, Namespace};
use schemas::memory::{MemoryOwner, MemoryTier};
use serde_json::{Value, json};

use super::world::{OTHER, World};

async fn remember(world: &World, agent: &str, id: &str, tier: MemoryTier) {
    let owner = MemoryOwner { namespace: Namespace::default_ns(), agent_id: AgentId::parse(agent).unwrap() };
    let memory = NewMemory {
        id: MemoryId::parse(id).unwrap(),
        label: None,
        tier,
        kind: "fact".into(),
        content: format!("what {id} says"),
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
