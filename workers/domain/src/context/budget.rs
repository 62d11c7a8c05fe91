//! How full a model's window may get before old messages become summaries (SPEC A-CMP-01).

use serde::{Deserialize, Serialize};

/// A part of a model's window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ContextBudget {
    /// Of the window: above 0, at most 1.
    pub context_budget: f64,
    /// The window, tokens.
    pub model_max_tokens: u64,
}

impl Default for ContextBudget {
    fn default() -> Self {
        Self { context_budget: 0.8, model_max_tokens: 200_000 }
    }
}

impl ContextBudget {
    /// Whole tokens that fit: `context_budget × model_max_tokens`.
    pub fn tokens(&self) -> u64 {
        // 0.29 × 100 is 28.999… in binary: a product within a millionth of a whole number is meant
        // to be that number.
        let product = self.context_budget * self.model_max_tokens as f64 + 1e-6;
        product.max(0.0).floor() as u64
    }

    /// # Errors
    /// What is wrong with it, and what to set.
    pub fn check(&self) -> Result<(), String> {
        let share = self.context_budget;
        if !(share > 0.0 && share <= 1.0) {
            return Err(format!("context_budget must be above 0 and at most 1, and is {share}"));
        }
        if self.model_max_tokens == 0 {
            return Err("model_max_tokens must be at least 1: the size of the model's window in tokens".to_owned());
        }
        Ok(())
    }
}

/// Whether a request of so many tokens is beyond the budget. One that just fits is not.
pub fn should_compress(estimated_tokens: u64, budget: &ContextBudget) -> bool {
    estimated_tokens > budget.tokens()
}
