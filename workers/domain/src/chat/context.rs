//! What a call is made for. None of it is sent to the provider.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::profile::ModelTarget;
use super::request::ChatRequest;

/// One call of a model, complete: the performer has no choices left.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatCall {
    /// Id of the record. The same after a crash, another for every other call.
    pub id: String,
    pub target: ModelTarget,
    pub request: ChatRequest,
    pub context: CallContext,
    /// Not to be asked again where the request may have arrived: what the provider does for it may have an effect.
    pub once: bool,
}

/// Where a call belongs (SPEC C-PRV-06).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallContext {
    pub conversation_id: String,
    pub turn_id: String,
    /// Name of the agent.
    pub agent: String,
    /// The turn before, if this one goes on from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_class: Option<RequestClass>,
    /// The caller's notes, for logs and routing; kept on the record.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestClass {
    /// Somebody waits for it.
    Interactive,
    Background,
}

/// Who asks and why, for whatever observes outgoing requests (SPEC C-PRV-10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentContext {
    pub agent: String,
    /// `<conversation>:<turn>`; also the correlation id.
    pub run_id: String,
    /// `conversationId`, `turnId`, `provider`, `model`.
    pub labels: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl CallContext {
    /// `<conversation>:<turn>` (SPEC C-PRV-11).
    pub fn run_id(&self) -> String {
        format!("{}:{}", self.conversation_id, self.turn_id)
    }

    /// The run id of the turn before.
    pub fn parent_run_id(&self) -> Option<String> {
        self.parent_turn_id.as_ref().map(|turn| format!("{}:{turn}", self.conversation_id))
    }

    pub fn agent_context(&self, provider: &str, model: &str) -> AgentContext {
        let labels = [
            ("conversationId", self.conversation_id.as_str()),
            ("turnId", self.turn_id.as_str()),
            ("provider", provider),
            ("model", model),
        ];
        AgentContext {
            agent: self.agent.clone(),
            run_id: self.run_id(),
            labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect(),
            metadata: self.metadata.clone(),
        }
    }

    /// Keys that tell a request to a model from any other (SPEC C-PRV-12).
    pub fn extensions(&self, provider: &str, model: &str, streaming: bool) -> Map<String, Value> {
        let mut keys = Map::new();
        keys.insert("ai.provider".to_owned(), provider.into());
        keys.insert("ai.model".to_owned(), model.into());
        keys.insert("ai.request_type".to_owned(), "chat".into());
        keys.insert("ai.streaming".to_owned(), streaming.into());
        if let Some(class) = self.request_class {
            keys.insert("request.class".to_owned(), json!(class));
        }
        keys
    }
}
