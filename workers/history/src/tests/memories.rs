//! Memories in LanceDB: the contract of memories with nothing left in SQL but light rows, crashes
//! between the two, writers that wake up late, models, upkeep, and what searches find.

use domain::memory::{Embedding, MemoryFilter, MemoryKey, MemoryQuery, NewMemory, Weights};
use domain::ports::{Embedder, Memories, MemoryArchive, MemoryTail};
use domain::recall::{ArchivedMemories, move_memories};
use domain::verify::verify_memories;
use schemas::id::{AgentId, MemoryId, Namespace};
use schemas::memory::{MemoryOwner, MemoryTier};
use testkit::contract::Ports;
use testkit::contract::memories::moved_suite;
use testkit::fake::{MemStore, SimClock, WordEmbedder};

use super::gate::Gate;
use super::*;

fn owner() -> MemoryOwner {
    MemoryOwner { namespace: Namespace::default_ns(), agent_id: AgentId::parse("agent").expect("an id") }
}

fn id(text: &str) -> MemoryId {
    MemoryId::parse(text).expect("an id")
}

fn new(name: &str, content: &str) -> NewMemory {
    NewMemory {
        id: id(name),
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

fn vector(model: &str, numbers: &[f32]) -> Option<Embedding> {
    Some(Embedding { model: model.into(), vector: numbers.to_vec() })
}

fn query(text: &str, embedding: Option<Embedding>) -> MemoryQuery {
    let (filter, weights) = (MemoryFilter::default(), Weights::default());
    MemoryQuery { text: text.into(), embedding, filter, weights, min_relevance: 0.0, limit: 10 }
}

fn store() -> MemStore {
    MemStore::new(4, Arc::new(SimClock::new()))
}

/// Moves what waits, and leaves nothing heavy behind.
async fn move_all(store: &MemStore, archive: &LanceArchive) {
    move_memories(store, archive).await.expect("moved");
    store.lighten(0, 0, 10_000).await.expect("lightened");
}

async fn live_rows(archive: &LanceArchive) -> usize {
    archive.0.memories.newest().await.expect("a table").count_rows(None).await.expect("a count")
}

#[tokio::test]
async fn memories_keep_their_contract_in_lancedb() {
    let guards = std::sync::Mutex::new(Vec::new());
    let archive = async || {
        let dir = TempDir::new().expect("a directory");
        let options = OpenOptions { read_consistency: std::time::Duration::ZERO, ..OpenOptions::default() };
        let archive = open(&dir, options).await;
        guards.lock().expect("no panic").push(Temporary { _archive: archive.clone(), _directory: dir });
        Arc::new(archive) as Arc<dyn MemoryArchive>
    };
    moved_suite(&async || Ports::of(store()), &archive).await;
}

#[tokio::test]
async fn a_crash_before_sql_knows_doubles_nothing() {
    let (dir, store) = (TempDir::new().expect("a directory"), store());
    let archive = open(&dir, OpenOptions::default()).await;
    store.write(&owner(), &new("a", &"large ".repeat(1_000))).await.expect("written");
    store
        .write(&owner(), &NewMemory { embedding: vector("m", &[1.0, 0.0]), ..new("b", "pear") })
        .await
        .expect("written");
    let rows = store.waiting(None, 10).await.expect("a read");
    // It gets into the table, and the process ends.
    archive.keep(&rows).await.expect("kept");
    drop(archive);
    let archive = open(&dir, OpenOptions::default()).await;
    move_all(&store, &archive).await;
    assert_eq!(live_rows(&archive).await, 2);
    let kept = archive.kept(&owner(), &[&id("a"), &id("b")]).await.expect("a read");
    for row in &rows {
        assert!(kept.contains(row), "{} is as it was", row.id);
    }
    let verdict = verify_memories(&store, &archive).await.expect("a walk");
    assert_eq!((verdict.seen, verdict.broken), (2, 0));
    let other = TempDir::new().expect("a directory");
    let verdict = verify_memories(&store, &open(&other, OpenOptions::default()).await).await.expect("a walk");
    assert_eq!((verdict.seen, verdict.broken), (2, 2), "another archive has none of them");
}

#[tokio::test]
async fn a_writer_that_wakes_up_late_takes_nothing_back() {
    let options = OpenOptions::default();
    let mut points = 0;
    loop {
        let (dir, store) = (TempDir::new().expect("a directory"), store());
        let uri = dir.path().join("history").display().to_string();
        let fresh = LanceArchive::open(&uri, options.clone()).await.expect("it opens");
        let gate = Gate::default();
        let late = gate.open(&uri, &options).await;
        store.write(&owner(), &NewMemory { embedding: vector("m", &[1.0]), ..new("a", "old") }).await.expect("written");
        let old = store.waiting(None, 10).await.expect("a read");
        let (successor, theirs) = (fresh.clone(), store.clone());
        gate.arm(points, async move {
            theirs
                .write(&owner(), &NewMemory { embedding: vector("m", &[0.5]), ..new("a", "new") })
                .await
                .expect("written");
            theirs.write(&owner(), &new("b", "another")).await.expect("written");
            move_all(&theirs, &successor).await;
            successor.maintain().await.expect("upkeep");
        })
        .await;
        let done = late.keep(&old).await;
        if !gate.has_opened().await {
            done.expect("undisturbed");
            break;
        }
        late.keep(&old).await.expect("on top of what is there now");
        assert_eq!(live_rows(&fresh).await, 2, "before commit {points}");
        let kept = fresh.kept(&owner(), &[&id("a")]).await.expect("a read");
        let contents: Vec<_> = kept.iter().filter_map(|row| Some(row.memory.as_ref()?.content.as_str())).collect();
        assert_eq!(contents, ["new"], "before commit {points}");
        points += 1;
    }
    assert_eq!(points, 2, "a column of vectors, and the rows");
}

#[tokio::test]
async fn a_search_compares_vectors_of_its_own_model_alone() {
    let (dir, store) = (TempDir::new().expect("a directory"), store());
    let archive = open(&dir, OpenOptions::default()).await;
    for (name, embedding) in [
        ("same", vector("m", &[1.0, 0.0])),
        ("near", vector("m", &[0.9, 0.4])),
        ("other", vector("n", &[1.0, 0.0])),
        ("longer", vector("m", &[1.0, 0.0, 0.0])),
        ("none", None),
    ] {
        store.write(&owner(), &NewMemory { embedding, ..new(name, name) }).await.expect("written");
    }
    move_all(&store, &archive).await;
    let found = async |embedding| {
        let found = archive.candidates(&owner(), &query("?", embedding), 10).await.expect("a search");
        let mut names: Vec<String> = found.rows.iter().map(|row| row.id.to_string()).collect();
        names.sort();
        (names.join(" "), found.total)
    };
    assert_eq!(found(vector("m", &[1.0, 0.0])).await, ("near same".into(), 5));
    assert_eq!(found(vector("n", &[1.0, 0.0])).await, ("other".into(), 5));
    assert_eq!(found(vector("m", &[1.0, 0.0, 0.0])).await.0, "longer");
    assert_eq!(found(vector("unknown", &[1.0, 0.0])).await.0, "");
    // A memory that is embedded anew leaves the column of the model it had.
    assert!(store.embed(&owner(), &id("other"), 1, &vector("m", &[0.8, 0.6]).expect("one")).await.expect("embedded"));
    move_all(&store, &archive).await;
    assert_eq!(found(vector("m", &[1.0, 0.0])).await.0, "near other same");
    assert_eq!(found(vector("n", &[1.0, 0.0])).await.0, "");
}

const SUBJECTS: [&str; 8] = ["billing", "deploy", "garden", "travel", "music", "tax", "coffee", "chess"];
const FACTS: [&str; 6] = [
    "prefers to decide on Mondays",
    "was postponed until the autumn",
    "needs an approval of Ana",
    "costs more than was planned",
    "is explained in the handbook",
    "ended with a good result, 東京 included",
];

fn embedded(embedder: &WordEmbedder, text: &str) -> Embedding {
    Embedding { model: embedder.model().to_owned(), vector: embedder.vector(text) }
}

/// A few dozen memories, each with a vector of its words.
async fn remember(store: &MemStore, embedder: &WordEmbedder) {
    for (n, (subject, fact)) in SUBJECTS.iter().flat_map(|subject| FACTS.map(|fact| (subject, fact))).enumerate() {
        let content = format!("The {subject} {fact}.");
        let embedding = Some(embedded(embedder, &content));
        // Of each another: no order then hangs on when it was written.
        let significance = n as f64 / 100.0;
        let memory = NewMemory { embedding, significance, ..new(&format!("m{n:02}"), &content) };
        store.write(&owner(), &memory).await.expect("written");
    }
}

/// What is found in the archive is as good as what a search through all rows finds.
#[tokio::test]
async fn a_search_of_the_archive_finds_what_a_scan_finds() {
    let (dir, embedder) = (TempDir::new().expect("a directory"), WordEmbedder::new("words"));
    let (store, whole) = (store(), store());
    for store in [&store, &whole] {
        remember(store, &embedder).await;
    }
    let archive = open(&dir, OpenOptions::default()).await;
    let both = ArchivedMemories::new(Arc::new(store.clone()), Arc::new(archive.clone())).near(0);
    for round in ["in the tail", "in the archive", "with indexes"] {
        for text in ["billing approval", "What does coffee cost?", "chess on Mondays", "東京", "handbook tax travel"]
        {
            for embedding in [None, Some(embedded(&embedder, text))] {
                let query = query(text, embedding);
                let wanted = whole.search(&owner(), &query).await.expect("a search");
                let found = both.search(&owner(), &query).await.expect("a search");
                assert!(!wanted.hits.is_empty(), "{text}");
                assert_eq!(found.hits.len(), wanted.hits.len(), "{text}, {round}");
                // The archive does not tell how long texts without any of the words are, which moves scores
                // of words a little; hits that are about as good may change places.
                for (found, wanted) in found.hits.iter().zip(&wanted.hits) {
                    let apart = (found.score - wanted.score).abs();
                    assert!(apart < 0.1, "{} for {}: {text}, {round}", found.memory.id, wanted.memory.id);
                }
            }
        }
        match round {
            "in the tail" => move_all(&store, &archive).await,
            _ => archive.maintain().await.expect("upkeep"),
        }
    }
    let indexes = archive.0.memories.table.list_indices().await.expect("a read");
    assert_eq!(indexes.len(), 2, "of agents and of words");
}

#[tokio::test]
async fn what_lately_changed_hides_what_the_archive_has() {
    let (dir, store) = (TempDir::new().expect("a directory"), store());
    let archive = open(&dir, OpenOptions::default()).await;
    let both = ArchivedMemories::new(Arc::new(store.clone()), Arc::new(archive.clone())).near(0);
    for (name, content) in [("a", "apple pie"), ("b", "apple juice"), ("c", "apple tree")] {
        both.write(&owner(), &new(name, content)).await.expect("written");
    }
    move_all(&store, &archive).await;
    both.write(&owner(), &new("a", "cherry pie")).await.expect("written");
    both.delete(&owner(), &MemoryKey::Id(id("b"))).await.expect("deleted");
    let names = async |text: &str| {
        let found = both.search(&owner(), &query(text, None)).await.expect("a search");
        found.hits.iter().map(|hit| hit.memory.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((names("apple").await, names("cherry").await), (vec!["c".to_owned()], vec!["a".to_owned()]));
    move_all(&store, &archive).await;
    assert_eq!((names("apple").await, names("cherry").await), (vec!["c".to_owned()], vec!["a".to_owned()]));
}

#[tokio::test]
async fn upkeep_bounds_files_and_loses_no_memory() {
    let (dir, store) = (TempDir::new().expect("a directory"), store());
    let options = OpenOptions { keep_versions: std::time::Duration::ZERO, ..OpenOptions::default() };
    let archive = open(&dir, options).await;
    for round in 0..70 {
        for name in ["steady".to_owned(), format!("m{round}")] {
            let memory = NewMemory { embedding: vector("m", &[1.0, 0.1]), ..new(&name, &format!("round {round}")) };
            store.write(&owner(), &memory).await.expect("written");
        }
        move_all(&store, &archive).await;
        if round % 6 == 5 {
            archive.maintain().await.expect("upkeep");
        }
    }
    archive.maintain().await.expect("upkeep");
    let dataset = archive.0.memories.dataset().await.expect("a table");
    assert!(dataset.get_fragments().len() < 64, "{} fragments", dataset.get_fragments().len());
    assert_eq!(live_rows(&archive).await, 71);
    let verdict = verify_memories(&store, &archive).await.expect("a walk");
    assert_eq!((verdict.seen, verdict.broken), (71, 0));
    let found = archive.candidates(&owner(), &query("42", None), 10).await.expect("a search");
    assert_eq!((found.rows.len(), found.total), (1, 71));
}
