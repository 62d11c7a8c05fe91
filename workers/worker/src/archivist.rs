//! The archivist role: moves history from the journal to the archive, in large batches, then trims
//! the journal (DESIGN 6); memories, and logs of conversations, likewise. Beside that it embeds memories
//! that lack a vector. Any number may run: one holds the role and works, the others stand by.

mod batch;
mod condition;
mod lightener;
mod memories;
mod pace;
mod reembedder;
mod role;
mod round;
mod transcripts;
mod trim;
mod vigil;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use domain::failure::Failure;
use domain::ports::{
    Archive, Clock, Embedder, Journal, Leases, Ledger, MemoryArchive, MemoryTail, TranscriptArchive, TranscriptTail,
};
use schemas::id::WorkerId;
use schemas::limits;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use condition::Condition;
use lightener::Lightener;
use memories::Mover;
use round::{Marks, Round};
use transcripts::Copier;
use trim::Trimmer;

/// The ports of an archivist, and who it is among those that could hold the role.
#[derive(Clone)]
pub struct ArchivistDeps {
    pub worker: WorkerId,
    pub leases: Arc<dyn Leases>,
    pub journal: Arc<dyn Journal>,
    pub archive: Arc<dyn Archive>,
    pub tail: Arc<dyn MemoryTail>,
    pub memories: Arc<dyn MemoryArchive>,
    pub embedder: Arc<dyn Embedder>,
    pub transcripts: Arc<dyn TranscriptTail>,
    pub records: Arc<dyn TranscriptArchive>,
    pub ledger: Arc<dyn Ledger>,
    pub clock: Arc<dyn Clock>,
}

/// Settings of an archivist. Times in milliseconds.
#[derive(Debug, Clone)]
pub struct ArchivistConfig {
    /// Longest that a row waits while the archive works; a full batch does not wait.
    pub interval_ms: u64,
    pub rows_max: usize,
    pub bytes_max: usize,
    /// Archived journal rows stay readable this long.
    pub grace_ms: u64,
    /// A reader's view of the archive may be this old.
    pub reader_lag_ms: u64,
    /// How often compaction and its kin are considered.
    pub maintain_ms: u64,
    /// How often the journal and the ledger are trimmed.
    pub trim_ms: u64,
    /// Processed actions are recognised as repeats for this long.
    pub ledger_retention_ms: u64,
    /// What models and tools made of turns has its bodies in the database for this long.
    pub records_whole_ms: u64,
    /// Nobody who has just taken the role lets go of them before this time has passed.
    pub lighten_after_ms: u64,
    /// Memories with vectors of another model than the embedder's get new ones; those without one do in any case.
    pub renews_vectors: bool,
    /// Longest wait between two attempts while something fails.
    pub backoff_max_ms: u64,
    /// How long the role is held without being renewed, and how often it is renewed or tried for.
    pub lease_ms: u64,
    pub renew_ms: u64,
}

impl Default for ArchivistConfig {
    fn default() -> Self {
        Self {
            interval_ms: limits::ARCHIVE_INTERVAL_MS,
            rows_max: limits::ARCHIVE_ROWS_MAX,
            bytes_max: limits::ARCHIVE_BYTES_MAX,
            grace_ms: limits::JOURNAL_GRACE_MS,
            reader_lag_ms: 2 * limits::READ_CONSISTENCY_MS,
            maintain_ms: 5_000,
            trim_ms: 2_000,
            ledger_retention_ms: limits::LEDGER_RETENTION_MS,
            records_whole_ms: limits::RECORDS_WHOLE_MS,
            lighten_after_ms: limits::RECORDS_LIGHTEN_AFTER_MS,
            renews_vectors: false,
            backoff_max_ms: 30_000,
            lease_ms: limits::ROLE_LEASE_MS,
            renew_ms: limits::ROLE_RENEW_MS,
        }
    }
}

/// A running archivist. Dropping it without [`Archivist::stop`] is [`Archivist::kill`].
pub struct Archivist {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Archivist {
    /// Starts to archive, in the background, whenever it holds the role.
    pub fn start(deps: ArchivistDeps, config: ArchivistConfig) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(role::serve(deps, config, stop.clone()));
        Self { stop, task: Some(task) }
    }

    /// Finishes the batch at hand, gives the role back, and ends. What still waits is durable in the
    /// journal.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
            && error.is_panic()
        {
            tracing::error!("the archivist panicked");
        }
    }

    /// Ends at once, as a crash would.
    pub fn kill(mut self) {
        self.abort();
    }

    fn abort(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl Drop for Archivist {
    fn drop(&mut self) {
        self.abort();
    }
}

struct Loop {
    deps: ArchivistDeps,
    config: ArchivistConfig,
    marks: Option<Marks>,
    trimmer: Trimmer,
    mover: Mover,
    copier: Copier,
    lightener: Lightener,
    archiving: Condition,
    trimming: Condition,
    upkeep: Condition,
    maintained: Instant,
    trimmed: Instant,
    /// Since when it is at work; `None` while it rests.
    turn: watch::Sender<Option<Instant>>,
}

impl Loop {
    fn new(deps: ArchivistDeps, config: ArchivistConfig) -> Self {
        let now = Instant::now();
        Self {
            trimmer: Trimmer::new(&config),
            mover: Mover::new(&config),
            copier: Copier::new(&config),
            lightener: Lightener::new(&config),
            archiving: Condition::new("archiving history", &config),
            trimming: Condition::new("trimming the journal", &config),
            upkeep: Condition::new("maintaining the archive", &config),
            deps,
            config,
            marks: None,
            maintained: now,
            trimmed: now,
            turn: watch::Sender::new(None),
        }
    }

    fn turns(&self) -> watch::Receiver<Option<Instant>> {
        self.turn.subscribe()
    }

    async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.turn.send_replace(Some(Instant::now()));
            let full = self.archive().await;
            let full = full && self.archiving.is_well();
            let more = self.copy().await;
            self.trim().await;
            self.maintain().await;
            if full || more {
                continue;
            }
            self.turn.send_replace(None);
            let wait = self.archiving.wait().unwrap_or(Duration::from_millis(self.config.interval_ms));
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// A batch of everything else. Answers whether more waits.
    async fn copy(&mut self) -> bool {
        // A database that is older than the archive must not be taken for newer by what it holds.
        if self.marks.is_none() {
            return false;
        }
        let mut more = self.mover.turn(&self.deps).await;
        more |= self.copier.turn(&self.deps).await;
        more | self.lightener.turn(&self.deps).await
    }

    /// One batch. Answers whether more waits that would fill another one.
    async fn archive(&mut self) -> bool {
        match self.try_archive().await {
            Ok(full) => {
                self.archiving.works();
                full
            }
            Err(failure) => {
                // What the archive has is not known any more.
                self.marks = None;
                self.archiving.fails(&failure);
                false
            }
        }
    }

    async fn try_archive(&mut self) -> Result<bool, Failure> {
        let marks = match &mut self.marks {
            Some(marks) => marks,
            unknown => {
                // What was appended last, by whom and when, nobody knows.
                self.trimmer.hold(i64::MIN);
                unknown.insert(Marks::reconcile(&self.deps).await?)
            }
        };
        let round = Round::collect(&self.deps, &self.config, marks).await?;
        let Some(oldest_ms) = round.oldest_ms() else { return Ok(false) };
        let full = round.is_full();
        let done = round.archive(&self.deps, marks).await;
        // Held until every reader sees them in the archive.
        self.trimmer.hold(oldest_ms);
        done.map(|()| full)
    }

    async fn trim(&mut self) {
        // While nobody knows what the archive has, the journal keeps what it has.
        let is_due = self.trimmed.elapsed() >= Duration::from_millis(self.config.trim_ms);
        if self.marks.is_none() || !is_due || self.trimming.is_waiting() {
            return;
        }
        self.trimmed = Instant::now();
        match self.trimmer.trim(&self.deps).await {
            Ok(()) => self.trimming.works(),
            Err(failure) => self.trimming.fails(&failure),
        }
    }

    async fn maintain(&mut self) {
        if self.maintained.elapsed() < Duration::from_millis(self.config.maintain_ms) || self.upkeep.is_waiting() {
            return;
        }
        match self.deps.archive.maintain().await {
            Ok(()) => self.upkeep.works(),
            Err(failure) => self.upkeep.fails(&failure),
        }
        self.maintained = Instant::now();
    }
}
