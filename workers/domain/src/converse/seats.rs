//! Agents that take part in the conversation already: whoever loops one of them in asks it where it is, so that
//! nobody sits there twice (SPEC W-INV-04). What is known here is as old as the call of the model: of those who loop
//! it in at the same time, the store lets the first one make its session (`NewAction::seat`).

use schemas::conversation::{Participant, ParticipantKind};
use schemas::definition::InvocationMode;
use schemas::id::{AgentId, SessionId};
use schemas::session::SessionStatus;

use super::agents::AgentCall;
use super::state::{Joined, Lane, TalkState};
use crate::moniker;
use crate::tool::{self, ResolvedTool};

/// An agent in a conversation, and the session that speaks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    pub agent_id: AgentId,
    pub session_id: SessionId,
}

/// Of those who take part, the agents that these tools may loop in, in the order they joined.
pub fn seats(participants: &[Participant], tools: &[ResolvedTool]) -> Vec<Seat> {
    let wanted = tool::may_join(tools);
    let here = participants.iter().filter(|one| one.kind == ParticipantKind::Agent && one.left_at_ms.is_none());
    let seat = |one: &Participant| {
        let (agent_id, session_id) = (one.agent_id.clone()?, one.session_id.clone()?);
        let is_wanted = wanted.iter().any(|id| id.as_str() == agent_id.as_str());
        is_wanted.then_some(Seat { agent_id, session_id })
    };
    here.filter_map(seat).collect()
}

/// Whether the session of a seat can be asked; if not, the agent needs another one.
pub fn can_be_asked(moniker: &str, status: SessionStatus) -> bool {
    let takes_input = moniker::find(moniker).is_some_and(|moniker| moniker.takes_input());
    takes_input && !status.is_at_rest()
}

impl AgentCall {
    /// Who is looped in and is there already is asked there.
    pub(super) fn sit<'s>(&mut self, seats: impl IntoIterator<Item = &'s Seat>) {
        if self.mode == InvocationMode::LoopIn && self.seated.is_none() {
            let mine = seats.into_iter().find(|seat| seat.agent_id == self.agent_id);
            self.seated = mine.map(|seat| seat.session_id.clone());
        }
    }
}

impl TalkState {
    /// Agents that were looped in since the model of this lane was asked: whoever looked before that does not know.
    pub(super) fn seats_since(&self, lane: &Lane) -> Vec<Seat> {
        let since = self.joined.iter().filter(|joined| joined.number > lane.joins);
        let seat =
            |joined: &Joined| Some(Seat { agent_id: joined.agent_id.clone()?, session_id: joined.session_id.clone() });
        since.filter_map(seat).collect()
    }
}
