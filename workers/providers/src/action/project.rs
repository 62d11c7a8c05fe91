//! What the projects of the calling agent say for actions that say nothing themselves.

use domain::failure::Failure;
use domain::ports::{ActionCall, ActionFailure, Definitions, Trouble};
use schemas::definition::{Agent, DefinitionKind, Project};
use schemas::id::DefinitionId;
use serde::de::DeserializeOwned;

/// The model profile of the first of them that has one.
pub async fn model_profile(
    definitions: &dyn Definitions,
    call: &ActionCall,
) -> Result<Option<DefinitionId>, ActionFailure> {
    let agent = call.request.context.agent_id.as_ref();
    // An agent that nobody defined works in no project.
    let Some(id) = agent.and_then(|agent| DefinitionId::parse(agent.as_str()).ok()) else { return Ok(None) };
    let agent: Option<Agent> = newest(definitions, call, DefinitionKind::Agent, id).await?;
    for id in agent.into_iter().flat_map(|agent| agent.project_ids) {
        let project: Option<Project> = newest(definitions, call, DefinitionKind::Project, id).await?;
        if let Some(profile) = project.and_then(|project| project.default_model_profile_id) {
            return Ok(Some(profile));
        }
    }
    Ok(None)
}

async fn newest<T: DeserializeOwned>(
    definitions: &dyn Definitions,
    call: &ActionCall,
    kind: DefinitionKind,
    id: DefinitionId,
) -> Result<Option<T>, ActionFailure> {
    let away = |failure: Failure| {
        ActionFailure::trouble(Trouble::ServerError, format!("the definitions cannot be read: {failure}"), false)
    };
    let row = definitions.definition(&call.namespace, &(kind, id)).await.map_err(away)?;
    Ok(row.and_then(|row| row.content.to().ok()))
}
