//! Personas: shared ones, and those within an agent.

use schemas::conversation::Busy;
use schemas::definition::{ActionKind, DefinitionKind};
use schemas::id::DefinitionId;
use schemas::limits::{NAME_BYTES_MAX, RUNTIME_S_MAX};

use super::{Found, parts};
use crate::action::fields::{Object, Problems};
use crate::converse::DEPTH_MAX;

/// Fields that both forms have.
const BODY: &[&str] = &[
    "name",
    "description",
    "system_prompt",
    "instructions",
    "model_profile_id",
    "context_assembly_workflow_id",
    "memory_extraction_workflow_id",
    "recent_turns_limit",
    "tool_ids",
    "constraints",
    "assembly",
    "context_budget",
    "compaction",
    "busy",
];
const TURNS_MAX: u64 = 1_000;
const MOVES_MAX: u64 = 1_000;
const TOKENS_MAX: u64 = 1_000_000_000;
/// Whole numbers of `budgets`, and their bounds.
const BUDGETS: &[(&str, u64)] = &[
    ("max_tokens_per_turn", TOKENS_MAX),
    ("max_seconds_per_turn", RUNTIME_S_MAX),
    ("max_tokens_per_session", TOKENS_MAX),
    ("max_moves_per_session", TOKENS_MAX),
    ("max_seconds_per_session", RUNTIME_S_MAX),
    ("max_depth", DEPTH_MAX),
];
const COSTS: [&str; 2] = ["max_cost_per_turn", "max_cost_per_session"];
const MESSAGES_MAX: u64 = 10_000;
/// Below this nothing but the system prompt would fit.
const BUDGET_MIN: f64 = 0.05;

pub(super) fn check(object: &Object<'_>, found: &mut Found) {
    let known: Vec<&str> = ["id", "library_id", "project_id"].iter().chain(BODY).copied().collect();
    object.refuse_unknown(&known, &mut found.problems);
    parts::labels(object, &mut found.problems);
    parts::owner(object, found);
    body(object, found);
}

/// A persona of one agent: no id, no owner, and a name only if it likes.
pub(super) fn inline(object: &Object<'_>, found: &mut Found) {
    object.refuse_unknown(BODY, &mut found.problems);
    object.text("name", NAME_BYTES_MAX, &mut found.problems);
    body(object, found);
}

fn body(object: &Object<'_>, found: &mut Found) {
    if parts::required(object, "system_prompt", "who the model is and what it does", &mut found.problems) {
        parts::prompt(object, "system_prompt", &mut found.problems);
    }
    parts::prompt(object, "instructions", &mut found.problems);
    if parts::required(object, "model_profile_id", "the id of a model profile", &mut found.problems) {
        parts::refer(object, "model_profile_id", DefinitionKind::ModelProfile, found);
    }
    // Without, the built-in one does it.
    for workflow in ["context_assembly_workflow_id", "memory_extraction_workflow_id"] {
        object.id::<DefinitionId>(workflow, &mut found.problems);
    }
    object.whole("recent_turns_limit", 0, TURNS_MAX, &mut found.problems);
    let tools = parts::refer_all(object, "tool_ids", DefinitionKind::Tool, found);
    let problems = &mut found.problems;
    constraints(&object.object("constraints", problems), &tools, problems);
    parts::choice(object, "assembly", &["per_turn", "per_call"], problems);
    parts::decimal(object, "context_budget", BUDGET_MIN, 1.0, problems);
    parts::choice(object, "busy", &Busy::ALL.map(Busy::as_str), problems);
    let settings = object.object("compaction", problems);
    compaction(&settings, found);
}

fn constraints(object: &Object<'_>, tools: &[DefinitionId], problems: &mut Problems) {
    object.refuse_unknown(&["max_moves_per_turn", "allowed_tools", "allowed_action_kinds", "budgets"], problems);
    object.whole("max_moves_per_turn", 1, MOVES_MAX, problems);
    for (index, id) in parts::ids(object, "allowed_tools", problems) {
        if !tools.contains(&id) {
            let path = format!("{}[{index}]", object.path("allowed_tools"));
            problems.add(path, format!("{id} is not in tool_ids; add it there, or take it out here"));
        }
    }
    let kinds = ActionKind::ALL.map(ActionKind::as_str);
    parts::choices(object, "allowed_action_kinds", &kinds, problems);
    let budgets = object.object("budgets", problems);
    let known: Vec<&str> = BUDGETS.iter().map(|(name, _)| *name).chain(COSTS).collect();
    budgets.refuse_unknown(&known, problems);
    for (name, max) in BUDGETS {
        budgets.whole(name, 1, *max, problems);
    }
    for name in COSTS {
        parts::decimal(&budgets, name, 0.0, 1_000_000.0, problems);
    }
}

fn compaction(object: &Object<'_>, found: &mut Found) {
    const COUNTS: [&str; 5] = ["chunk_size", "keep_recent", "max_summary_tokens", "clip_first", "clip_last"];
    let known: Vec<&str> = ["enabled", "model_profile_id"].into_iter().chain(COUNTS).collect();
    parts::refer(object, "model_profile_id", DefinitionKind::ModelProfile, found);
    let problems = &mut found.problems;
    object.refuse_unknown(&known, problems);
    object.boolean("enabled", problems);
    for name in COUNTS {
        object.whole(name, 1, MESSAGES_MAX, problems);
    }
}
