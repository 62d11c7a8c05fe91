//! What the agent's model is shown, and which model that is.

use std::sync::Arc;

use async_trait::async_trait;
use domain::chat::{Message, Parameters, Role, ToolChoice, ToolSpec};
use domain::context::{HistoryLimits, TurnError, build_history, build_messages, build_system_prompt};
use serde_json::{Value, json};

use super::deps::{AgentDeps, AgentMemory, Tools};
use super::rounds::COMPACT_CONTEXT;
use crate::config::EngineConfig;
use crate::history::{HistoryBuilder, HistoryContext};
use crate::planner::{PlanInput, PlannedTurn, TurnPlanner};

/// Hint: the model must answer without calling tools.
pub const NO_TOOLS: &str = "no_tools";

pub struct AgentView {
    system_prompt: String,
    instructions: Option<String>,
    memory: Option<Arc<dyn AgentMemory>>,
    toolbox: Option<Arc<dyn Tools>>,
    can_compact: bool,
    limits: HistoryLimits,
    provider: String,
    model: String,
    parameters: Parameters,
}

/// An engine with one provider, whose requests are as the agent sees things.
pub fn engine_config(deps: &AgentDeps, view: &Arc<AgentView>) -> EngineConfig {
    let config = EngineConfig::new(&deps.name, Arc::clone(&deps.store))
        .provider(Arc::clone(&deps.provider))
        .history_builder(Arc::<AgentView>::clone(view))
        .planner(Arc::<AgentView>::clone(view))
        .hooks(Arc::clone(&deps.hooks));
    config.clock(Arc::clone(&deps.clock)).ids(Arc::clone(&deps.ids))
}

impl AgentView {
    pub fn new(deps: &AgentDeps) -> Self {
        Self {
            system_prompt: deps.system_prompt.clone(),
            instructions: deps.instructions.clone(),
            memory: deps.memory.clone(),
            toolbox: deps.tools.clone(),
            can_compact: deps.compactor.is_some(),
            limits: deps.settings.history,
            provider: deps.provider.id().to_owned(),
            model: deps.model.clone(),
            parameters: deps.parameters.clone(),
        }
    }

    pub fn toolbox(&self) -> Option<&Arc<dyn Tools>> {
        self.toolbox.as_ref()
    }

    /// What the model is offered.
    pub fn tools(&self) -> Vec<ToolSpec> {
        let mut specs = self.toolbox.as_ref().map_or_else(Vec::new, |tools| tools.specs());
        if self.can_compact {
            specs.push(ToolSpec {
                name: COMPACT_CONTEXT.to_owned(),
                description: "Replaces the older part of this conversation by a summary. Use it when the \
                              conversation is long and its details do not matter any more."
                    .to_owned(),
                input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
            });
        }
        specs
    }
}

#[async_trait]
impl HistoryBuilder for AgentView {
    async fn build_history(&self, context: HistoryContext<'_>) -> Result<Vec<Message>, TurnError> {
        let blocks = match &self.memory {
            None => Vec::new(),
            Some(memory) => memory.blocks(context.agent).await.map_err(|failure| {
                TurnError::new(failure.code.as_str(), format!("the memory cannot be read: {}", failure.message))
            })?,
        };
        let system = build_system_prompt(&self.system_prompt, self.instructions.as_deref(), &blocks);
        let mut messages = Vec::new();
        if !system.is_empty() {
            messages.push(Message::text(Role::System, system));
        }
        messages.extend(build_messages(&blocks, &build_history(context.messages, &self.limits)));
        Ok(messages)
    }
}

#[async_trait]
impl TurnPlanner for AgentView {
    async fn plan_turn(&self, input: PlanInput<'_>) -> Result<PlannedTurn, TurnError> {
        let tools = self.tools();
        let mut parameters = self.parameters.clone();
        // They stay in sight: providers refuse a history with calls of tools that are not offered.
        if !tools.is_empty() && input.hints.get(NO_TOOLS) == Some(&Value::Bool(true)) {
            parameters.tool_choice = Some(ToolChoice::None);
        }
        Ok(PlannedTurn { provider: self.provider.clone(), model: self.model.clone(), parameters, tools })
    }
}
