//! Memories without a vector of the embedder's model get one: after a change of the model, and after an outage of the
//! embedder (`domain::recall::Reembedding`). Beside the archivist's other work, since an embedder over a network
//! takes as long as it likes: no history waits for it.

use std::convert::Infallible;
use std::time::Duration;

use domain::failure::Failure;
use domain::recall::{ArchivedMemories, Reembedding};
use schemas::limits::{EMBEDDING_BATCH_MAX, REEMBED_AGENTS_MAX, REEMBED_INTERVAL_MS, REEMBED_REST_MS};
use schemas::telemetry::metric;

use super::condition::Condition;
use super::{ArchivistConfig, ArchivistDeps};

pub struct Reembedder {
    deps: ArchivistDeps,
    memories: ArchivedMemories,
    embedding: Condition,
    walk: Reembedding,
}

impl Reembedder {
    pub fn new(deps: &ArchivistDeps, config: &ArchivistConfig) -> Self {
        Self {
            memories: ArchivedMemories::new(deps.tail.clone(), deps.memories.clone()),
            embedding: Condition::new("embedding memories", config),
            walk: Reembedding::new(config.renews_vectors),
            deps: deps.clone(),
        }
    }

    /// Embeds for as long as the archivist works.
    pub async fn keep(mut self) -> Infallible {
        loop {
            let wait = match self.round().await {
                Ok(wait) => {
                    self.embedding.works();
                    wait
                }
                Err(failure) => {
                    self.embedding.fails(&failure);
                    self.embedding.wait().unwrap_or_default()
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// A batch, or a few small ones that are no more together. Answers how soon the next round is due.
    async fn round(&mut self) -> Result<Duration, Failure> {
        let mut room = EMBEDDING_BATCH_MAX;
        for _ in 0..REEMBED_AGENTS_MAX {
            let embedder = self.deps.embedder.as_ref();
            let Some(done) = self.walk.go_on(self.deps.tail.as_ref(), &self.memories, embedder, room).await? else {
                return Ok(Duration::from_millis(REEMBED_REST_MS));
            };
            metrics::counter!(metric::MEMORIES_EMBEDDED).increment(done.embedded);
            room = room.saturating_sub(done.texts() as usize);
            if room == 0 {
                break;
            }
        }
        Ok(Duration::from_millis(REEMBED_INTERVAL_MS))
    }
}
