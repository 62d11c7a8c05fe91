//! What an agent is made of. Everything is given to it; it makes nothing itself.

use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::{CallContext, Parameters, ToolCall, ToolResult, ToolSpec};
use domain::context::{ContextBudget, HistoryLimits, MemoryBlock};
use domain::failure::Failure;
use domain::ports::Clock;
use domain::ports::library::ConversationStore;
use schemas::limits::TOOL_ROUNDS_MAX;

use crate::compactor::Compactor;
use crate::error::EngineError;
use crate::hooks::{Hooks, NoHooks};
use crate::ids::{Ids, SystemClock, UlidIds};
use crate::provider::ProviderAdapter;

/// The blocks that an agent has in mind, and its archive.
#[async_trait]
pub trait AgentMemory: Send + Sync {
    /// Core and working blocks, in the order in which they are shown. Blocks of other tiers are not.
    ///
    /// # Errors
    /// The turn then fails: an agent that has forgotten who it is must not answer.
    async fn blocks(&self, agent: &str) -> Result<Vec<MemoryBlock>, Failure>;

    /// Keeps a text under a label, durably when it returns. The same label again replaces it.
    ///
    /// # Errors
    /// Nothing that this was to keep may then be dropped elsewhere.
    async fn archive(&self, agent: &str, label: &str, content: &str) -> Result<(), Failure>;
}

/// What the agent can do besides talking.
#[async_trait]
pub trait Tools: Send + Sync {
    fn specs(&self) -> Vec<ToolSpec>;

    /// Carries out a call of one of them. What goes wrong is a result that the model is told; retries
    /// are the tool's own business.
    async fn call(&self, call: &ToolCall, context: &CallContext) -> ToolResult;
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentSettings {
    /// Answers with calls of tools to one message, before one without must come.
    pub max_tool_rounds: u32,
    /// When old messages become summaries; of no effect without a compactor.
    pub budget: ContextBudget,
    /// What the model is shown at most.
    pub history: HistoryLimits,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self { max_tool_rounds: 20, budget: ContextBudget::default(), history: HistoryLimits::default() }
    }
}

impl AgentSettings {
    pub(super) fn check(&self) -> Result<(), EngineError> {
        self.budget.check().map_err(EngineError::Invalid)?;
        if self.max_tool_rounds > TOOL_ROUNDS_MAX {
            return Err(EngineError::Invalid(format!(
                "max_tool_rounds is {}, and {TOOL_ROUNDS_MAX} is the most",
                self.max_tool_rounds
            )));
        }
        Ok(())
    }
}

/// All dependencies of an agent. The store must be ready for use.
#[derive(Clone)]
pub struct AgentDeps {
    pub name: String,
    pub store: Arc<dyn ConversationStore>,
    pub provider: Arc<dyn ProviderAdapter>,
    pub model: String,
    pub parameters: Parameters,
    pub system_prompt: String,
    pub instructions: Option<String>,
    pub memory: Option<Arc<dyn AgentMemory>>,
    pub tools: Option<Arc<dyn Tools>>,
    /// Asks a model of its own; without one nothing is ever summarised.
    pub compactor: Option<Arc<dyn Compactor>>,
    pub settings: AgentSettings,
    pub hooks: Arc<dyn Hooks>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

impl AgentDeps {
    /// No tools, no memory, no compactor, no prompt yet.
    pub fn new(
        name: impl Into<String>,
        store: Arc<dyn ConversationStore>,
        provider: Arc<dyn ProviderAdapter>,
        model: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            store,
            provider,
            model: model.into(),
            parameters: Parameters::default(),
            system_prompt: String::new(),
            instructions: None,
            memory: None,
            tools: None,
            compactor: None,
            settings: AgentSettings::default(),
            hooks: Arc::new(NoHooks),
            clock: Arc::new(SystemClock),
            ids: Arc::new(UlidIds),
        }
    }
}
