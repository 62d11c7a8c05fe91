//! The sessions of agents that take part in a conversation: started by create actions, as any other.

use domain::conversation::seat::AgentSeat;
use host::trace;
use schemas::conversation::StartedAgent;

use crate::answer::Answer;
use crate::gateway::Gateway;
use crate::submit;

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
