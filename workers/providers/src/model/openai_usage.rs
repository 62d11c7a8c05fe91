//! Tokens as OpenAI counts them: one shape in all its protocols, under two sets of names.

use domain::chat::Usage;
use serde_json::Value;

use super::json;

/// What the figures are called.
pub struct Names {
    input: &'static str,
    input_details: &'static str,
    output: &'static str,
    output_details: &'static str,
}

pub const CHAT: Names = Names {
    input: "prompt_tokens",
    input_details: "prompt_tokens_details",
    output: "completion_tokens",
    output_details: "completion_tokens_details",
};

pub const RESPONSES: Names = Names {
    input: "input_tokens",
    input_details: "input_tokens_details",
    output: "output_tokens",
    output_details: "output_tokens_details",
};

impl Names {
    /// `None` where there are no figures. A total that is not given is the sum.
    pub fn read(&self, value: &Value) -> Option<Usage> {
        value.as_object()?;
        let input = json::number(value, self.input);
        let output = json::number(value, self.output);
        let total = value["total_tokens"].as_u64().unwrap_or_else(|| input.saturating_add(output));
        Some(Usage {
            input_tokens: input,
            output_tokens: output,
            total_tokens: total,
            cached_input_tokens: json::number(&value[self.input_details], "cached_tokens"),
            cache_write_tokens: 0,
            reasoning_tokens: json::number(&value[self.output_details], "reasoning_tokens"),
            breakdown: Some(value.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_sets_of_names_say_the_same() {
        let chat = CHAT.read(&json!({"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 71,
            "prompt_tokens_details": {"cached_tokens": 30}, "completion_tokens_details": {"reasoning_tokens": 4}}));
        let responses = RESPONSES.read(&json!({"input_tokens": 50, "output_tokens": 20, "total_tokens": 71,
            "input_tokens_details": {"cached_tokens": 30}, "output_tokens_details": {"reasoning_tokens": 4}}));
        for (usage, name) in [(chat, "prompt_tokens"), (responses, "input_tokens")] {
            let usage = usage.expect("figures");
            assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (50, 20, 71));
            assert_eq!((usage.cached_input_tokens, usage.reasoning_tokens, usage.cache_write_tokens), (30, 4, 0));
            assert_eq!(usage.breakdown.expect("as it came")[name], 50);
        }
    }

    #[test]
    fn a_total_that_is_missing_is_the_sum_and_no_figures_are_none() {
        assert_eq!(CHAT.read(&json!({"prompt_tokens": 5, "completion_tokens": 3})).expect("figures").total_tokens, 8);
        assert_eq!(
            RESPONSES.read(&json!({"input_tokens": u64::MAX, "output_tokens": 3})).expect("figures").total_tokens,
            u64::MAX
        );
        assert_eq!((CHAT.read(&Value::Null), RESPONSES.read(&json!([1]))), (None, None));
        assert_eq!(CHAT.read(&json!({})).expect("an object").total_tokens, 0);
    }
}
