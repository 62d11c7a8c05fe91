//! Memories move beside the journal, once, and are found all the while.

use domain::memory::{MemoryFilter, MemoryQuery, NewMemory, Weights};
use domain::ports::Memories;
use domain::recall::ArchivedMemories;
use domain::verify::verify_memories;
use schemas::id::{MemoryId, Namespace};
use schemas::memory::{MemoryOwner, MemoryTier};
use testkit::dice::Dice;

use super::*;

fn owner() -> MemoryOwner {
    MemoryOwner { namespace: Namespace::default_ns(), agent_id: agent_id("writer") }
}

fn memory(name: &str, content: &str) -> NewMemory {
    NewMemory {
        id: MemoryId::parse(name).expect("an id"),
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

async fn found(memories: &ArchivedMemories, text: &str) -> Vec<String> {
    let query = MemoryQuery {
        text: text.into(),
        embedding: None,
        filter: MemoryFilter::default(),
        weights: Weights::default(),
        min_relevance: 0.0,
        limit: 100,
    };
    let found = memories.search(&owner(), &query).await.expect("a search");
    let mut ids: Vec<String> = found.hits.iter().map(|hit| hit.memory.id.to_string()).collect();
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn memories_move_to_the_archive_and_leave_the_tail_after_their_grace() {
    let world = World::new();
    let memories = ArchivedMemories::new(world.ports.tail.clone(), Arc::new(world.archive.clone()));
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    memories.write(&owner(), &memory("a", "apple pie")).await.expect("written");
    assert_eq!(found(&memories, "apple").await, ["a"], "at once");
    pass(3_000).await;
    let tail = &world.ports.tail;
    assert!(tail.waiting(None, 10).await.expect("a read").is_empty(), "it is archived");
    assert_eq!(tail.tail(&owner(), None, 10).await.expect("a read").len(), 1, "and stays for its grace");
    pass(limits::JOURNAL_GRACE_MS + 5_000).await;
    assert!(tail.tail(&owner(), None, 10).await.expect("a read").is_empty());
    assert_eq!(found(&memories, "apple").await, ["a"]);
    memories.write(&owner(), &memory("a", "cherry pie")).await.expect("written");
    assert!(found(&memories, "apple").await.is_empty(), "what is new hides what is archived");
    pass(limits::JOURNAL_GRACE_MS + 5_000).await;
    assert_eq!(found(&memories, "cherry").await, ["a"]);
    let verdict = verify_memories(tail.as_ref(), &world.archive).await.expect("a walk");
    assert_eq!((verdict.seen, verdict.broken), (1, 0));
    archivist.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_fails_and_archivists_that_die_lose_no_memory() {
    let mut world = World::new();
    world.archive = MemArchive::with_faults(Dice::new(7), 0.5, testkit::fake::Breakages::default());
    let memories = ArchivedMemories::new(world.ports.tail.clone(), Arc::new(world.archive.clone()));
    for round in 0..20 {
        let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
        for name in [format!("m{round}"), "steady".to_owned()] {
            memories.write(&owner(), &memory(&name, &format!("apple {round}"))).await.expect("written");
        }
        pass(700 + 450 * (round % 4)).await;
        archivist.kill();
        assert_eq!(found(&memories, "apple").await.len(), round as usize + 2);
    }
    let archivist = Archivist::start(world.deps(), ArchivistConfig::default());
    pass(4 * limits::JOURNAL_GRACE_MS).await;
    archivist.stop().await;
    let verdict = verify_memories(world.ports.tail.as_ref(), &world.archive).await.expect("a walk");
    assert_eq!((verdict.seen, verdict.broken), (21, 0));
    assert_eq!(found(&memories, "apple").await.len(), 21);
}
