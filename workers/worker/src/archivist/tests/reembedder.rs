//! Memories without a vector of the embedder's model get one in the end, once.

use domain::memory::{Embedding, NewMemory};
use domain::ports::Memories;
use domain::recall::ArchivedMemories;
use schemas::id::{MemoryId, Namespace};
use schemas::memory::{MemoryOwner, MemoryTier};
use testkit::dice::Dice;

use super::*;

fn owner(agent: &str) -> MemoryOwner {
    MemoryOwner { namespace: Namespace::default_ns(), agent_id: agent_id(agent) }
}

fn memory(n: usize, model: Option<&str>) -> NewMemory {
    NewMemory {
        id: MemoryId::parse(&format!("m{n}")).expect("an id"),
        label: None,
        tier: MemoryTier::Archival,
        kind: "fact".into(),
        // Some of them overflow.
        content: format!("word{n} {}", "more ".repeat(if n.is_multiple_of(50) { 1_000 } else { 0 })),
        significance: 0.5,
        metadata: serde_json::Map::new(),
        embedding: model.map(|model| Embedding { model: model.into(), vector: vec![1.0] }),
        expect_version: None,
    }
}

async fn remember(world: &World, agent: &str, count: usize, model: Option<&str>) {
    for n in 0..count {
        world.ports.memories.write(&owner(agent), &memory(n, model)).await.expect("written");
    }
}

fn renewing() -> ArchivistConfig {
    ArchivistConfig { renews_vectors: true, ..ArchivistConfig::default() }
}

/// Whether all memories have vectors of the embedder's model.
async fn is_done(world: &World) -> bool {
    world.ports.tail.lacking(world.embedder.model(), None).await.expect("a look").is_none()
}

async fn until_done(world: &World) {
    for _ in 0..600 {
        if is_done(world).await {
            return;
        }
        pass(1_000).await;
    }
    panic!("memories still lack vectors");
}

#[tokio::test(start_paused = true)]
async fn after_a_change_of_the_model_all_is_embedded_anew_once() {
    let world = World::new();
    // Those of the first are so many that their vectors are in the archive alone.
    remember(&world, "many", limits::MEMORIES_NEAR_MAX + 100, Some("old")).await;
    remember(&world, "few", 3, Some("old")).await;
    let old = ArchivistDeps { embedder: Arc::new(WordEmbedder::new("old")), ..world.deps() };
    let archivist = Archivist::start(old, ArchivistConfig::default());
    pass(limits::JOURNAL_GRACE_MS + 60_000).await;
    archivist.stop().await;
    let tail = &world.ports.tail;
    assert!(tail.tail(&owner("many"), None, 10).await.expect("a read").is_empty(), "they are light");
    assert!(!tail.is_near(&owner("many"), limits::MEMORIES_NEAR_MAX).await.expect("a read"));

    remember(&world, "fresh", 3, Some("words")).await;
    let archivist = Archivist::start(world.deps(), renewing());
    until_done(&world).await;
    pass(limits::JOURNAL_GRACE_MS + 60_000).await;
    archivist.stop().await;
    let mut asked = world.embedder.asked();
    assert_eq!(asked.len(), limits::MEMORIES_NEAR_MAX + 103, "those that had one were left alone");
    assert!(asked.iter().any(|text| text.len() > limits::MEMORY_INLINE_BYTES_MAX), "with all their content");
    asked.retain(|text| text.starts_with("word1 "));
    assert_eq!(asked.len(), 2, "once for each agent");
    // What is new of them has moved on to the archive.
    let memories = ArchivedMemories::new(tail.clone(), Arc::new(world.archive.clone()));
    let (rows, at) = (tail.waiting(None, 10).await.expect("a read"), MemoryId::parse("m7").expect("an id"));
    assert!(rows.is_empty(), "{rows:?}");
    let kept = MemoryArchive::kept(&world.archive, &owner("many"), &[&at]).await.expect("a read");
    let vector = world.embedder.vector("word7 ");
    assert_eq!(kept[0].embedding, Some(Embedding { model: "words".into(), vector }));
    let left = memories.unembedded(&owner("many"), Some("old"), None, 10).await.expect("a read");
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn an_embedder_that_fails_is_asked_again_later() {
    let world = World::new();
    remember(&world, "few", 3, None).await;
    world.embedder.fail(Some(Failure::unavailable("away")));
    let archivist = Archivist::start(world.deps(), renewing());
    pass(600_000).await;
    let attempts = world.embedder.asked().len() / 3;
    assert!((10..40).contains(&attempts), "{attempts} attempts in ten minutes");
    assert!(!is_done(&world).await);
    // Nothing else waits for it.
    world.session("s1", 2).await;
    world.until_archived().await;
    world.embedder.fail(None);
    until_done(&world).await;
    let asked = world.embedder.asked().len();
    // An outage later leaves memories without vectors; they are found without a start of anything.
    world.ports.memories.write(&owner("few"), &memory(9, None)).await.expect("written");
    until_done(&world).await;
    assert_eq!(world.embedder.asked().len(), asked + 1);
    pass(600_000).await;
    assert_eq!(world.embedder.asked().len(), asked + 1, "there is nothing to do");
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn batches_are_paced_and_one_of_two_archivists_makes_them() {
    let world = World::new();
    let count = 4 * limits::EMBEDDING_BATCH_MAX;
    remember(&world, "many", count, None).await;
    let deps = |name| ArchivistDeps { worker: worker(name), ..world.deps() };
    let start = |name| Archivist::start(deps(name), renewing());
    let (first, second) = (start("a1"), start("a2"));
    pass(limits::REEMBED_INTERVAL_MS + limits::REEMBED_INTERVAL_MS / 2).await;
    assert_eq!(world.embedder.asked().len(), 2 * limits::EMBEDDING_BATCH_MAX, "one batch at a time");
    first.kill();
    until_done(&world).await;
    assert_eq!(world.embedder.asked().len(), count, "the other one goes on where that ended");
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn small_batches_of_several_agents_are_no_more_than_one_together() {
    let world = World::new();
    for agent in ["first", "second", "third"] {
        remember(&world, agent, 100, None).await;
    }
    let archivist = Archivist::start(world.deps(), renewing());
    pass(limits::REEMBED_INTERVAL_MS + limits::REEMBED_INTERVAL_MS / 2).await;
    assert_eq!(world.embedder.asked().len(), 2 * limits::EMBEDDING_BATCH_MAX, "two rounds");
    pass(limits::REEMBED_INTERVAL_MS).await;
    assert_eq!(world.embedder.asked().len(), 300);
    assert!(is_done(&world).await);
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_archivist_that_dies_again_and_again_embeds_all_nevertheless() {
    let mut world = World::new();
    world.archive = MemArchive::with_faults(Dice::new(3), 0.3, testkit::fake::Breakages::default());
    remember(&world, "many", 3 * limits::EMBEDDING_BATCH_MAX, Some("old")).await;
    for round in 0..10 {
        let archivist = Archivist::start(world.deps(), renewing());
        pass(300 + 450 * (round % 4)).await;
        archivist.kill();
    }
    let archivist = Archivist::start(world.deps(), renewing());
    until_done(&world).await;
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn vectors_of_another_model_stay_unless_they_are_to_be_renewed() {
    let world = World::new();
    remember(&world, "paid", 3, Some("dear")).await;
    remember(&world, "none", 3, None).await;
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    pass(120_000).await;
    archivist.stop().await;
    assert_eq!(world.embedder.asked().len(), 3, "those of one agent have none");
    let left = world.ports.memories.unembedded(&owner("paid"), Some("dear"), None, 10).await.expect("a read");
    assert_eq!(left.len(), 3);
    let archivist = Archivist::start(world.deps(), renewing());
    until_done(&world).await;
    archivist.stop().await;
    assert_eq!(world.embedder.asked().len(), 6);
}
