//! Which provider and model handle a turn.

use async_trait::async_trait;
use domain::chat::{Parameters, ToolSpec};
use domain::context::{Conversation, ConversationMessage, TurnError};
use schemas::problem::Code;
use serde_json::{Map, Value};

use crate::config::DefaultModel;

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    pub conversation: &'a Conversation,
    /// Oldest first.
    pub messages: &'a [ConversationMessage],
    /// Name of the agent that handles the turn.
    pub agent: &'a str,
    /// The caller's wishes.
    pub hints: &'a Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannedTurn {
    /// Id of one of the engine's adapters.
    pub provider: String,
    pub model: String,
    pub parameters: Parameters,
    /// Offered to the model. Its calls are among the outputs; the engine carries out none.
    pub tools: Vec<ToolSpec>,
}

#[async_trait]
pub trait TurnPlanner: Send + Sync {
    /// # Errors
    /// The turn then fails with this.
    async fn plan_turn(&self, input: PlanInput<'_>) -> Result<PlannedTurn, TurnError>;
}

/// The first of the default models; that of another provider if the hint `provider` names one. The
/// hint `model` replaces the model.
#[derive(Debug, Clone, Default)]
pub struct DefaultPlanner {
    models: Vec<DefaultModel>,
}

impl DefaultPlanner {
    pub fn new(models: Vec<DefaultModel>) -> Self {
        Self { models }
    }
}

#[async_trait]
impl TurnPlanner for DefaultPlanner {
    async fn plan_turn(&self, input: PlanInput<'_>) -> Result<PlannedTurn, TurnError> {
        let hint = |name: &str| input.hints.get(name).and_then(Value::as_str);
        let wanted = hint("provider");
        let found = self.models.iter().find(|one| wanted.is_none_or(|wanted| one.provider == wanted));
        let Some(default) = found else {
            let known: Vec<&str> = self.models.iter().map(|one| one.provider.as_str()).collect();
            let message = format!(
                "there is no default model for provider {:?}; there are some for: {}",
                wanted.unwrap_or_default(),
                known.join(", ")
            );
            return Err(TurnError::new(Code::ProviderMissing.as_str(), message));
        };
        Ok(PlannedTurn {
            provider: default.provider.clone(),
            model: hint("model").unwrap_or(&default.model).to_owned(),
            ..PlannedTurn::default()
        })
    }
}
