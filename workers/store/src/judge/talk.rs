//! What acceptance means for conversations: whoever is created there takes part, whoever is brought in
//! twice sits there once, and a result ends its operation.

use std::collections::HashMap;

use domain::converse::can_be_asked;
use domain::talk;
use schemas::action::NewAction;
use schemas::conversation::{ConversationStatus, OperationState};
use schemas::id::{AgentId, Namespace, OperationId, SessionId, SessionKey};
use schemas::problem::Code;
use schemas::session::NewSession;

use super::{Book, Refused};
use crate::talking::{Additions, Forum, Joined, Place};

/// An operation as far as acceptance is concerned.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) session_id: SessionId,
    pub(crate) state: OperationState,
}

/// An agent that is looked for, and where it may sit.
pub(crate) type Guest = (Place, AgentId);

/// Where an agent sits, and the session that speaks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) place: Place,
    pub(crate) agent_id: AgentId,
    pub(crate) session_id: SessionId,
    pub(crate) moniker: String,
}

impl Seat {
    fn key(&self) -> SessionKey {
        SessionKey::new(self.place.0.clone(), self.session_id.clone())
    }

    /// Its session, as it is looked up.
    pub(crate) fn session(&self) -> (&str, &str) {
        (self.place.0.as_str(), self.session_id.as_str())
    }
}

/// What a batch touches besides actions and sessions, and what it adds there.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// By place in the batch: the operation that an action names, and what it makes of it.
    pub(crate) endings: HashMap<usize, (OperationId, OperationState)>,
    pub(crate) works: HashMap<(Namespace, OperationId), Work>,
    pub(crate) forums: HashMap<Place, Forum>,
    /// Of the agents that are looked for, in the order they joined.
    pub(crate) seats: Vec<Seat>,
    pub(crate) additions: Additions<'static>,
}

/// Of `create` actions: the conversation of the session.
pub(crate) fn place_of(new: &NewAction) -> Option<Place> {
    let id = new.session.as_ref()?.spec.conversation_id.as_ref()?;
    Some((new.namespace.clone(), id.clone()))
}

fn guest_of(new: &NewAction) -> Option<Guest> {
    let place = (new.namespace.clone(), new.seat.clone()?);
    Some((place, new.agent_id.clone()?))
}

impl Aside {
    pub(crate) fn of(batch: &[&NewAction]) -> Self {
        let endings = batch.iter().enumerate();
        let endings = endings.filter_map(|(index, new)| Some((index, domain::action::result_of(new)?))).collect();
        Self { endings, ..Self::default() }
    }

    /// For one action alone, which ends this operation whatever it says of it.
    pub(crate) fn ending(id: &OperationId, state: OperationState) -> Self {
        Self { endings: HashMap::from([(0, (id.clone(), state))]), ..Self::default() }
    }

    /// Whether the batch has to do with conversations at all.
    pub(crate) fn is_needed(&self, batch: &[&NewAction]) -> bool {
        !self.endings.is_empty() || batch.iter().any(|new| new.seat.is_some() || place_of(new).is_some())
    }

    /// The operations that the batch names, each once.
    pub(crate) fn operations<'a>(&'a self, batch: &[&'a NewAction]) -> Vec<(&'a str, &'a str)> {
        let named = self.endings.iter().map(|(index, (id, _))| (batch[*index].namespace.as_str(), id.as_str()));
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    /// The conversations that the batch names, each once, in the order of their ids.
    pub(crate) fn places(batch: &[&NewAction]) -> Vec<Place> {
        let seats = batch.iter().filter_map(|new| guest_of(new)).map(|(place, _)| place);
        let mut places: Vec<Place> = batch.iter().filter_map(|new| place_of(new)).chain(seats).collect();
        places.sort();
        places.dedup();
        places
    }

    /// The agents that the batch looks for, each once.
    pub(crate) fn guests(batch: &[&NewAction]) -> Vec<Guest> {
        let mut guests: Vec<Guest> = batch.iter().filter_map(|new| guest_of(new)).collect();
        guests.sort();
        guests.dedup();
        guests
    }

    fn named(&self, index: usize) -> Option<&(OperationId, OperationState)> {
        self.endings.get(&index)
    }
}

impl Book {
    /// Whether an action may be judged as the end of an operation: it is open, or this is a repeat.
    pub(crate) fn may_end(&self, new: &NewAction, id: &OperationId) -> bool {
        let is_known = self.actions.contains_key(&(new.namespace.clone(), new.action_id.clone()));
        let work = self.aside.works.get(&(new.namespace.clone(), id.clone()));
        is_known || work.is_some_and(|work| work.state.is_open())
    }

    /// The session that waits for the operation which an action names.
    pub(super) fn waiting(&self, index: usize, new: &NewAction) -> Option<SessionKey> {
        let (id, _) = self.aside.named(index)?;
        let work = self.aside.works.get(&(new.namespace.clone(), id.clone()))?;
        Some(SessionKey::new(new.namespace.clone(), work.session_id.clone()))
    }

    /// What to say when no session is named and no operation is found.
    pub(super) fn nobody_waits(&self, index: usize) -> Option<Refused> {
        let (id, _) = self.aside.named(index)?;
        let detail = format!("there is no operation {id}; correct operation_id, or name the session_id as well");
        Some((None, Code::NoOpenOperation, detail))
    }

    /// Whether the operation that an action names waits for a result of this session. Operations that
    /// have no row are the session's own business.
    pub(super) fn check_operation(&self, index: usize, new: &NewAction, key: &SessionKey) -> Result<(), Refused> {
        let Some((id, _)) = self.aside.named(index) else { return Ok(()) };
        let Some(work) = self.aside.works.get(&(new.namespace.clone(), id.clone())) else { return Ok(()) };
        if work.session_id != key.session_id {
            let detail = format!("operation {id} is not one of session {}; leave session_id out", key.session_id);
            return Err((Some(key.clone()), Code::NoOpenOperation, detail));
        }
        if !work.state.is_open() {
            let detail = format!("operation {id} has ended already ({}): the first result counts", work.state.as_str());
            return Err((Some(key.clone()), Code::NoOpenOperation, detail));
        }
        Ok(())
    }

    /// Whether an action ends an operation that is open, and whose session this is.
    pub(super) fn is_awaited(&self, index: usize, new: &NewAction, key: &SessionKey) -> bool {
        let Some((id, _)) = self.aside.named(index) else { return false };
        let work = self.aside.works.get(&(new.namespace.clone(), id.clone()));
        work.is_some_and(|work| work.session_id == key.session_id && work.state.is_open())
    }

    /// Ends the operation of an action that was judged: as the action says, or, if nobody will ever
    /// want its result, for good.
    pub(super) fn end_operation(&mut self, index: usize, new: &NewAction, is_accepted: bool) {
        let Some((id, state)) = self.aside.endings.get(&index).cloned() else { return };
        let key = (new.namespace.clone(), id);
        let Some(work) = self.aside.works.get_mut(&key).filter(|work| work.state.is_open()) else { return };
        let session = SessionKey::new(new.namespace.clone(), work.session_id.clone());
        let is_over = self.sessions.get(&session).is_some_and(|known| known.status.is_final());
        let state = match (is_accepted, is_over) {
            (true, _) => state,
            (false, true) => OperationState::Cancelled,
            (false, false) => return,
        };
        work.state = state;
        self.aside.additions.ended.push((key.0, key.1, state));
    }

    /// The session at the seat of the agent that an action looks for, if it can be asked there. Whoever has left, or
    /// has ended, needs another one.
    pub(super) fn seat(&self, new: &NewAction) -> Option<SessionKey> {
        let (place, agent) = guest_of(new)?;
        let here = self.aside.seats.iter().filter(|seat| seat.place == place && seat.agent_id == agent);
        let mut keys = here.map(|seat| (seat.key(), &seat.moniker));
        let found = keys.find(|(key, moniker)| {
            let known = self.sessions.get(key);
            known.is_some_and(|known| can_be_asked(moniker, known.status))
        });
        found.map(|(key, _)| key)
    }

    /// Whether sessions may be created in a conversation.
    pub(super) fn check_forum(&self, new: &NewAction) -> Result<(), Refused> {
        let Some(place) = place_of(new) else { return Ok(()) };
        match self.aside.forums.get(&place).map(|forum| forum.status) {
            Some(status @ (ConversationStatus::Completed | ConversationStatus::Failed)) => {
                let detail = format!("conversation {} is {}; use another conversation_id", place.1, status.as_str());
                Err((None, Code::ConversationClosed, detail))
            }
            _ => Ok(()),
        }
    }

    /// A session that was just registered takes part in its conversation, which is opened if need be.
    pub(super) fn join(&mut self, new: &NewAction, session: &NewSession, now_ms: i64) {
        let Some(place) = place_of(new) else { return };
        let aside = &mut self.aside;
        let forum = aside.forums.entry(place.clone()).or_insert_with(|| {
            let conversation = talk::opened_by(&place.1, &new.actor, &session.agent_id, &session.spec, now_ms);
            let forum = Forum::of(&conversation);
            aside.additions.opened.push((place.0.clone(), conversation));
            forum
        });
        let opened_at_ms = forum.created_at_ms;
        let (agent_id, session_id) = (session.agent_id.clone(), session.session_id.clone());
        // For others in this batch who bring in the same agent.
        aside.seats.push(Seat { place: place.clone(), agent_id, session_id, moniker: session.spec.moniker.clone() });
        let added_by = session.added_by_turn_id.as_ref();
        if let Some(participant) = talk::participant_of(&session.session_id, &session.agent_id, added_by, now_ms) {
            aside.additions.joined.push(Joined { place, opened_at_ms, participant, at_creation: true });
        }
    }
}
