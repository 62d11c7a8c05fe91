//! Which model is asked.

use schemas::definition;
use serde::{Deserialize, Serialize};

use super::request::Parameters;
use super::usage::Prices;

/// A model profile as a value: what a persona points to (SPEC 4.7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelProfile {
    /// `anthropic`, `openai`, `openai_responses`, `gemini` or `scripted`, `default` for the fleet's own
    /// default, or the name of a profile of the configuration, whose address and key are then used. A profile that is data of users
    /// names no address and no key: they would get an operator's key sent to them.
    pub provider: String,
    #[serde(alias = "model_id")]
    pub model: String,
    #[serde(default)]
    pub parameters: Parameters,
    #[serde(flatten)]
    pub prices: Prices,
}

impl From<definition::ModelProfile> for ModelProfile {
    fn from(defined: definition::ModelProfile) -> Self {
        let given = defined.parameters;
        Self {
            provider: defined.provider,
            model: defined.model_id,
            parameters: Parameters {
                max_tokens: Some(u32::try_from(given.max_tokens).unwrap_or(u32::MAX)),
                temperature: given.temperature,
                top_p: given.top_p,
                stop_sequences: given.stop_sequences,
                extra: defined.execution_config,
                ..Parameters::default()
            },
            prices: Prices::defined(defined.cost_per_1k_input_tokens, defined.cost_per_1k_output_tokens),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelTarget {
    /// The fleet's default.
    Default,
    /// A profile of the configuration, by name.
    Named(String),
    Profile(Box<ModelProfile>),
}
