//! What an engine is made of.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::ports::Clock;
use domain::ports::library::ConversationStore;

use crate::error::EngineError;
use crate::history::{FullHistory, HistoryBuilder};
use crate::hooks::{Hooks, NoHooks};
use crate::ids::{Ids, SystemClock, UlidIds};
use crate::planner::TurnPlanner;
use crate::provider::ProviderAdapter;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultModel {
    /// Id of an adapter.
    pub provider: String,
    pub model: String,
}

/// All dependencies of a [`crate::ConversationEngine`].
#[derive(Clone)]
pub struct EngineConfig {
    /// Name of the agent of conversations that name none.
    pub default_agent: String,
    pub store: Arc<dyn ConversationStore>,
    /// Each with an id of its own.
    pub providers: Vec<Arc<dyn ProviderAdapter>>,
    /// For the default planner; the first is used unless a hint names another provider.
    pub default_models: Vec<DefaultModel>,
    pub history_builder: Arc<dyn HistoryBuilder>,
    /// Absent: the default models are used.
    pub planner: Option<Arc<dyn TurnPlanner>>,
    pub hooks: Arc<dyn Hooks>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

impl EngineConfig {
    /// The full history, no hooks, this machine's clock; no provider yet.
    pub fn new(default_agent: impl Into<String>, store: Arc<dyn ConversationStore>) -> Self {
        Self {
            default_agent: default_agent.into(),
            store,
            providers: Vec::new(),
            default_models: Vec::new(),
            history_builder: Arc::new(FullHistory::default()),
            planner: None,
            hooks: Arc::new(NoHooks),
            clock: Arc::new(SystemClock),
            ids: Arc::new(UlidIds),
        }
    }

    pub fn provider(mut self, adapter: Arc<dyn ProviderAdapter>) -> Self {
        self.providers.push(adapter);
        self
    }

    /// The default model of a provider.
    pub fn default_model(mut self, provider: impl Into<String>, model: impl Into<String>) -> Self {
        self.default_models.push(DefaultModel { provider: provider.into(), model: model.into() });
        self
    }

    pub fn history_builder(self, history_builder: Arc<dyn HistoryBuilder>) -> Self {
        Self { history_builder, ..self }
    }

    pub fn planner(self, planner: Arc<dyn TurnPlanner>) -> Self {
        Self { planner: Some(planner), ..self }
    }

    pub fn hooks(self, hooks: Arc<dyn Hooks>) -> Self {
        Self { hooks, ..self }
    }

    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    pub fn ids(self, ids: Arc<dyn Ids>) -> Self {
        Self { ids, ..self }
    }

    /// All that is wrong, at once.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let mut problems = Vec::new();
        let ids: BTreeSet<&str> = self.providers.iter().map(|adapter| adapter.id()).collect();
        if self.default_agent.is_empty() {
            problems.push("default_agent is empty: name the agent of conversations that name none".to_owned());
        }
        if ids.is_empty() {
            problems.push("there is no provider: add at least one adapter".to_owned());
        }
        if ids.len() < self.providers.len() {
            problems.push("two adapters have one id: every provider needs its own".to_owned());
        }
        for default in self.default_models.iter().filter(|default| !ids.contains(default.provider.as_str())) {
            problems.push(format!(
                "the default model {:?} is of {:?}, which has no adapter",
                default.model, default.provider
            ));
        }
        if self.planner.is_none() && self.default_models.is_empty() {
            problems.push("nothing says which model to ask: set a default model or a planner".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(EngineError::Invalid(problems.join("; "))) }
    }
}
