//! Which model, with which parameters, at what price.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::id::DefinitionId;

/// A choice of model that personas share. It is updated in place: another model takes effect
/// without a new version of any persona (SPEC W-PER-06). Keys of providers are never part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelProfile {
    pub id: DefinitionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Name of a configured provider, as in `anthropic`, `openai`, `gemini`, `scripted`; `default` for
    /// whatever the fleet was started with.
    pub provider: String,
    /// The provider's own name of the model; of `default`, `default` is the model it was started with.
    pub model_id: String,
    #[serde(default)]
    pub parameters: ModelParameters,
    /// Further fields of the provider's request body, passed on as they are; but `headers`, an object of texts, are
    /// headers beside the body: `anthropic-beta` and `openai-beta`, no others, at most 1024 bytes each.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub execution_config: Map<String, Value>,
    /// Size of the context window, tokens.
    #[serde(default = "model_max_tokens")]
    pub model_max_tokens: u64,
    /// Price of 1000 tokens, in the currency of the operator's choice. If both prices are 0, none is given.
    #[serde(default)]
    pub cost_per_1k_input_tokens: f64,
    #[serde(default)]
    pub cost_per_1k_output_tokens: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelParameters {
    /// From 0 to 2; the provider's own default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Longest answer, tokens.
    #[serde(default = "max_tokens")]
    pub max_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
}

impl Default for ModelParameters {
    fn default() -> Self {
        Self { temperature: None, max_tokens: max_tokens(), top_p: None, stop_sequences: Vec::new() }
    }
}

fn model_max_tokens() -> u64 {
    200_000
}

fn max_tokens() -> u64 {
    4_096
}
