//! What commits and acceptance add to conversations.

use domain::converse::can_be_asked;
use domain::talk;
use schemas::action::NewAction;
use schemas::conversation::{Conversation, LogRecord, LogRow, Operation, OperationState, Participant, Talk};
use schemas::id::{ConversationId, Namespace, OperationId, SessionKey};
use schemas::problem::Code;
use schemas::record::Entry;
use schemas::session::NewSession;

use super::conversations::ConversationRec;
use super::state::State;

impl State {
    pub(super) fn write_talk(&mut self, key: &SessionKey, entry: &Entry, said: Talk, now_ms: i64) {
        if said.is_empty() {
            return;
        }
        if let Some(id) = &entry.conversation_id {
            let place = (key.namespace.clone(), id.clone());
            if !self.conversations.contains_key(&place) {
                let spec = self.sessions[key].spec.clone();
                let new = talk::opened_by(id, entry.agent_id.as_str(), &entry.agent_id, &spec, now_ms);
                self.open(&key.namespace, new, now_ms);
                self.add_participant(&place, talk::participant_of(&key.session_id, &entry.agent_id, None, now_ms));
            }
            for record in said.log {
                self.append(&place, record, now_ms);
            }
        }
        for turn in said.turns {
            let place = (key.namespace.clone(), turn.turn_id.clone());
            if self.turns.get(&place).is_none_or(|known| known.session_id == turn.session_id) {
                self.turns.insert(place, turn);
            }
        }
        for given in said.operations {
            let place = (key.namespace.clone(), given.operation_id.clone());
            match self.operations.get_mut(&place) {
                Some(known) => talk::take_state(known, &given),
                None => {
                    self.operations.insert(place, talk::dispatched(&given, now_ms));
                }
            }
        }
    }

    pub(super) fn open(&mut self, namespace: &Namespace, new: Conversation, now_ms: i64) -> &mut ConversationRec {
        let place = (namespace.clone(), new.conversation_id.clone());
        let conversation = Conversation {
            status: talk::stored(new.status),
            last_offset: 0,
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            ..new
        };
        self.conversations.entry(place).or_insert_with(|| ConversationRec {
            conversation,
            participants: Vec::new(),
            log: Vec::new(),
            archived: 0,
            light: 0,
        })
    }

    /// The place of a record, which is written unless it is there.
    pub(super) fn append(&mut self, place: &(Namespace, ConversationId), record: LogRecord, now_ms: i64) -> u64 {
        let Some(rec) = self.conversations.get_mut(place) else { return 0 };
        if let Some(known) = rec.log.iter().find(|row| row.record.id == record.id) {
            return known.offset;
        }
        rec.conversation.last_offset += 1;
        rec.conversation.updated_at_ms = rec.conversation.updated_at_ms.max(now_ms);
        rec.log.push(LogRow { offset: rec.conversation.last_offset, record });
        rec.conversation.last_offset
    }

    /// Whoever takes part already is left as they are; of the others the log tells.
    pub(super) fn add_participant(&mut self, place: &(Namespace, ConversationId), new: Option<Participant>) {
        let (Some(rec), Some(new)) = (self.conversations.get_mut(place), new) else { return };
        if rec.same(&new).is_some() {
            return;
        }
        let said = talk::seats::joined(rec.conversation.status, rec.conversation.last_offset, &new);
        rec.participants.push(new);
        if let Some(record) = said {
            let now_ms = record.at_ms;
            self.append(place, record, now_ms);
        }
    }

    /// A session that is about to be registered takes part in its conversation.
    pub(super) fn join_session(
        &mut self,
        new: &NewAction,
        session: &NewSession,
        now_ms: i64,
    ) -> Result<(), (Code, String)> {
        let Some(id) = &session.spec.conversation_id else { return Ok(()) };
        let place = (new.namespace.clone(), id.clone());
        match self.conversations.get(&place) {
            Some(rec) if talk::is_closed(rec.conversation.status) => {
                return Err((Code::ConversationClosed, format!("conversation {id} is closed")));
            }
            Some(_) => {}
            None => {
                let opened = talk::opened_by(id, &new.actor, &session.agent_id, &session.spec, now_ms);
                self.open(&new.namespace, opened, now_ms);
            }
        }
        let seats = self.conversations.get(&place).map_or(&[][..], |rec| &rec.participants[..]);
        if seats.iter().any(|one| one.session_id.as_ref() == Some(&session.session_id)) {
            // Whoever has left by now stays away.
            return Ok(());
        }
        let added_by = session.added_by_turn_id.as_ref();
        let who = talk::participant_of(&session.session_id, &session.agent_id, added_by, now_ms);
        self.add_participant(&place, who);
        Ok(())
    }

    /// The session at the seat of the agent that an action looks for, if it can be asked there.
    pub(super) fn seat(&self, new: &NewAction) -> Option<SessionKey> {
        let (conversation, agent) = (new.seat.clone()?, new.agent_id.as_ref()?);
        let rec = self.conversations.get(&(new.namespace.clone(), conversation))?;
        let here = rec.participants.iter().filter(|one| one.left_at_ms.is_none());
        let mut here: Vec<&Participant> = here.filter(|one| one.agent_id.as_ref() == Some(agent)).collect();
        here.sort_by_key(|one| (one.joined_at_ms, one.participant_id.clone()));
        let sessions = here.into_iter().filter_map(|one| one.session_id.clone());
        let mut keys = sessions.map(|session| SessionKey::new(new.namespace.clone(), session));
        keys.find(|key| {
            let row = self.sessions.get(key);
            row.is_some_and(|row| can_be_asked(&row.spec.moniker, row.head.status))
        })
    }

    /// The operation that an action names, if there is one.
    pub(super) fn named_operation(&self, new: &NewAction, id: Option<&OperationId>) -> Option<&Operation> {
        self.operations.get(&(new.namespace.clone(), id?.clone()))
    }

    /// Ends the operation of an accepted result, and one whose session has ended.
    pub(super) fn end_operation(
        &mut self,
        new: &NewAction,
        ending: Option<(OperationId, OperationState)>,
        is_accepted: bool,
    ) {
        let Some((id, state)) = ending else { return };
        let Some(work) = self.operations.get_mut(&(new.namespace.clone(), id)) else { return };
        let session = SessionKey::new(new.namespace.clone(), work.session_id.clone());
        let is_over = self.sessions.get(&session).is_some_and(|row| row.head.status.is_final());
        match (is_accepted, is_over) {
            (true, _) => talk::close(work, state),
            (false, true) => talk::close(work, OperationState::Cancelled),
            (false, false) => {}
        }
    }
}
