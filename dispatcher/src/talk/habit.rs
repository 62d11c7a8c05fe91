//! What becomes of a message at an agent that is at work where neither the message nor its session says so: what its
//! persona says.

use domain::failure::Failure;
use schemas::conversation::Busy;
use schemas::definition::{Agent, DefinitionKind, Persona};
use schemas::id::{AgentId, DefinitionId, Namespace};

use crate::gateway::Gateway;

/// By the persona as it is defined now, as at the start of a turn. One that is not there, or cannot be read, says
/// nothing of it: the next turn tells why.
pub async fn of(gateway: &Gateway, namespace: &Namespace, agent: &AgentId) -> Result<Option<Busy>, Failure> {
    let Ok(id) = DefinitionId::parse(agent.as_str()) else { return Ok(None) };
    let row = gateway.definitions.definition(namespace, &(DefinitionKind::Agent, id)).await?;
    let Some(agent) = row.and_then(|row| row.content.to::<Agent>().ok()) else { return Ok(None) };
    if let Some(inline) = agent.persona_inline {
        return Ok(inline.body.busy);
    }
    let Some(reference) = agent.persona_ref else { return Ok(None) };
    let key = (DefinitionKind::Persona, reference.persona_id);
    let row = match reference.version {
        Some(version) => gateway.definitions.definition_at(namespace, &key, version).await?,
        None => gateway.definitions.definition(namespace, &key).await?,
    };
    let persona = row.and_then(|row| row.content.to::<Persona>().ok());
    Ok(persona.and_then(|persona| persona.body.busy))
}
