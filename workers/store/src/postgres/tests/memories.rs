//! Searches of several processes, each of which keeps what it has seen.

use domain::memory::{Embedding, MemoryFilter, MemoryKey, MemoryQuery, NewMemory, Weights};
use domain::ports::Memories;
use schemas::id::{AgentId, MemoryId, Namespace};
use schemas::limits::MEMORIES_NEAR_MAX;
use schemas::memory::{MemoryOwner, MemoryTier};

use super::{PostgresStore, fresh, open};

fn owner() -> MemoryOwner {
    MemoryOwner { namespace: Namespace::default_ns(), agent_id: AgentId::parse("agent").expect("an id") }
}

fn id(n: usize) -> MemoryId {
    MemoryId::parse(&format!("m{n}")).expect("an id")
}

fn memory(n: usize, content: &str) -> NewMemory {
    NewMemory {
        id: id(n),
        label: None,
        tier: MemoryTier::Archival,
        kind: "fact".into(),
        content: content.into(),
        significance: 0.5,
        metadata: serde_json::Map::new(),
        embedding: None,
        expect_version: None,
    }
}

fn query(text: &str) -> MemoryQuery {
    MemoryQuery {
        text: text.into(),
        embedding: None,
        filter: MemoryFilter::default(),
        weights: Weights::default(),
        min_relevance: 0.0,
        limit: 100,
    }
}

async fn found(store: &PostgresStore, text: &str) -> Vec<String> {
    let found = store.search(&owner(), &query(text)).await.expect("a search");
    let mut ids: Vec<String> = found.hits.into_iter().map(|hit| hit.memory.id.to_string()).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn a_search_sees_what_another_process_has_written() {
    let (one, url) = fresh().await;
    let two = open(&url).await;
    for n in 1..=3 {
        one.write(&owner(), &memory(n, "a needle")).await.expect("written");
    }
    assert_eq!(found(&two, "needle").await, ["m1", "m2", "m3"]);
    one.write(&owner(), &memory(2, "nothing but hay")).await.expect("written");
    assert!(one.delete(&owner(), &MemoryKey::Id(id(3))).await.expect("deleted"));
    one.write(&owner(), &memory(4, "one more needle")).await.expect("written");
    for store in [&two, &one, &two] {
        assert_eq!(found(store, "needle").await, ["m1", "m4"]);
        assert_eq!(found(store, "hay").await, ["m2"]);
    }
    // A vector alone is a change, too.
    let embedding = Embedding { model: "words".into(), vector: vec![1.0, 0.0] };
    let near = MemoryQuery { embedding: Some(embedding.clone()), text: "unheard of".into(), ..query("") };
    assert!(two.search(&owner(), &near).await.expect("a search").hits.is_empty());
    assert!(one.embed(&owner(), &id(1), 1, &embedding).await.expect("a vector"));
    let hits = two.search(&owner(), &near).await.expect("a search").hits;
    assert_eq!(hits.iter().map(|hit| hit.memory.id.as_str()).collect::<Vec<_>>(), ["m1"]);
    one.close().await;
    two.close().await;
}

#[tokio::test]
async fn of_many_memories_the_rows_are_read() {
    let (store, _) = fresh().await;
    for n in 1..=MEMORIES_NEAR_MAX {
        store.write(&owner(), &memory(n, "hay")).await.expect("written");
    }
    store.write(&owner(), &memory(1, "a needle")).await.expect("written");
    assert_eq!(found(&store, "needle").await, ["m1"], "all of them are kept");
    store.write(&owner(), &memory(MEMORIES_NEAR_MAX + 1, "a needle")).await.expect("written");
    assert_eq!(found(&store, "needle").await, ["m1", &format!("m{}", MEMORIES_NEAR_MAX + 1)], "none is");
    assert!(store.delete(&owner(), &MemoryKey::Id(id(1))).await.expect("deleted"));
    assert_eq!(found(&store, "needle").await, [format!("m{}", MEMORIES_NEAR_MAX + 1)]);
    store.close().await;
}
