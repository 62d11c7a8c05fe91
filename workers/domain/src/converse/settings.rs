//! The `config` of a conversing session. All of it may be absent: an agent's definition says the
//! rest, and without one there are defaults.

use schemas::conversation::Busy;
use schemas::definition::{Budgets, PersonaBody};
use schemas::limits::{ENTRIES_MAX, NAME_BYTES_MAX, PROMPT_BYTES_MAX};
use schemas::problem::FieldProblem;
use schemas::session::SessionSpec;
use serde::{Deserialize, Serialize};

use crate::moniker::settings::Settings as Config;
use crate::spending::NANOS;

/// Agents that call agents that call agents: no deeper than this.
pub const DEPTH_MAX: u64 = 8;
/// Bound of `max_moves_per_turn`.
const MOVES_MAX: u64 = 1_000;
const RECENT_TURNS_MAX: u64 = 200;
/// Bound of what a caller leaves.
pub(super) const LEFT_MAX: u64 = u64::MAX >> 1;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The create action's `task`: what the agent is here for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Name of a configured profile, or id of a model profile that is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_profile: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_moves_per_turn: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recent_turns_limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_turn: Option<u64>,
    /// What becomes of a message while a turn is active, unless the message says so itself; instead of what the
    /// persona says. The gateway reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
    /// The session ends with its first turn: how delegated work runs.
    #[serde(default)]
    pub single_turn: bool,
    /// How many agents called one another before this one.
    #[serde(default)]
    pub depth: u64,
    /// What the caller's budgets had left when it called: the session may use no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_left: Option<u64>,
    /// In billionths of the operator's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanos_left: Option<u64>,
}

impl Settings {
    pub fn of(spec: &SessionSpec) -> Self {
        let mut config = Config::of(spec);
        let mut settings = read(&mut config);
        settings.task.clone_from(&spec.task);
        settings
    }

    /// What overrides the persona.
    pub fn apply_to(&self, persona: &mut PersonaBody) {
        if let Some(prompt) = &self.system_prompt {
            persona.system_prompt.clone_from(prompt);
        }
        if let Some(task) = &self.task {
            let instructions = persona.instructions.take();
            persona.instructions = Some(match instructions {
                Some(before) => format!("{before}\n\n{task}"),
                None => task.clone(),
            });
        }
        if let Some(max) = self.max_moves_per_turn {
            persona.constraints.max_moves_per_turn = u32::try_from(max).unwrap_or(u32::MAX);
        }
        if let Some(limit) = self.recent_turns_limit {
            persona.recent_turns_limit = u32::try_from(limit).unwrap_or(u32::MAX);
        }
        if let Some(tokens) = self.max_tokens_per_turn {
            persona.constraints.budgets.get_or_insert_default().max_tokens_per_turn = Some(tokens);
        }
        let left = Budgets {
            max_tokens_per_session: self.tokens_left,
            max_cost_per_session: self.cost_nanos_left.map(|nanos| nanos as f64 / NANOS),
            ..Budgets::default()
        };
        if left != Budgets::default() {
            let budgets = persona.constraints.budgets.get_or_insert_default();
            *budgets = budgets.within(&left);
        }
    }
}

pub(super) fn check(spec: &SessionSpec) -> Vec<FieldProblem> {
    let mut config = Config::of(spec);
    _ = read(&mut config);
    config.finish()
}

fn read(config: &mut Config) -> Settings {
    Settings {
        system_prompt: config.text("system_prompt", PROMPT_BYTES_MAX),
        task: None,
        model_profile: config.text("model_profile", NAME_BYTES_MAX),
        tool_ids: Some(config.texts("tool_ids", ENTRIES_MAX)).filter(|ids| !ids.is_empty()),
        max_moves_per_turn: config.number("max_moves_per_turn", 1, MOVES_MAX),
        recent_turns_limit: config.number("recent_turns_limit", 0, RECENT_TURNS_MAX),
        max_tokens_per_turn: config.number("max_tokens_per_turn", 1, u64::MAX >> 1),
        busy: config.choice("busy", &Busy::ALL.map(|busy| (busy.as_str(), busy))),
        single_turn: config.flag("single_turn").unwrap_or(false),
        depth: config.number("depth", 0, DEPTH_MAX).unwrap_or(0),
        tokens_left: config.number("tokens_left", 1, LEFT_MAX),
        cost_nanos_left: config.number("cost_nanos_left", 1, LEFT_MAX),
    }
}
