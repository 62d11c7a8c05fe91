//! Contract of `MemoryTail`, and of memories in two places: whatever has moved, what is read is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::kept::KeptMemory;
use domain::memory::{Embedding, MemoryHits, MemoryKey, MemoryQuery, NewMemory};
use domain::ports::{
    Memories, MemoryArchive, MemoryListQuery, MemoryPage, MemoryTail, Remembered, Revision, Unembedded,
};
use domain::recall::{ArchivedMemories, Reembedded, Reembedding, move_memories};
use schemas::id::MemoryId;
use schemas::limits::EMBEDDING_BATCH_MAX;
use schemas::memory::{Memory, MemoryOwner};

use super::super::Ports;
use super::{by_id, id, new, owner, vector, write};
use crate::fake::{MemArchive, WordEmbedder};

pub async fn suite(make: &impl AsyncFn() -> Ports) {
    what_changes_waits_until_it_is_recorded(&make().await).await;
    a_light_row_keeps_what_lists_show(&make().await).await;
    few_memories_keep_their_vectors(&make().await).await;
    a_batch_is_moved_once_however_often_it_is_tried(&make().await).await;
    what_lost_its_content_keeps_no_others_from_moving(&make().await).await;
    what_lost_its_content_ends_no_walk(&make().await).await;
}

/// The suites of `Memories`, with everything moved to the archive after a change, and nothing left in the
/// tail.
pub async fn moved_suite(make: &impl AsyncFn() -> Ports, archive: &impl AsyncFn() -> Arc<dyn MemoryArchive>) {
    let make = async || {
        let (ports, archive) = (make().await, archive().await);
        let tail = ports.tail.clone();
        let inner = ArchivedMemories::new(tail.clone(), archive.clone()).near(0);
        Ports { memories: Arc::new(Moved { inner, tail, archive, changes: AtomicUsize::new(0) }), ..ports }
    };
    Box::pin(super::plain_suite(&make)).await;
}

/// An archivist without patience.
struct Moved {
    inner: ArchivedMemories,
    tail: Arc<dyn MemoryTail>,
    archive: Arc<dyn MemoryArchive>,
    changes: AtomicUsize,
}

/// After so many changes, only one in a few is followed by a move: a case that fills a table would move
/// hundreds of times, and has both places mixed.
const ALWAYS_MOVED: usize = 30;
const MOVED_EVERY: usize = 20;

impl Moved {
    async fn then<T>(&self, done: Result<T, Failure>) -> Result<T, Failure> {
        let changes = self.changes.fetch_add(1, Ordering::Relaxed);
        if changes >= ALWAYS_MOVED && !changes.is_multiple_of(MOVED_EVERY) {
            return done;
        }
        move_memories(self.tail.as_ref(), self.archive.as_ref()).await?;
        self.tail.lighten(0, 0, 10_000).await?;
        done
    }
}

#[async_trait]
impl Memories for Moved {
    async fn write(&self, owner: &MemoryOwner, memory: &NewMemory) -> Result<Remembered, Failure> {
        self.then(self.inner.write(owner, memory).await).await
    }

    async fn read(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<Option<Memory>, Failure> {
        self.inner.read(owner, key).await
    }

    async fn search(&self, owner: &MemoryOwner, query: &MemoryQuery) -> Result<MemoryHits, Failure> {
        self.inner.search(owner, query).await
    }

    async fn list(&self, owner: &MemoryOwner, query: &MemoryListQuery) -> Result<MemoryPage, Failure> {
        self.inner.list(owner, query).await
    }

    async fn delete(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<bool, Failure> {
        self.then(self.inner.delete(owner, key).await).await
    }

    async fn unembedded(
        &self,
        owner: &MemoryOwner,
        of: Option<&str>,
        after: Option<&MemoryId>,
        limit: usize,
    ) -> Result<Vec<Unembedded>, Failure> {
        self.inner.unembedded(owner, of, after, limit).await
    }

    async fn embed(
        &self,
        owner: &MemoryOwner,
        id: &MemoryId,
        version: u64,
        embedding: &Embedding,
    ) -> Result<bool, Failure> {
        self.then(self.inner.embed(owner, id, version, embedding).await).await
    }
}

/// Ids and revisions of what waits; a deletion has a mark.
async fn waiting(ports: &Ports) -> Vec<String> {
    let rows = ports.tail.waiting(None, 100).await.expect("a read");
    let text = |row: &KeptMemory| format!("{} {}{}", row.id, row.revision, if row.memory.is_none() { "!" } else { "" });
    rows.iter().map(text).collect()
}

fn at(owner: &MemoryOwner, name: &str, revision: u64) -> Revision {
    Revision { owner: owner.clone(), id: id(name), revision }
}

async fn what_changes_waits_until_it_is_recorded(ports: &Ports) {
    let (owner, tail) = (owner("mover"), &ports.tail);
    write(ports, &owner, &new("a", "apple")).await;
    write(ports, &owner, &new("b", "pear")).await;
    assert_eq!(waiting(ports).await, ["a 1", "b 1"]);
    let rest = tail.waiting(Some(&at(&owner, "a", 1)), 100).await.expect("a read");
    assert_eq!(rest.len(), 1);
    write(ports, &owner, &new("a", "another")).await;
    tail.mark_kept(&[at(&owner, "a", 1), at(&owner, "b", 1)]).await.expect("recorded");
    assert_eq!(waiting(ports).await, ["a 2"], "it changed since");
    tail.mark_kept(&[at(&owner, "a", 2)]).await.expect("recorded");
    // A vector is no change of the memory, and moves nevertheless; so does a deletion.
    let embedding = Embedding { model: "m".into(), vector: vec![1.0, 0.5] };
    assert!(ports.memories.embed(&owner, &id("a"), 2, &embedding).await.expect("embedded"));
    assert!(ports.memories.delete(&owner, &by_id("b")).await.expect("deleted"));
    assert_eq!(waiting(ports).await, ["a 3", "b 2!"]);
    let rows = tail.waiting(None, 100).await.expect("a read");
    assert_eq!(rows[0].embedding, Some(embedding));
    assert_eq!(tail.lighten(3_600_000, 0, 100).await.expect("nothing is old"), 0);
    assert_eq!(tail.lighten(0, 0, 100).await.expect("nothing is recorded"), 0);
    tail.mark_kept(&[at(&owner, "a", 3), at(&owner, "b", 2)]).await.expect("recorded");
    assert_eq!(tail.lighten(0, 0, 1).await.expect("one"), 1);
    assert_eq!(tail.lighten(0, 0, 5).await.expect("the other"), 1);
    assert!(tail.tail(&owner, None, 100).await.expect("a read").is_empty());
    assert_eq!(tail.settled(None, 100).await.expect("a read"), [at(&owner, "a", 3), at(&owner, "b", 2)]);
    assert_eq!(tail.settled(Some(&at(&owner, "a", 3)), 100).await.expect("a read"), [at(&owner, "b", 2)]);
}

async fn a_light_row_keeps_what_lists_show(ports: &Ports) {
    let (owner, tail) = (owner("mover"), &ports.tail);
    let large =
        NewMemory { embedding: vector("m", &[1.0]), label: Some("big".into()), ..new("a", &"x ".repeat(4_000)) };
    write(ports, &owner, &large).await;
    write(ports, &owner, &NewMemory { embedding: vector("m", &[1.0]), ..new("b", "small") }).await;
    tail.mark_kept(&[at(&owner, "a", 1), at(&owner, "b", 1)]).await.expect("recorded");
    tail.lighten(0, 0, 100).await.expect("lightened");
    let read = tail.read(&owner, &super::by_label("big")).await.expect("a read").expect("it is there");
    assert!(domain::memory::kept::lacks_content(&read) && read.embedding_model.as_deref() == Some("m"));
    let shown = tail.some(&owner, &[&id("b"), &id("none")]).await.expect("a read");
    assert_eq!(shown.iter().map(|memory| memory.content.as_str()).collect::<Vec<_>>(), ["small"]);
    // A change without a vector leaves none: the one in the archive may be of another content by then.
    write(ports, &owner, &NewMemory { significance: 0.9, ..new("b", "small") }).await;
    let rows = tail.waiting(None, 100).await.expect("a read");
    let memory = rows[0].memory.as_ref().expect("no deletion");
    assert_eq!((rows.len(), memory.embedding_model.as_deref(), &rows[0].embedding), (1, None, &None));
    // Only the vector of the large one changes: its content is in the archive alone.
    let embedding = Embedding { model: "n".into(), vector: vec![0.5] };
    assert!(tail.embed(&owner, &id("a"), 1, &embedding).await.expect("embedded"));
    let rows = tail.waiting(None, 100).await.expect("a read");
    assert!(rows[0].lacks_content() && rows[0].embedding == Some(embedding));
    let seen = tail.tail(&owner, None, 100).await.expect("a read");
    assert!(seen[0].1.as_ref().is_some_and(|row| row.text.contains("x x")), "its beginning is still searched");
}

async fn few_memories_keep_their_vectors(ports: &Ports) {
    let (few, many, tail) = (owner("few"), owner("many"), &ports.tail);
    let one = || vector("m", &[1.0]);
    let mut kept = Vec::new();
    for (owner, names) in [(&few, &["a", "b"][..]), (&many, &["a", "b", "c"])] {
        for name in names {
            write(ports, owner, &NewMemory { embedding: one(), ..new(name, name) }).await;
            kept.push(at(owner, name, 1));
        }
    }
    tail.mark_kept(&kept).await.expect("recorded");
    assert_eq!(tail.lighten(0, 2, 100).await.expect("lightened"), 5);
    let near = async |owner: &MemoryOwner, near| tail.is_near(owner, near).await.expect("a read");
    let by_vector = async |owner: &MemoryOwner| {
        let found = tail.search(owner, &super::query("?", one())).await.expect("a search");
        found.hits.into_iter().map(|hit| hit.memory.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((near(&few, 2).await, near(&few, 1).await), (true, false), "two are not at most one");
    let mut found = by_vector(&few).await;
    found.sort();
    assert_eq!(found, ["a", "b"], "SQL has what a search needs");
    // Too many lose their vectors, and no number of rows brings them back.
    assert_eq!((near(&many, 2).await, near(&many, 3).await), (false, false));
    assert!(by_vector(&many).await.is_empty());
    // A third one is one too many for a search of SQL alone; those that were light keep what they have.
    write(ports, &few, &NewMemory { embedding: one(), ..new("c", "c") }).await;
    assert_eq!((near(&few, 2).await, near(&few, 3).await), (false, true));
    tail.mark_kept(&[at(&few, "c", 1)]).await.expect("recorded");
    assert_eq!(tail.lighten(0, 2, 100).await.expect("lightened"), 1);
    assert!(!near(&few, 3).await, "one of them lost its vector");
    // An archive that has nothing shows that it is asked.
    let both = ArchivedMemories::new(tail.clone(), Arc::new(MemArchive::default())).near(3);
    let found = both.search(&few, &super::query("c", None)).await.expect("a search");
    assert!(found.hits.is_empty(), "{found:?}");
}

async fn a_batch_is_moved_once_however_often_it_is_tried(ports: &Ports) {
    let (owner, tail, kept) = (owner("mover"), &ports.tail, MemArchive::default());
    write(ports, &owner, &new("a", &"long ".repeat(2_000))).await;
    // A crash after the archive has it, and before SQL knows.
    let rows = tail.waiting(None, 100).await.expect("a read");
    kept.keep(&rows).await.expect("kept");
    let moved = move_memories(tail.as_ref(), &kept).await.expect("moved");
    assert_eq!((moved.rows, moved.full), (1, false));
    assert_eq!(move_memories(tail.as_ref(), &kept).await.expect("nothing to do").rows, 0);
    tail.lighten(0, 0, 100).await.expect("lightened");
    // Its content goes to the archive again, from the archive.
    let embedding = Embedding { model: "n".into(), vector: vec![0.5] };
    assert!(tail.embed(&owner, &id("a"), 1, &embedding).await.expect("embedded"));
    move_memories(tail.as_ref(), &kept).await.expect("moved");
    let there = kept.kept(&owner, &[&id("a")]).await.expect("a read");
    assert_eq!((there.len(), there[0].revision, &there[0].embedding), (1, 2, &Some(embedding)));
    assert!(there[0].memory.as_ref().is_some_and(|memory| memory.content.len() == 10_000));
    // An older copy that comes late changes nothing.
    kept.keep(&rows).await.expect("refused in silence");
    assert_eq!(kept.revisions(&owner, &[&id("a")]).await.expect("a read"), [at(&owner, "a", 2)]);
}

/// Writes large memories whose content is nowhere any more: an archive had it that is gone.
async fn write_lost(ports: &Ports, owner: &MemoryOwner, names: &[String]) {
    for name in names {
        write(ports, owner, &new(name, &"long ".repeat(1_000))).await;
    }
    let kept: Vec<Revision> = names.iter().map(|name| at(owner, name, 1)).collect();
    ports.tail.mark_kept(&kept).await.expect("recorded");
    assert_eq!(ports.tail.lighten(0, 0, names.len()).await.expect("lightened"), names.len() as u64);
}

async fn what_lost_its_content_keeps_no_others_from_moving(ports: &Ports) {
    let (mine, theirs, tail, archive) = (owner("mover"), owner("other"), &ports.tail, MemArchive::default());
    write_lost(ports, &mine, &["a".to_owned(), "b".to_owned()]).await;
    // Only their vectors change, so they wait without content.
    let embedding = Embedding { model: "n".into(), vector: vec![0.5] };
    for name in ["a", "b"] {
        assert!(tail.embed(&mine, &id(name), 1, &embedding).await.expect("embedded"));
    }
    write(ports, &mine, &new("c", "small")).await;
    write(ports, &theirs, &new("d", "small")).await;
    let moved = move_memories(tail.as_ref(), &archive).await.expect("moved");
    assert_eq!((moved.rows, moved.full, moved.left_out), (2, false, 2));
    assert!(moved.findings[0].starts_with("memory a of default/mover: "), "{:?}", moved.findings);
    assert_eq!(waiting(ports).await, ["a 2", "b 2"], "they go on waiting");
    assert_eq!(archive.revisions(&theirs, &[&id("d")]).await.expect("a read"), [at(&theirs, "d", 1)]);
    let moved = moved.go_on(tail.as_ref(), &archive).await.expect("a walk");
    assert_eq!((moved.rows, moved.full, moved.left_out), (0, false, 2));
    // Whoever writes it anew makes it good.
    write(ports, &mine, &new("a", "another")).await;
    let moved = moved.go_on(tail.as_ref(), &archive).await.expect("moved");
    assert_eq!((moved.rows, moved.left_out), (1, 1));
    assert_eq!(waiting(ports).await, ["b 2"]);
}

async fn what_lost_its_content_ends_no_walk(ports: &Ports) {
    let owner = owner("mover");
    let lost: Vec<String> = (0..EMBEDDING_BATCH_MAX).map(|n| format!("lost{n}")).collect();
    write_lost(ports, &owner, &lost).await;
    write(ports, &owner, &new("there", "small")).await;
    let both = ArchivedMemories::new(ports.tail.clone(), Arc::new(MemArchive::default()));
    let page = both.unembedded(&owner, None, None, 2).await.expect("a page");
    assert_eq!(page.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["there"]);
    assert!(both.unembedded(&owner, None, Some(&id("there")), 2).await.expect("a page").is_empty());
    let (mut walk, embedder) = (Reembedding::new(true), WordEmbedder::new("m"));
    let mut done = Vec::new();
    let tail = ports.tail.as_ref();
    while let Some(batch) = walk.go_on(tail, &both, &embedder, EMBEDDING_BATCH_MAX).await.expect("embedded") {
        done.push(batch);
    }
    assert_eq!(done, [Reembedded { embedded: 1, overtaken: 0 }, Reembedded::default()]);
}
