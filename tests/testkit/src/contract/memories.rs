//! Contract of `Memories`.

mod archived;
mod content;
mod finding;
mod vectors;

use std::sync::Arc;

use domain::memory::{Embedding, MemoryFilter, MemoryKey, MemoryQuery, NewMemory, Weights};
use domain::ports::{MemoryArchive, Remembered};
use schemas::id::{MemoryId, Namespace};
use schemas::memory::{Memory, MemoryChange, MemoryOwner, MemoryTier};
use serde_json::{Map, json};

use super::Ports;
use super::build::{agent_id, namespace};
use crate::fake::MemArchive;

pub use archived::moved_suite;

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    plain_suite(make).await;
    archived::suite(make).await;
    let archive = async || Arc::new(MemArchive::default()) as Arc<dyn MemoryArchive>;
    moved_suite(make, &archive).await;
}

async fn plain_suite(make: &impl AsyncFn() -> Ports) {
    a_write_is_readable_at_once(&make().await).await;
    a_label_is_there_once(&make().await).await;
    a_deletion_is_not_undone(&make().await).await;
    an_expected_version_is_held_to(&make().await).await;
    memories_are_private(&make().await).await;
    writers_take_turns(&make().await).await;
    content::suite(make).await;
    finding::suite(make).await;
    vectors::suite(make).await;
}

fn owner(agent: &str) -> MemoryOwner {
    MemoryOwner { namespace: Namespace::default_ns(), agent_id: agent_id(agent) }
}

fn id(text: &str) -> MemoryId {
    MemoryId::parse(text).expect("an id")
}

fn by_id(text: &str) -> MemoryKey {
    MemoryKey::Id(id(text))
}

fn by_label(text: &str) -> MemoryKey {
    MemoryKey::Label(text.to_owned())
}

fn new(name: &str, content: &str) -> NewMemory {
    NewMemory {
        id: id(name),
        label: None,
        tier: MemoryTier::Archival,
        kind: "fact".into(),
        content: content.into(),
        significance: 0.5,
        metadata: Map::new(),
        embedding: None,
        expect_version: None,
    }
}

fn vector(model: &str, numbers: &[f32]) -> Option<Embedding> {
    Some(Embedding { model: model.into(), vector: numbers.to_vec() })
}

fn query(text: &str, embedding: Option<Embedding>) -> MemoryQuery {
    MemoryQuery {
        text: text.into(),
        embedding,
        filter: MemoryFilter::default(),
        weights: Weights::default(),
        min_relevance: 0.0,
        limit: 100,
    }
}

async fn write(ports: &Ports, owner: &MemoryOwner, memory: &NewMemory) -> Remembered {
    ports.memories.write(owner, memory).await.expect("written")
}

async fn read(ports: &Ports, owner: &MemoryOwner, key: &MemoryKey) -> Option<Memory> {
    ports.memories.read(owner, key).await.expect("read")
}

/// Names of what a search finds, best first.
async fn found(ports: &Ports, owner: &MemoryOwner, query: &MemoryQuery) -> Vec<String> {
    let found = ports.memories.search(owner, query).await.expect("a search");
    assert!(!found.incomplete);
    found.hits.into_iter().map(|hit| hit.memory.id.to_string()).collect()
}

fn done(change: MemoryChange, name: &str, version: u64) -> Remembered {
    Remembered { change, id: id(name), version }
}

async fn a_write_is_readable_at_once(ports: &Ports) {
    let owner = owner("writer");
    let metadata = json!({"conversation_id": "c1", "n": 1.5, "quoted \"'": [null, "ü\n"]});
    let memory = NewMemory {
        label: Some("tea 'n' \"biscuits\"; --".into()),
        tier: MemoryTier::Core,
        kind: "preference %".into(),
        significance: 0.1 + 0.2,
        metadata: metadata.as_object().cloned().expect("an object"),
        embedding: vector("m", &[1.0, 0.0]),
        ..new("m1", "Line one.\nπ ≠ 3 \u{1F375} '\"\\")
    };
    assert_eq!(read(ports, &owner, &by_id("m1")).await, None);
    assert_eq!(write(ports, &owner, &memory).await, done(MemoryChange::Created, "m1", 1));
    let kept = read(ports, &owner, &by_id("m1")).await.expect("it is there");
    let wanted = Memory {
        id: id("m1"),
        namespace: owner.namespace.clone(),
        agent_id: owner.agent_id.clone(),
        label: memory.label.clone(),
        tier: memory.tier,
        kind: memory.kind.clone(),
        content: memory.content.clone(),
        content_ref: None,
        significance: memory.significance,
        metadata: memory.metadata.clone(),
        embedding_model: Some("m".into()),
        version: 1,
        created_at_ms: kept.created_at_ms,
        updated_at_ms: kept.created_at_ms,
    };
    assert_eq!(kept, wanted);
    assert_eq!(read(ports, &owner, &by_label("tea 'n' \"biscuits\"; --")).await, Some(kept.clone()));
    assert_eq!(read(ports, &owner, &by_label("tea")).await, None);
    assert_eq!(found(ports, &owner, &query("biscuits", None)).await, ["m1"], "labels are words, too");
    assert_eq!(write(ports, &owner, &memory).await, done(MemoryChange::Unchanged, "m1", 1));
    let other = NewMemory { content: "Coffee.".into(), ..memory.clone() };
    assert_eq!(write(ports, &owner, &other).await, done(MemoryChange::Updated, "m1", 2));
    let after = read(ports, &owner, &by_id("m1")).await.expect("it is there");
    assert_eq!((after.content.as_str(), after.version, after.created_at_ms), ("Coffee.", 2, kept.created_at_ms));
    assert!(after.updated_at_ms >= kept.updated_at_ms);
}

async fn a_label_is_there_once(ports: &Ports) {
    let owner = owner("writer");
    let labelled =
        |name: &str, label: &str, content: &str| NewMemory { label: Some(label.into()), ..new(name, content) };
    write(ports, &owner, &labelled("m1", "plan", "one")).await;
    let again = write(ports, &owner, &labelled("m2", "plan", "two")).await;
    assert_eq!(again, done(MemoryChange::Updated, "m1", 2), "the memory of the label is written");
    assert_eq!(read(ports, &owner, &by_id("m2")).await, None);
    assert_eq!(read(ports, &owner, &by_label("plan")).await.map(|memory| memory.content), Some("two".into()));
    assert_eq!(write(ports, &owner, &new("m3", "x")).await.change, MemoryChange::Created);
    assert_eq!(write(ports, &owner, &new("m4", "x")).await.change, MemoryChange::Created, "no label is no label");
    let named = write(ports, &owner, &labelled("m3", "goal", "x")).await;
    assert_eq!(named, done(MemoryChange::Updated, "m3", 2), "an id may get a label");
    assert!(ports.memories.delete(&owner, &by_label("plan")).await.expect("deleted"));
    let fresh = write(ports, &owner, &labelled("m5", "plan", "three")).await;
    assert_eq!(fresh, done(MemoryChange::Created, "m5", 1), "a deletion frees the label");
    assert_eq!(read(ports, &owner, &by_id("m1")).await, None);
}

async fn a_deletion_is_not_undone(ports: &Ports) {
    let owner = owner("writer");
    let memory = NewMemory { label: Some("l".into()), embedding: vector("m", &[1.0]), ..new("m1", "apple") };
    assert!(!ports.memories.delete(&owner, &by_id("m1")).await.expect("nothing there"));
    write(ports, &owner, &memory).await;
    assert!(ports.memories.delete(&owner, &by_id("m1")).await.expect("deleted"));
    assert!(!ports.memories.delete(&owner, &by_id("m1")).await.expect("gone already"));
    for key in [by_id("m1"), by_label("l")] {
        assert_eq!(read(ports, &owner, &key).await, None);
    }
    assert!(found(ports, &owner, &query("apple", vector("m", &[1.0]))).await.is_empty());
    assert_eq!(write(ports, &owner, &new("m1", "apple")).await, done(MemoryChange::Gone, "m1", 2), "a late repeat");
    assert_eq!(read(ports, &owner, &by_id("m1")).await, None);
    let embedding = vector("m", &[1.0]).expect("a vector");
    assert!(!ports.memories.embed(&owner, &id("m1"), 2, &embedding).await.expect("not embedded"));
    assert!(ports.memories.unembedded(&owner, None, None, 9).await.expect("a page").is_empty());
}

async fn an_expected_version_is_held_to(ports: &Ports) {
    let owner = owner("writer");
    let expecting = |version, content: &str| NewMemory { expect_version: Some(version), ..new("m1", content) };
    assert_eq!(write(ports, &owner, &expecting(1, "x")).await, done(MemoryChange::Conflict, "m1", 0));
    assert_eq!(read(ports, &owner, &by_id("m1")).await, None);
    write(ports, &owner, &new("m1", "one")).await;
    assert_eq!(write(ports, &owner, &expecting(1, "two")).await, done(MemoryChange::Updated, "m1", 2));
    assert_eq!(write(ports, &owner, &expecting(1, "three")).await, done(MemoryChange::Conflict, "m1", 2));
    assert_eq!(read(ports, &owner, &by_id("m1")).await.map(|memory| memory.content), Some("two".into()));
}

async fn memories_are_private(ports: &Ports) {
    let mine = owner("a:b");
    let others = [
        MemoryOwner { namespace: namespace("other"), ..mine.clone() },
        owner("a"),
        MemoryOwner { namespace: namespace("default:a"), agent_id: agent_id("b") },
    ];
    let large = "apple ".repeat(2_000);
    let labelled = |name: &str, content: &str| NewMemory {
        label: Some("l".into()),
        embedding: vector("m", &[1.0]),
        ..new(name, content)
    };
    // Joined with a colon, owner and id of the first two would read alike.
    write(ports, &mine, &labelled("c", &large)).await;
    for other in &others {
        for key in [by_id("c"), by_id("b:c"), by_label("l")] {
            assert_eq!(read(ports, other, &key).await, None, "{other:?}");
            assert!(!ports.memories.delete(other, &key).await.expect("nothing there"), "{other:?}");
        }
        assert!(found(ports, other, &query("apple", vector("m", &[1.0]))).await.is_empty());
        assert!(ports.memories.unembedded(other, None, None, 9).await.expect("a page").is_empty());
        let theirs = write(ports, other, &labelled("b:c", "pear ".repeat(2_000).trim())).await;
        assert_eq!(theirs, done(MemoryChange::Created, "b:c", 1));
    }
    assert_eq!(read(ports, &mine, &by_label("l")).await.map(|memory| memory.content), Some(large.clone()));
    for other in &others {
        assert!(ports.memories.delete(other, &by_label("l")).await.expect("deleted"));
    }
    assert_eq!(read(ports, &mine, &by_id("c")).await.map(|memory| memory.content), Some(large));
}

async fn writers_take_turns(ports: &Ports) {
    const WRITERS: usize = 8;
    let owner = owner("writer");
    let write = |n: usize| {
        let (ports, owner) = (ports.clone(), owner.clone());
        tokio::spawn(async move {
            let same = NewMemory { label: Some("shared".into()), ..new(&format!("s{n}"), &format!("by {n}")) };
            let own = write(&ports, &owner, &new(&format!("o{n}"), "own")).await;
            (write(&ports, &owner, &same).await, own)
        })
    };
    let tasks: Vec<_> = (0..WRITERS).map(write).collect();
    let mut versions = Vec::new();
    for task in tasks {
        let (shared, own) = task.await.expect("a writer");
        assert_eq!(own.change, MemoryChange::Created);
        versions.push(shared.version);
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=WRITERS as u64).collect::<Vec<_>>(), "no version twice, and none skipped");
    let kept = read(ports, &owner, &by_label("shared")).await.expect("it is there");
    assert_eq!(kept.version, WRITERS as u64);
}
