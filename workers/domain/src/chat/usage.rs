//! Tokens and what they cost.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens of one call (SPEC C-PRV-07).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// All input, whether read from the provider's cache or not.
    pub input_tokens: u64,
    /// All output, thoughts included.
    pub output_tokens: u64,
    pub total_tokens: u64,
    /// Of the input: read from the provider's cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Of the input: written to the provider's cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Of the output: thoughts.
    #[serde(default)]
    pub reasoning_tokens: u64,
    /// The provider's own figures, as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Value>,
}

impl Usage {
    /// Both together. Figures of different calls have no sum that means anything: the providers' own are left out.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(other.cached_input_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            breakdown: None,
        }
    }
}

/// What a model costs, per 1,000 tokens, in the operator's currency. Absent ones are not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_1k_input_tokens: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_1k_output_tokens: Option<f64>,
    /// Of input that the provider had in its cache; like other input when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_1k_cached_input_tokens: Option<f64>,
    /// Of input that the provider put into its cache; like other input when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_1k_cache_write_tokens: Option<f64>,
}

impl Prices {
    /// The prices of a definition, where one that is left out is 0. If both are, nobody filled them in, and they are
    /// not known: a price of nothing would let no budget bind.
    pub fn defined(input: f64, output: f64) -> Self {
        if input <= 0.0 && output <= 0.0 {
            return Self::default();
        }
        Self { cost_per_1k_input_tokens: Some(input), cost_per_1k_output_tokens: Some(output), ..Self::default() }
    }

    /// The cost of a call; `None` unless the prices of both input and output are known.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let (input, output) = (self.cost_per_1k_input_tokens?, self.cost_per_1k_output_tokens?);
        let cached = usage.cached_input_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - cached);
        let fresh = usage.input_tokens - cached - written;
        let thousandths = fresh as f64 * input
            + cached as f64 * self.cost_per_1k_cached_input_tokens.unwrap_or(input)
            + written as f64 * self.cost_per_1k_cache_write_tokens.unwrap_or(input)
            + usage.output_tokens as f64 * output;
        Some(thousandths / 1_000.0)
    }

    /// What must not be given as a price.
    ///
    /// # Errors
    /// The name of a price that is negative or no number.
    pub fn check(&self) -> Result<(), String> {
        let all = [
            ("cost_per_1k_input_tokens", self.cost_per_1k_input_tokens),
            ("cost_per_1k_output_tokens", self.cost_per_1k_output_tokens),
            ("cost_per_1k_cached_input_tokens", self.cost_per_1k_cached_input_tokens),
            ("cost_per_1k_cache_write_tokens", self.cost_per_1k_cache_write_tokens),
        ];
        let bad = |price: Option<f64>| price.is_some_and(|price| !price.is_finite() || price < 0.0);
        match all.iter().find(|(_, price)| bad(*price)) {
            Some((name, _)) => Err(format!("{name} must be a number of at least 0")),
            None => Ok(()),
        }
    }
}
