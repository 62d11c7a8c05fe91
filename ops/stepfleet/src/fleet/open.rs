//! The adapters of a process, opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Error, Result, bail};
use broker::{EmbeddedLive, EmbeddedQueue, Rabbit};
use domain::failure::Failure;
use domain::ports::{
    Archive, Clock, DeadLetters, Effects, Embedder, Live, Memories, MemoryArchive, Models, Queue, TaskQueue,
    TranscriptArchive,
};
use domain::read::ArchivedConversations;
use domain::recall::ArchivedMemories;
use domain::verify::common_past;
use history::LanceArchive;
use host::clock::{FleetClock, SystemClock};
use host::config::{Config, History, ModelProfile};
use providers::{EmbeddingConfig, EmbeddingSettings, Performer, Profile, ProvidersConfig};
use tokio_util::sync::CancellationToken;
use worker::talk::{TalkDeps, Talking};

use super::await_services::when_ready;
use super::store::{Schema, Store};

/// What every role is wired to.
#[derive(Clone)]
pub struct Parts {
    pub store: Store,
    pub archive: Arc<dyn Archive>,
    pub memory_archive: Arc<dyn MemoryArchive>,
    pub records: Arc<dyn TranscriptArchive>,
    pub memories: Arc<dyn Memories>,
    pub queue: Arc<dyn Queue>,
    pub dead: Arc<dyn DeadLetters>,
    /// Where tasks for workers of others go; nowhere without a broker.
    pub tasks: Option<Arc<dyn TaskQueue>>,
    pub live: Arc<dyn Live>,
    pub effects: Arc<dyn Effects>,
    pub models: Arc<dyn Models>,
    pub embedder: Arc<dyn Embedder>,
    /// Whether addresses that users bring may be loopback or private ones.
    pub allow_private: bool,
    pub clock: Arc<dyn Clock>,
    /// The same, if it is to be kept in step with a shared database.
    pub fleet_clock: Option<Arc<FleetClock>>,
}

impl Parts {
    /// Opens everything. A shared database and a bucket are waited for, and `tell` hears of it; the broker
    /// is not: accepting and running go on without it.
    ///
    /// # Errors
    /// Something cannot be opened, and waiting would not help.
    pub async fn open(config: &Config, allow_private: bool, stop: &CancellationToken, tell: Tell<'_>) -> Result<Self> {
        let (performer, embedder) = outbound(config, allow_private).await?;
        let fleet_clock = config.database.is_shared().then(|| Arc::new(FleetClock::start()));
        let clock: Arc<dyn Clock> = match &fleet_clock {
            Some(clock) => clock.clone(),
            None => Arc::new(SystemClock),
        };
        // A shared database is migrated by one command, for all; the file of one process by itself.
        let schema = if config.database.is_shared() { Schema::Check } else { Schema::Migrate };
        // The ledger first: if its file is foreign, nothing else is made in the directory.
        let open = async || Store::open(config, schema, clock.clone()).await;
        let mut store = awaited("database", stop, tell, store_may_come, open).await?;
        // Before anything is stamped; later looks correct this one.
        if let Some(clock) = &fleet_clock
            && let Ok(ahead_ms) = store.clock_offset_ms().await
        {
            clock.shift(ahead_ms);
        }
        let open = async || open_archive(config, true).await;
        let archive = Arc::new(awaited("history", stop, tell, archive_may_come, open).await?);
        // Without its history, a session would be lost without a word. Either of the two may be away again by now.
        let compare = async || -> Result<()> {
            common_past(archive.as_ref(), store.journal.as_ref()).await?;
            Ok(())
        };
        awaited("history", stop, tell, failure_may_pass, compare).await?;
        let memories = Arc::new(ArchivedMemories::new(store.tail.clone(), archive.clone()));
        store.conversations = Arc::new(ArchivedConversations::new(store.conversations, archive.clone()));
        let shards = store.leases.shard_count().await?;
        let (queue, dead, live, tasks) = carriers(config, shards)?;
        let effects = Arc::new(Talking::new(
            TalkDeps {
                conversations: store.conversations.clone(),
                sessions: store.sessions.clone(),
                definitions: store.definitions.clone(),
                models: performer.clone(),
                memories: memories.clone(),
                embedder: embedder.clone(),
                live: live.clone(),
                clock: clock.clone(),
                ends: Arc::default(),
                budgets: config.budgets.clone(),
            },
            performer.clone(),
        ));
        let models = performer;
        Ok(Self {
            store,
            memory_archive: archive.clone(),
            records: archive.clone(),
            archive,
            memories,
            queue,
            dead,
            tasks,
            live,
            effects,
            models,
            embedder,
            allow_private,
            clock,
            fleet_clock,
        })
    }
}

/// Hears what is waited for, and why.
type Tell<'a> = &'a (dyn Fn(&str) + Sync);

/// What is opened, once it can be.
async fn awaited<T>(
    what: &str,
    stop: &CancellationToken,
    tell: Tell<'_>,
    may_come: impl Fn(&Error) -> bool,
    mut open: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    tell(what);
    let attempt = async || open().await.inspect_err(|error| tell(&format!("{what}: {error:#}")));
    when_ready(what, stop, may_come, attempt).await
}

type Carriers = (Arc<dyn Queue>, Arc<dyn DeadLetters>, Arc<dyn Live>, Option<Arc<dyn TaskQueue>>);

fn carriers(config: &Config, shards: u16) -> Result<Carriers> {
    let Some(url) = &config.amqp else {
        let queue = Arc::new(EmbeddedQueue::new());
        return Ok((queue.clone(), queue, Arc::new(EmbeddedLive::new()), None));
    };
    let rabbit = Rabbit::start(url.expose(), shards)?;
    Ok((rabbit.queue(), rabbit.dead_letters(), rabbit.live(), Some(rabbit.tasks())))
}

/// Whether a database that cannot be opened may be there later.
pub fn store_may_come(error: &Error) -> bool {
    error.downcast_ref::<store::OpenError>().is_some_and(store::OpenError::may_pass)
}

fn archive_may_come(error: &Error) -> bool {
    error.downcast_ref::<history::OpenError>().is_some_and(history::OpenError::may_pass)
}

/// Whether what a service that was opened answers may be another thing later.
fn failure_may_pass(error: &Error) -> bool {
    error.downcast_ref::<Failure>().is_some_and(|failure| failure.retriable)
}

/// The store of an installation that is there already, without changing anything.
///
/// # Errors
/// There is none, or it cannot be used.
pub async fn open_existing_store(config: &Config) -> Result<Store> {
    Store::open(config, Schema::Check, Arc::new(SystemClock)).await
}

/// The archive of an installation that is there already.
///
/// # Errors
/// There is none, or it cannot be used.
pub async fn open_existing_archive(config: &Config) -> Result<LanceArchive> {
    if let History::Directory(path) = &config.history
        && !path.is_dir()
    {
        bail!("there is no history in {}", path.display());
    }
    open_archive(config, false).await
}

async fn open_archive(config: &Config, create: bool) -> Result<LanceArchive> {
    let uri = config.history.to_string();
    Ok(LanceArchive::open(&uri, history::OpenOptions { create, ..Default::default() }).await?)
}

async fn outbound(config: &Config, allow_private: bool) -> Result<(Arc<Performer>, Arc<dyn Embedder>)> {
    let mut profiles = BTreeMap::new();
    for (name, found) in &config.models {
        let ModelProfile { provider, model, base_url, max_tokens, api_key_env, api_key_file, parameters, prices } =
            found.clone();
        let profile = Profile { provider, model, base_url, max_tokens, api_key_env, api_key_file, parameters, prices };
        profiles.insert(name.clone(), profile);
    }
    let mut settings = ProvidersConfig::from_env(|name| std::env::var(name).ok(), profiles);
    // These have been through the layers: file, environment, flags.
    settings.model = config.model.clone();
    settings.script = config.script.clone();
    settings.allow_private = allow_private;
    settings.embedding = embedding(config);
    providers::name_model(&mut settings).await;
    let embedder = providers::embedder(&settings)?;
    Ok((Arc::new(Performer::new(&settings)?), embedder))
}

/// What makes the vectors of memory search.
fn embedding(config: &Config) -> EmbeddingConfig {
    let section = config.embedding.clone().map(|found| {
        let host::config::Embedding { provider, model, base_url, api_key_env, api_key_file, dimensions, .. } = found;
        EmbeddingSettings { provider, model, base_url, api_key_env, api_key_file, dimensions }
    });
    EmbeddingConfig::from_env(|name| std::env::var(name).ok(), section)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_service_that_goes_away_again_is_waited_for_and_a_history_that_is_missing_is_not() {
        let (stop, told) = (CancellationToken::new(), Mutex::new(Vec::new()));
        let tell = |what: &str| told.lock().unwrap().push(what.to_owned());
        let mut attempts = 0;
        let compare = async || -> Result<i32> {
            attempts += 1;
            match attempts {
                1 => Err(Failure::unavailable("the bucket does not answer").into()),
                _ => Ok(attempts),
            }
        };
        assert_eq!(awaited("history", &stop, &tell, failure_may_pass, compare).await.unwrap(), 2);
        assert_eq!(*told.lock().unwrap(), ["history", "history: unavailable: the bucket does not answer"]);
        let compare = async || -> Result<()> { Err(Failure::internal("history is missing").into()) };
        let error = awaited("history", &stop, &tell, failure_may_pass, compare).await.unwrap_err();
        assert_eq!(error.to_string(), "internal: history is missing");
    }
}
