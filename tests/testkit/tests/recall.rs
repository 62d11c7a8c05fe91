//! Remembering and recalling through the ports, on the fakes.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domain::failure::Failure;
use domain::memory::input::{MemorySearch, MemoryUpdate, MemoryWrite};
use domain::memory::{Embedding, MemoryHits, MemoryKey, MemoryQuery, NewMemory};
use domain::ports::{Embedder, Memories, MemoryListQuery, MemoryPage, Remembered, Unembedded};
use domain::recall;
use schemas::id::{AgentId, MemoryId, Namespace};
use schemas::limits::EMBEDDING_BATCH_MAX;
use schemas::memory::{Memory, MemoryChange, MemoryOwner};
use serde_json::json;
use testkit::fake::{MemStore, SimClock, WordEmbedder};

fn store() -> MemStore {
    MemStore::new(4, Arc::new(SimClock::new()))
}

fn owner() -> MemoryOwner {
    MemoryOwner { namespace: Namespace::default_ns(), agent_id: AgentId::parse("agent").expect("an id") }
}

fn id(text: &str) -> MemoryId {
    MemoryId::parse(text).expect("an id")
}

async fn remember(store: &MemStore, embedder: &WordEmbedder, name: &str, text: &str) -> recall::Recalled<Remembered> {
    let input = MemoryWrite::check(&json!({"content": text, "label": name})).expect("valid");
    recall::write(store, embedder, &owner(), input, id(name)).await.expect("written")
}

/// A walk to its end, over all that another model has embedded, too.
async fn reembed(store: &MemStore, embedder: &WordEmbedder) -> recall::Reembedded {
    let (mut walk, mut all) = (recall::Reembedding::new(true), recall::Reembedded::default());
    while let Some(done) = walk.go_on(store, store, embedder, EMBEDDING_BATCH_MAX).await.expect("embedded") {
        all.embedded += done.embedded;
        all.overtaken += done.overtaken;
    }
    all
}

async fn search(store: &MemStore, embedder: &WordEmbedder, text: &str) -> (Vec<String>, bool) {
    let input = MemorySearch::check(&json!({"query": text, "weights": {"vector": 1, "text": 0.001}})).expect("valid");
    let found = recall::search(store, embedder, &owner(), input).await.expect("a search");
    let names = found.value.hits.iter().map(|hit| hit.memory.id.to_string()).collect();
    (names, found.not_embedded.is_some())
}

#[tokio::test(start_paused = true)]
async fn a_write_stores_and_embeds_in_one() {
    let (store, embedder) = (store(), WordEmbedder::new("m"));
    let written = remember(&store, &embedder, "tea", "likes green tea").await;
    assert_eq!((written.value.change, written.not_embedded), (MemoryChange::Created, None));
    remember(&store, &embedder, "rain", "rain tomorrow").await;
    assert_eq!(embedder.asked(), ["likes green tea", "rain tomorrow"]);
    assert_eq!(search(&store, &embedder, "green").await, (vec!["tea".to_owned()], false));
}

#[tokio::test(start_paused = true)]
async fn without_an_embedder_words_do() {
    let (store, embedder) = (store(), WordEmbedder::new("m"));
    embedder.fail(Some(Failure::unavailable("away")));
    let written = remember(&store, &embedder, "tea", "likes green tea").await;
    assert_eq!(written.value.change, MemoryChange::Created);
    assert_eq!(written.not_embedded, Some(Failure::unavailable("away")));
    assert_eq!(search(&store, &embedder, "green").await, (vec!["tea".to_owned()], true));
    embedder.fail(None);
    assert_eq!(reembed(&store, &embedder).await, recall::Reembedded { embedded: 1, overtaken: 0 });
    let key = MemoryKey::Label("tea".into());
    let kept = store.read(&owner(), &key).await.expect("read").expect("it is there");
    assert_eq!(kept.embedding_model.as_deref(), Some("m"));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_model_is_made_good() {
    let (store, old, new) = (store(), WordEmbedder::new("old"), WordEmbedder::new("new"));
    for n in 0..300 {
        remember(&store, &old, &format!("m{n}"), &format!("word{n}")).await;
    }
    let mut walk = recall::Reembedding::default();
    let done = walk.go_on(&store, &store, &new, EMBEDDING_BATCH_MAX).await.expect("a look");
    assert_eq!(done, None, "vectors stay unless they are to be renewed");
    assert_eq!(reembed(&store, &new).await, recall::Reembedded { embedded: 300, overtaken: 0 });
    assert_eq!(reembed(&store, &new).await, recall::Reembedded::default(), "nothing is left to do");
    assert_eq!(new.asked().len(), 300, "each was embedded once");
    assert_eq!(search(&store, &new, "word7").await.0[0], "m7");
}

/// Refuses every call in which the word is, and keeps how many texts those had.
struct Choosy {
    embedder: WordEmbedder,
    word: &'static str,
    failure: Failure,
    refused: Mutex<Vec<usize>>,
}

impl Choosy {
    fn new(word: &'static str, failure: Failure) -> Self {
        Self { embedder: WordEmbedder::new("new"), word, failure, refused: Mutex::default() }
    }

    fn refused(&self) -> Vec<usize> {
        self.refused.lock().expect("unpoisoned").clone()
    }

    /// A walk to its end, past what it refuses: how many have a vector of it then.
    async fn walk(&self, store: &MemStore) -> u64 {
        let (mut walk, mut embedded) = (recall::Reembedding::new(true), 0);
        loop {
            match walk.go_on(store, store, self, EMBEDDING_BATCH_MAX).await {
                Ok(Some(done)) => embedded += done.embedded,
                Ok(None) => return embedded,
                Err(_) => assert!(self.refused().len() < 100, "it goes round in circles"),
            }
        }
    }
}

#[async_trait]
impl Embedder for Choosy {
    fn model(&self) -> &str {
        self.embedder.model()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        if texts.iter().any(|text| text.contains(self.word)) {
            self.refused.lock().expect("unpoisoned").push(texts.len());
            return Err(self.failure.clone());
        }
        self.embedder.embed(texts).await
    }
}

#[tokio::test(start_paused = true)]
async fn one_text_that_cannot_be_embedded_holds_up_no_others() {
    let (store, embedder) = (store(), WordEmbedder::new("old"));
    for n in 0..200 {
        remember(&store, &embedder, &format!("m{n}"), if n == 77 { "bitter" } else { "sweet" }).await;
    }
    let choosy = Choosy::new("bitter", Failure::internal("not this one"));
    assert_eq!(choosy.walk(&store).await, 199);
    assert_eq!(choosy.embedder.asked().len(), 199, "each once");
}

/// Some servers answer a text that is too long for them as if they were overloaded.
#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_four_times_as_if_that_would_pass_is_halved_down_to_the_text_that_it_fails_for() {
    let (store, embedder) = (store(), WordEmbedder::new("old"));
    for n in 0..200 {
        // The first that is looked at, so that all batches with it are known.
        remember(&store, &embedder, &format!("m{n:03}"), if n == 0 { "bitter" } else { "sweet" }).await;
    }
    let choosy = Choosy::new("bitter", Failure::unavailable("overloaded"));
    assert_eq!(choosy.walk(&store).await, 199);
    let sizes = std::iter::successors(Some(EMBEDDING_BATCH_MAX), |size| Some(size / 2).filter(|half| *half > 0));
    assert_eq!(choosy.refused(), sizes.flat_map(|size| [size; 4]).collect::<Vec<_>>());
    assert_eq!(choosy.embedder.asked().len(), 199, "each of the others once");
}

#[tokio::test(start_paused = true)]
async fn an_update_changes_what_it_names_and_embeds_only_new_content() {
    let (store, embedder) = (store(), WordEmbedder::new("m"));
    remember(&store, &embedder, "tea", "likes green tea").await;
    let dearer = MemoryUpdate::check(&json!({"label": "tea", "significance": 0.9})).expect("valid");
    let done = recall::update(&store, &embedder, &owner(), &dearer).await.expect("written").expect("it is there");
    assert_eq!((done.value.change, done.value.version), (MemoryChange::Updated, 2));
    assert_eq!(embedder.asked().len(), 1);
    assert_eq!(search(&store, &embedder, "green").await.0, ["tea"], "the vector stays");
    let other = MemoryUpdate::check(&json!({"label": "tea", "content": "likes coffee"})).expect("valid");
    recall::update(&store, &embedder, &owner(), &other).await.expect("written").expect("it is there");
    assert_eq!(search(&store, &embedder, "coffee").await.0, ["tea"]);
    assert!(search(&store, &embedder, "green").await.0.is_empty());
    let missing = MemoryUpdate::check(&json!({"label": "none", "content": "x"})).expect("valid");
    assert_eq!(recall::update(&store, &embedder, &owner(), &missing).await.expect("read"), None);
}

/// Somebody else writes between a read and the write after it, so many times.
struct Meddled {
    store: MemStore,
    left: std::sync::atomic::AtomicU32,
}

#[async_trait]
impl Memories for Meddled {
    async fn write(&self, owner: &MemoryOwner, memory: &NewMemory) -> Result<Remembered, Failure> {
        self.store.write(owner, memory).await
    }

    async fn read(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<Option<Memory>, Failure> {
        let memory = self.store.read(owner, key).await?;
        let order = std::sync::atomic::Ordering::SeqCst;
        if let (Some(memory), Ok(left)) = (&memory, self.left.fetch_update(order, order, |left| left.checked_sub(1))) {
            let change = MemoryUpdate::check(&json!({"id": memory.id, "metadata": {"left": left}})).expect("valid");
            self.store.write(owner, &change.over(memory.clone(), None)).await?;
        }
        Ok(memory)
    }

    async fn search(&self, owner: &MemoryOwner, query: &MemoryQuery) -> Result<MemoryHits, Failure> {
        self.store.search(owner, query).await
    }

    async fn list(&self, owner: &MemoryOwner, query: &MemoryListQuery) -> Result<MemoryPage, Failure> {
        Memories::list(&self.store, owner, query).await
    }

    async fn delete(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<bool, Failure> {
        self.store.delete(owner, key).await
    }

    async fn unembedded(
        &self,
        owner: &MemoryOwner,
        of: Option<&str>,
        after: Option<&MemoryId>,
        limit: usize,
    ) -> Result<Vec<Unembedded>, Failure> {
        self.store.unembedded(owner, of, after, limit).await
    }

    async fn embed(
        &self,
        owner: &MemoryOwner,
        id: &MemoryId,
        version: u64,
        vector: &Embedding,
    ) -> Result<bool, Failure> {
        self.store.embed(owner, id, version, vector).await
    }
}

#[tokio::test(start_paused = true)]
async fn no_update_is_lost_to_another() {
    let (store, embedder) = (store(), WordEmbedder::new("m"));
    remember(&store, &embedder, "tea", "likes green tea").await;
    let update = MemoryUpdate::check(&json!({"label": "tea", "significance": 0.9})).expect("valid");
    let meddled = |left: u32| Meddled { store: store.clone(), left: left.into() };
    let done = recall::update(&meddled(3), &embedder, &owner(), &update).await.expect("written").expect("it is there");
    assert_eq!((done.value.change, done.value.version), (MemoryChange::Updated, 5));
    let kept = store.read(&owner(), &MemoryKey::Label("tea".into())).await.expect("read").expect("it is there");
    assert_eq!((kept.significance, &kept.metadata["left"]), (0.9, &json!(1)), "both changes are there");
    let other = MemoryUpdate::check(&json!({"label": "tea", "significance": 0.1})).expect("valid");
    let failure = recall::update(&meddled(100), &embedder, &owner(), &other).await.expect_err("others keep writing");
    assert!(failure.retriable, "{failure}");
}
