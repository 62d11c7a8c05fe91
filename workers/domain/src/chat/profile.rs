//! Which model is asked.

use std::collections::BTreeMap;

use schemas::definition;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    fn from(mut defined: definition::ModelProfile) -> Self {
        let given = defined.parameters;
        let headers = headers(defined.execution_config.remove("headers"));
        Self {
            provider: defined.provider,
            model: defined.model_id,
            parameters: Parameters {
                max_tokens: Some(u32::try_from(given.max_tokens).unwrap_or(u32::MAX)),
                temperature: given.temperature,
                top_p: given.top_p,
                stop_sequences: given.stop_sequences,
                headers,
                extra: defined.execution_config,
                ..Parameters::default()
            },
            prices: Prices::defined(defined.cost_per_1k_input_tokens, defined.cost_per_1k_output_tokens),
        }
    }
}

/// A profile that was stored before its headers were looked at may have anything there; what is no text is left out.
fn headers(given: Option<Value>) -> BTreeMap<String, String> {
    let Some(Value::Object(given)) = given else { return BTreeMap::new() };
    given.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect()
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
