//! Definitions: what agents are made of (SPEC 2.2). One file per group of kinds.
//!
//! A record holds a definition's content with every default filled in, so that equal meaning is
//! equal text, and so an equal content hash. Where it matters whether somebody wrote a default down, [`Chosen`]
//! says so. Ids of owner, version and times lie beside it.

mod agent;
mod budget;
mod kind;
mod library;
mod model_profile;
mod persona;
mod task;
mod tool;

#[cfg(test)]
mod tests;

pub use agent::{Agent, PersonaRef};
pub use budget::{Budgets, NamespaceBudget};
pub use kind::DefinitionKind;
pub use library::{Library, Project};
pub use model_profile::{ModelParameters, ModelProfile};
pub use persona::{
    AgentConstraints, AssemblyMode, CompactionSettings, InlinePersona, Persona, PersonaBody, PromptExample, PromptSpec,
};
pub use task::{
    ActionDef, ActionKind, BackoffShape, Execution, OnFailure, RetryPolicy, StepCondition, StepOutcome, Task,
    TaskRetry, TaskStep,
};
pub use tool::{Approval, ApprovalDefault, Chosen, EffectClass, InvocationMode, TargetType, Tool, ToolRetry};
