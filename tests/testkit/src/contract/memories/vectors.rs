//! Vectors belong to a model, and are never compared with another's.

use domain::memory::{Embedding, NewMemory};
use domain::ports::ModelOf;
use schemas::memory::MemoryChange;

use super::super::Ports;
use super::{by_id, done, found, id, new, owner, query, read, vector, write};

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    models_are_never_mixed(&make().await).await;
    a_vector_stays_with_its_content(&make().await).await;
    missing_vectors_are_told_and_put_in(&make().await).await;
    agents_are_told_whose_memories_lack_vectors(&make().await).await;
}

async fn models_are_never_mixed(ports: &Ports) {
    let owner = owner("finder");
    for (name, embedding) in [
        ("mine", vector("m", &[1.0, 0.0])),
        ("theirs", vector("other", &[1.0, 0.0])),
        ("longer", vector("m", &[1.0, 0.0, 0.0])),
        ("none", None),
        ("zero", vector("m", &[0.0, 0.0])),
        ("empty", vector("m", &[])),
    ] {
        write(ports, &owner, &NewMemory { embedding, ..new(name, name) }).await;
    }
    assert_eq!(found(ports, &owner, &query("?", vector("m", &[1.0, 0.0]))).await, ["mine"]);
    assert_eq!(found(ports, &owner, &query("?", vector("other", &[1.0, 0.0]))).await, ["theirs"]);
    assert_eq!(found(ports, &owner, &query("theirs", vector("new", &[1.0, 0.0]))).await, ["theirs"], "by its words");
    assert!(found(ports, &owner, &query("?", vector("m", &[0.0, 0.0]))).await.is_empty());
}

async fn a_vector_stays_with_its_content(ports: &Ports) {
    let owner = owner("finder");
    let embedded = NewMemory { embedding: vector("m", &[1.0]), ..new("m1", "apple") };
    write(ports, &owner, &embedded).await;
    let dearer = NewMemory { significance: 0.9, ..new("m1", "apple") };
    assert_eq!(write(ports, &owner, &dearer).await, done(MemoryChange::Updated, "m1", 2));
    assert_eq!(found(ports, &owner, &query("?", vector("m", &[1.0]))).await, ["m1"], "the content is the same");
    write(ports, &owner, &new("m1", "pear")).await;
    assert!(found(ports, &owner, &query("?", vector("m", &[1.0]))).await.is_empty(), "the vector was of the apple");
    assert_eq!(read(ports, &owner, &by_id("m1")).await.and_then(|memory| memory.embedding_model), None);
    // The same once more, with a vector this time.
    let again = NewMemory { embedding: vector("m", &[1.0]), ..new("m1", "pear") };
    assert_eq!(write(ports, &owner, &again).await, done(MemoryChange::Unchanged, "m1", 3));
    assert_eq!(found(ports, &owner, &query("?", vector("m", &[1.0]))).await, ["m1"]);
}

async fn missing_vectors_are_told_and_put_in(ports: &Ports) {
    let owner = owner("finder");
    let large = "large ".repeat(1_000);
    for (name, content, embedding) in [
        ("a", "has one", vector("new", &[1.0])),
        ("b", "of another", vector("old", &[1.0])),
        ("c", large.as_str(), None),
        ("d", "none", None),
    ] {
        write(ports, &owner, &NewMemory { embedding, ..new(name, content) }).await;
    }
    let memories = &ports.memories;
    let page = memories.unembedded(&owner, None, None, 1).await.expect("a page");
    let told: Vec<(&str, u64)> = page.iter().map(|row| (row.id.as_str(), row.version)).collect();
    assert_eq!(told, [("c", 1)]);
    assert!(page[0].content == large, "all of it");
    let others = memories.unembedded(&owner, Some("old"), None, 2).await.expect("a page");
    assert_eq!(others.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["b"]);
    let rest = memories.unembedded(&owner, None, Some(&id("c")), 2).await.expect("a page");
    assert_eq!(rest.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["d"]);
    let embedding = Embedding { model: "new".into(), vector: vec![1.0] };
    assert!(memories.embed(&owner, &id("b"), 1, &embedding).await.expect("embedded"));
    assert!(!memories.embed(&owner, &id("b"), 2, &embedding).await.expect("another version"));
    assert!(!memories.embed(&owner, &id("none"), 1, &embedding).await.expect("no such memory"));
    let kept = read(ports, &owner, &by_id("b")).await.expect("it is there");
    assert_eq!((kept.version, kept.embedding_model.as_deref()), (1, Some("new")), "no change of the memory");
    let mut names = found(ports, &owner, &query("?", Some(embedding))).await;
    names.sort();
    assert_eq!(names, ["a", "b"]);
}

/// By the model that vectors are of, and the agent.
async fn lacking(ports: &Ports, model: &str) -> Vec<String> {
    let (mut told, mut after): (Vec<String>, Option<ModelOf>) = Default::default();
    while let Some(next) = ports.tail.lacking(model, after.as_ref()).await.expect("a look") {
        told.push(format!("{} {}", next.model.as_deref().unwrap_or("none"), next.owner.agent_id));
        after = Some(next);
    }
    told
}

async fn agents_are_told_whose_memories_lack_vectors(ports: &Ports) {
    let (first, second) = (owner("finder"), owner("seeker"));
    for (owner, name, model) in [
        (&first, "a", None),
        (&first, "b", Some("new")),
        (&first, "c", Some("old")),
        (&second, "a", None),
        (&second, "b", Some("new")),
        (&second, "c", Some("first")),
        (&second, "d", Some("old")),
        (&second, "e", Some("old")),
    ] {
        let embedding = model.and_then(|model| vector(model, &[1.0]));
        write(ports, owner, &NewMemory { embedding, ..new(name, "apple") }).await;
    }
    let all = ["none finder", "none seeker", "first seeker", "old finder", "old seeker"];
    assert_eq!(lacking(ports, "new").await, all);
    assert_eq!(lacking(ports, "old").await, ["none finder", "none seeker", "first seeker", "new finder", "new seeker"]);
    let embedding = Embedding { model: "new".into(), vector: vec![1.0] };
    assert!(ports.memories.embed(&second, &id("c"), 1, &embedding).await.expect("embedded"));
    assert!(ports.memories.delete(&first, &by_id("a")).await.expect("deleted"));
    assert_eq!(lacking(ports, "new").await, ["none seeker", "old finder", "old seeker"]);
}
