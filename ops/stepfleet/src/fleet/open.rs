//! The adapters of one machine, opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use broker::{EmbeddedLive, EmbeddedQueue};
use domain::ports::{Archive, Clock, Effects, Live, Queue};
use history::LanceArchive;
use host::clock::SystemClock;
use host::config::{Config, ModelProfile};
use providers::{Performer, Profile, ProvidersConfig};
use store::{OpenOptions, SqliteStore};

/// What every role is wired to.
#[derive(Clone)]
pub struct Parts {
    pub store: SqliteStore,
    pub archive: Arc<dyn Archive>,
    pub queue: Arc<dyn Queue>,
    pub live: Arc<dyn Live>,
    pub effects: Arc<dyn Effects>,
    pub clock: Arc<dyn Clock>,
}

impl Parts {
    /// Opens ledger and archive, side by side.
    pub async fn open(config: &Config) -> Result<Self> {
        let effects = performer(config)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let options = OpenOptions { shards: config.shards, create: true, clock: clock.clone() };
        // The ledger first: if its file is foreign, nothing else is made in the directory.
        let store = SqliteStore::open(&config.database, options).await?;
        let archive = open_archive(config, true).await?;
        Ok(Self {
            store,
            archive: Arc::new(archive),
            queue: Arc::new(EmbeddedQueue::new()),
            live: Arc::new(EmbeddedLive::new()),
            effects,
            clock,
        })
    }
}

/// The ledger of an installation that is there already, without changing anything.
///
/// # Errors
/// There is none, or it cannot be used.
pub async fn open_existing_store(config: &Config) -> Result<SqliteStore> {
    if !config.database.is_file() {
        bail!(
            "there is no fleet in {}; start one with `stepfleet up`, or name its directory with --data-dir",
            config.data_dir.display()
        );
    }
    let options = OpenOptions { shards: config.shards, create: false, clock: Arc::new(SystemClock) };
    Ok(SqliteStore::open(&config.database, options).await?)
}

/// The archive of an installation that is there already.
///
/// # Errors
/// There is none, or it cannot be used.
pub async fn open_existing_archive(config: &Config) -> Result<LanceArchive> {
    if !config.history.is_dir() {
        bail!("there is no history in {}", config.history.display());
    }
    open_archive(config, false).await
}

async fn open_archive(config: &Config, create: bool) -> Result<LanceArchive> {
    let uri = config.history.to_str().context("the path of the history is not Unicode")?;
    Ok(LanceArchive::open(uri, history::OpenOptions { create, ..Default::default() }).await?)
}

fn performer(config: &Config) -> Result<Arc<dyn Effects>> {
    let mut profiles = BTreeMap::new();
    for (name, found) in &config.models {
        let ModelProfile { provider, model, base_url, max_tokens, api_key_env } = found.clone();
        profiles.insert(name.clone(), Profile { provider, model, base_url, max_tokens, api_key_env });
    }
    let mut settings = ProvidersConfig::from_env(|name| std::env::var(name).ok(), profiles);
    // These have been through the layers: file, environment, flags.
    settings.model = config.model.clone();
    settings.script = config.script.clone();
    settings.allow_private = config.allow_private;
    Ok(Arc::new(Performer::new(&settings)?))
}
