//! What turns, sessions and namespaces may use. A budget that is used up asks a person; it fails nobody.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a turn and its session may use. What is absent has no bound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Budgets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_turn: Option<u64>,
    /// By the prices of the model profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_per_turn: Option<f64>,
    /// From the acceptance of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds_per_turn: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_session: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_per_session: Option<f64>,
    /// Replies of models, and calls of models by its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_moves_per_session: Option<u64>,
    /// From the acceptance of its first input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds_per_session: Option<u64>,
    /// Agents that call one another: 1 may call, and whom it calls may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u64>,
}

impl Budgets {
    /// Of each bound, the smaller one.
    pub fn within(&self, other: &Self) -> Self {
        fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(if other < one { other } else { one }),
                (one, other) => one.or(other),
            }
        }
        Self {
            max_tokens_per_turn: least(self.max_tokens_per_turn, other.max_tokens_per_turn),
            max_cost_per_turn: least(self.max_cost_per_turn, other.max_cost_per_turn),
            max_seconds_per_turn: least(self.max_seconds_per_turn, other.max_seconds_per_turn),
            max_tokens_per_session: least(self.max_tokens_per_session, other.max_tokens_per_session),
            max_cost_per_session: least(self.max_cost_per_session, other.max_cost_per_session),
            max_moves_per_session: least(self.max_moves_per_session, other.max_moves_per_session),
            max_seconds_per_session: least(self.max_seconds_per_session, other.max_seconds_per_session),
            max_depth: least(self.max_depth, other.max_depth),
        }
    }
}

/// What a namespace may use for good, `[budgets.<namespace>]` in `stepfleet.toml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamespaceBudget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Calls of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_moves: Option<u64>,
    /// What any one of its turns and sessions may use, whatever personas say.
    #[serde(default)]
    pub each: Budgets,
}
