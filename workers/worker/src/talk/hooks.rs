//! The hooks of a persona (SPEC W-CTX-01, W-EXT-01): what its model is shown first, and what is remembered
//! of a turn. Whoever runs them sees this interface alone. A persona that names no workflow has the
//! built-in strategies; workflows take their place here, and the loop does not know.

use async_trait::async_trait;
use domain::converse::{Assembly, assemble as build};
use domain::effect::{Outcome, TalkCall};
use domain::failure::Failure;
use schemas::id::{DefinitionId, Namespace};
use schemas::problem::Code;

use super::assemble::{Start, gather};
use super::memory::remember;
use super::{TalkDeps, failed};

/// The turn that a hook is for.
#[derive(Clone, Copy)]
pub(super) struct TurnPlace<'t> {
    pub deps: &'t TalkDeps,
    pub namespace: &'t Namespace,
    pub talk: &'t TalkCall,
}

#[async_trait]
pub(super) trait Hooks: Send + Sync {
    /// The whole request to the model. A failure fails the turn.
    async fn assemble(&self, turn: TurnPlace<'_>, start: Start) -> Result<Assembly, Outcome>;

    /// Writes memories of a completed turn, under ids that follow from it: a repeat writes nothing new.
    /// Returns how many there are.
    async fn extract(&self, turn: TurnPlace<'_>) -> Result<u32, Failure>;
}

/// Who runs a hook of a persona.
///
/// # Errors
/// The workflow that it names is not there.
pub(super) fn of(workflow: Option<&DefinitionId>, field: &str) -> Result<&'static dyn Hooks, Outcome> {
    let Some(id) = workflow else { return Ok(&BuiltIn) };
    let message = format!(
        "NOT_FOUND: there is no workflow {id}; leave {field} out of the persona: what is built in does it then"
    );
    Err(failed(Code::DefinitionNotFound, message))
}

/// Recent turns and memories in; a short note of each turn out (SPEC K-09).
struct BuiltIn;

#[async_trait]
impl Hooks for BuiltIn {
    async fn assemble(&self, turn: TurnPlace<'_>, start: Start) -> Result<Assembly, Outcome> {
        Ok(build(&gather(turn, start).await?))
    }

    async fn extract(&self, turn: TurnPlace<'_>) -> Result<u32, Failure> {
        remember(turn.deps, turn.namespace, turn.talk).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persona_without_a_workflow_has_what_is_built_in_and_a_missing_one_is_named() {
        assert!(of(None, "context_assembly_workflow_id").is_ok());
        let id = DefinitionId::parse("my-assembly").expect("an id");
        let Err(Outcome::Failed(failure)) = of(Some(&id), "context_assembly_workflow_id") else { panic!("found") };
        assert_eq!(failure.code, Code::DefinitionNotFound);
        for part in ["NOT_FOUND", "my-assembly", "context_assembly_workflow_id"] {
            assert!(failure.message.contains(part), "{}", failure.message);
        }
    }
}
