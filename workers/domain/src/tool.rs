//! Tools at run time: what a call of the model means, decided before anything runs (SPEC 1.10).
//!
//! A turn fixes its tools once, as [`ResolvedTool`]s in its assembly record, so that neither a new
//! definition nor a take-over changes what a call means. [`plan`] then answers a call at once, or says
//! what is dispatched for it.

mod action;
pub mod attempt;
mod builtin;
mod dispatch;
mod map;
mod operation;
mod plan;
pub mod release;
mod resolve;
pub mod schema;
mod settle;
mod spec;
mod toolbox;
mod variable;

#[cfg(test)]
mod tests;

use schemas::id::Namespace;
use schemas::limits::POOL_BYTES_MAX;

pub use action::{ActionCall, ActionFailure, Probe, Trouble};
pub use builtin::{Builtin, builtins};
pub use dispatch::{ActionRequest, Dispatch, ExecutionContext, Whose, history};
pub use map::mapped;
pub use operation::{Place, called_id, is_result_id, operation, operation_id, result_id};
pub use plan::{AgentCall, ToolPlan, arguments_hash, may_join, permitted, plan};
pub use resolve::{ResolvedAction, ResolvedTarget, ResolvedTool, Target, action_of, resolve};
pub use settle::{APPROVER, bounded, finished, out_of_time, settled, settled_with, spent, task_body, tool_error};
pub(crate) use settle::{PROVIDER_CALLS, SPENT};
pub use spec::{offered, specs};
pub use toolbox::{Toolbox, without_toolbox};
pub use variable::{HeaderVariable, variable_name};

/// Pool of the fleet's own executors.
pub const POOL: &str = "default";

/// Field of a call's input that chooses how an agent is asked, unless the tool's schema has a use of
/// its own for it (SPEC W-TOOL-09).
pub const MODE_FIELD: &str = "invocation_mode";

/// The method of an `http` action whose author names none.
pub fn default_method(has_body: bool) -> &'static str {
    if has_body { "POST" } else { "GET" }
}

/// What a pool is called among the operations. Pools of one name in two namespaces are two pools; that
/// of the fleet's own executors serves all.
pub fn pool_of(namespace: &Namespace, pool: &str) -> String {
    if pool == POOL { POOL.to_owned() } else { format!("{namespace}:{pool}") }
}

/// Whether a text names a pool of somebody else's workers.
///
/// # Errors
/// What is wrong with it, in words.
pub fn pool_name(text: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if text == POOL {
        return Err(format!("{POOL} is the pool of the fleet's own executors; choose another name"));
    }
    if text.is_empty() || text.len() > POOL_BYTES_MAX || !text.chars().all(is_plain) {
        return Err(format!("must be 1 to {POOL_BYTES_MAX} letters, digits, _ or -"));
    }
    Ok(())
}
