//! `run_step`: the generic model step, for any task (SPEC Q-MON-12).

use super::model::{ModelStep, Subject};

/// The create payload brings the `task`.
pub const RUN_STEP: ModelStep =
    ModelStep { name: "run_step", task: None, subject: Subject::Unused, stops_on_done: true, loop_interval_ms: 0 };
