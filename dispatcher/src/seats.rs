//! The agents that take part in a conversation: whether they are defined, where they work, and their sessions, which
//! are started by create actions, as any other.

use domain::conversation::branch;
use domain::conversation::seat::AgentSeat;
use domain::ports::DefinitionKey;
use host::trace;
use schemas::conversation::{Participant, StartedAgent};
use schemas::definition::{Agent, DefinitionKind, Project};
use schemas::id::{AgentId, ConversationId, DefinitionId, Namespace};
use schemas::json::Json;
use schemas::problem::{Code, FieldProblem, Problem};

use crate::answer::{Answer, Refused};
use crate::gateway::Gateway;
use crate::submit;

/// Whoever converses is defined, or the seat says what they are: a name that was mistyped would get a
/// nobody to talk to. `field` is where the agent of a seat is named.
pub async fn check(
    gateway: &Gateway,
    namespace: &Namespace,
    seats: &[AgentSeat],
    field: impl Fn(usize) -> String,
) -> Answer<()> {
    let nameless = seats.iter().enumerate().filter_map(|(nth, seat)| {
        let agent = seat.participant.agent_id.as_ref().filter(|_| !seat.is_self_described())?;
        Some((nth, agent, DefinitionId::parse(agent.as_str()).ok().map(|id| (DefinitionKind::Agent, id))))
    });
    let nameless: Vec<_> = nameless.collect();
    let keys: Vec<DefinitionKey> = nameless.iter().filter_map(|(.., key)| key.clone()).collect();
    let known = if keys.is_empty() { Vec::new() } else { gateway.definitions.known(namespace, &keys).await? };
    let is_known = |key: &Option<DefinitionKey>| {
        key.as_ref().is_some_and(|(kind, id)| known.iter().any(|head| (head.kind, &head.id) == (*kind, id)))
    };
    let unknown = nameless.iter().filter(|(.., key)| !is_known(key));
    let problems: Vec<FieldProblem> = unknown
        .map(|(nth, agent, _)| {
            let what = format!(
                "there is no agent {agent}; define it (POST /api/agents), or say what it is with \
                 config.system_prompt, task or another moniker. GET /api/agents lists those there are"
            );
            FieldProblem::new(field(*nth), what)
        })
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Refused::from(Problem::fields(Code::InvalidRequest, problems))),
    }
}

/// Where the agents of a conversation work: in the first project of the first of them who is defined. Whoever is
/// described by a seat alone has no project.
pub async fn branch_context(
    gateway: &Gateway,
    namespace: &Namespace,
    id: &ConversationId,
    participants: &[Participant],
) -> Answer<Option<Json>> {
    let agents: Vec<&AgentId> = participants.iter().filter_map(|one| one.agent_id.as_ref()).collect();
    for agent in agents {
        let Ok(agent) = DefinitionId::parse(agent.as_str()) else { continue };
        let row = gateway.definitions.definition(namespace, &(DefinitionKind::Agent, agent)).await?;
        // One that cannot be read says nothing here: its next turn tells why.
        let Some(agent) = row.and_then(|row| row.content.to::<Agent>().ok()) else { continue };
        let Some(project) = agent.project_ids.into_iter().next() else { continue };
        let row = gateway.definitions.definition(namespace, &(DefinitionKind::Project, project)).await?;
        let project = row.and_then(|row| row.content.to::<Project>().ok());
        return Ok(project.map(|project| branch::context(id, &project)));
    }
    Ok(None)
}

/// Starts the sessions of seats that are in the conversation already. Their ids are derived, so a
/// repeat after a failure half-way starts none twice.
pub async fn start(gateway: &Gateway, seats: &[AgentSeat]) -> Answer<Vec<StartedAgent>> {
    if seats.is_empty() {
        return Ok(Vec::new());
    }
    let begun = trace::begin();
    let verdicts = gateway.ledger.accept(seats.iter().map(|seat| seat.create.clone()).collect()).await?;
    let mut started = Vec::with_capacity(seats.len());
    for (seat, verdict) in seats.iter().zip(verdicts) {
        let answer = submit::send_on(gateway, &seat.create.action_id, verdict, begun, "").await?;
        started.extend(seat.started(answer.accepted));
    }
    Ok(started)
}
