//! What every handler shares.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use domain::ports::{
    Archive, Clock, Conversations, DeadLetters, Definitions, Effects, Embedder, Journal, Leases, Ledger, Live,
    Memories, Operations, Queue, Sessions, Tokens,
};
use host::secret::Secret;
use schemas::action::Action;
use schemas::definition::NamespaceBudget;
use schemas::id::Namespace;
use schemas::limits::STREAMS_MAX;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use ulid::Ulid;

use crate::api::health::HealthCache;
use crate::auth::Auth;
use crate::publisher::Publisher;

/// The ports behind the gateway, and its settings.
#[derive(Clone)]
pub struct Deps {
    pub ledger: Arc<dyn Ledger>,
    pub sessions: Arc<dyn Sessions>,
    pub journal: Arc<dyn Journal>,
    pub archive: Arc<dyn Archive>,
    pub leases: Arc<dyn Leases>,
    pub tokens: Arc<dyn Tokens>,
    pub definitions: Arc<dyn Definitions>,
    pub conversations: Arc<dyn Conversations>,
    pub operations: Arc<dyn Operations>,
    /// Read here; agents write them.
    pub memories: Arc<dyn Memories>,
    /// For what memories are searched for.
    pub embedder: Arc<dyn Embedder>,
    pub queue: Arc<dyn Queue>,
    pub dead: Arc<dyn DeadLetters>,
    pub live: Arc<dyn Live>,
    pub clock: Arc<dyn Clock>,
    /// Asked only which provider it uses.
    pub effects: Arc<dyn Effects>,
    /// Renders the metrics in the Prometheus text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub config: Config,
}

#[derive(Debug, Clone)]
pub struct Config {
    /// Accepted besides the stored tokens, with scope `admin` in the namespace `default`.
    pub admin_token: Option<Secret>,
    /// `embedded` or `fleet`, for `/health`.
    pub mode: String,
    pub version: String,
    /// What namespaces may use of models, to be told.
    pub budgets: BTreeMap<Namespace, NamespaceBudget>,
    /// Open streams at a time; at most `limits::STREAMS_MAX`.
    pub streams_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            admin_token: None,
            mode: "embedded".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            budgets: BTreeMap::new(),
            streams_max: STREAMS_MAX,
        }
    }
}

/// Cheap to clone; clones are the same gateway.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

pub struct Inner {
    deps: Deps,
    pub auth: Auth,
    pub publisher: Publisher,
    pub streams: Arc<Semaphore>,
    /// Cancelled when the process ends: streams send what they have and close.
    pub stop: CancellationToken,
    pub health: HealthCache,
}

impl Gateway {
    /// The other end of the publisher's channel goes to its task.
    pub fn new(deps: Deps, stop: CancellationToken) -> (Self, mpsc::Receiver<Action>) {
        let (publisher, accepted) = Publisher::new();
        let inner = Inner {
            auth: Auth::new(deps.tokens.clone(), deps.config.admin_token.as_ref()),
            publisher,
            streams: Arc::new(Semaphore::new(deps.config.streams_max.min(STREAMS_MAX))),
            stop,
            health: HealthCache::default(),
            deps,
        };
        (Self(Arc::new(inner)), accepted)
    }

    /// A fresh id; ids made later order later, to the millisecond.
    pub fn fresh_id<T: From<Ulid>>(&self) -> T {
        let since_epoch = Duration::from_millis(self.clock.now_ms().max(0) as u64);
        Ulid::from_datetime(UNIX_EPOCH + since_epoch).into()
    }
}

impl Deref for Gateway {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Deref for Inner {
    type Target = Deps;

    fn deref(&self) -> &Deps {
        &self.deps
    }
}
