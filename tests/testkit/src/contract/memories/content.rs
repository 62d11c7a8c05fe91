//! Content that is too large for its row (SPEC W-MEM-02).

use domain::memory::{MemoryFilter, NewMemory};
use domain::ports::MemoryListQuery;
use schemas::limits::{MEMORY_CONTENT_BYTES_MAX, MEMORY_INLINE_BYTES_MAX};
use schemas::memory::MemoryChange;

use super::super::Ports;
use super::{by_id, done, found, new, owner, query, read, write};

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    large_content_overflows_and_is_read_whole(&make().await).await;
    content_may_grow_and_shrink(&make().await).await;
}

async fn large_content_overflows_and_is_read_whole(ports: &Ports) {
    let owner = owner("writer");
    // A character of three bytes lies across the bound.
    let across = format!("{}€ tail", "x".repeat(MEMORY_INLINE_BYTES_MAX - 1));
    let largest = "y ".repeat(MEMORY_CONTENT_BYTES_MAX / 2);
    for (name, content, overflows) in [
        ("inline", "x".repeat(MEMORY_INLINE_BYTES_MAX), false),
        ("over", "x".repeat(MEMORY_INLINE_BYTES_MAX + 1), true),
        ("across", across, true),
        ("largest", largest, true),
    ] {
        write(ports, &owner, &new(name, &content)).await;
        let kept = read(ports, &owner, &by_id(name)).await.expect("it is there");
        assert!(kept.content == content, "{name} is read whole");
        assert_eq!(kept.content_ref.is_some(), overflows, "{name}");
    }
    let all = MemoryListQuery { filter: MemoryFilter::default(), after: None, limit: 9 };
    let page = ports.memories.list(&owner, &all).await.expect("a page");
    for memory in page.rows {
        assert_eq!(memory.content.is_empty(), memory.content_ref.is_some(), "{}", memory.id);
    }
    let hits = ports.memories.search(&owner, &query("y", None)).await.expect("a search").hits;
    assert_eq!(hits.len(), 1, "its beginning is searched for words");
    assert!(hits[0].memory.content.is_empty() && hits[0].memory.content_ref.is_some());
    assert!(found(ports, &owner, &query("tail", None)).await.is_empty(), "what lies beyond is not");
}

async fn content_may_grow_and_shrink(ports: &Ports) {
    let owner = owner("writer");
    let large = "large ".repeat(1_000);
    for (version, content) in [(1, "small"), (2, large.as_str()), (3, "small again"), (4, large.as_str())] {
        let change = if version == 1 { MemoryChange::Created } else { MemoryChange::Updated };
        assert_eq!(write(ports, &owner, &new("m", content)).await, done(change, "m", version));
        let kept = read(ports, &owner, &by_id("m")).await.expect("it is there");
        assert_eq!((kept.content.as_str(), kept.content_ref.is_some()), (content, content.len() > 4_096));
    }
    let unchanged = NewMemory { significance: 0.9, ..new("m", &large) };
    write(ports, &owner, &unchanged).await;
    assert_eq!(read(ports, &owner, &by_id("m")).await.map(|memory| memory.content), Some(large));
    assert!(ports.memories.delete(&owner, &by_id("m")).await.expect("deleted"));
    assert_eq!(read(ports, &owner, &by_id("m")).await, None);
}
