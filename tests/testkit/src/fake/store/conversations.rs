//! The `Conversations` port.

use async_trait::async_trait;
use domain::conversation::kept::HEAVY;
use domain::failure::Failure;
use domain::ports::{
    ConversationChange, ConversationQuery, Conversations, Inserted, Ledger, LogQuery, Look, LookQuery, Post, Posted,
    TurnPlace, TurnQuery,
};
use domain::spending::Spent;
use domain::talk::{apply, is_same, refusal, seats};
use schemas::action::{Action, ActionType, Lane};
use schemas::conversation::{Conversation, LogRecord, LogRow, Participant, Turn, TurnStatus, Visibility};
use schemas::id::{ActionId, ConversationId, Namespace, ParticipantId, SessionKey, TurnId};
use schemas::json::Json;
use schemas::limits::{OPEN_TURNS_MAX, PARTICIPANTS_MAX, RECORD_LIGHT_BYTES_MIN};

use super::MemStore;

/// A conversation with all that belongs to it.
#[derive(Debug, Clone)]
pub(super) struct ConversationRec {
    pub conversation: Conversation,
    pub participants: Vec<Participant>,
    pub log: Vec<LogRow>,
    /// The last offset that is recorded as archived.
    pub archived: u64,
    /// Up to where the records are light; `log` has them whole.
    pub light: u64,
}

impl ConversationRec {
    /// A record as readers find it.
    pub fn shown(&self, row: &LogRow) -> LogRow {
        let bytes = row.record.body.as_str().len();
        let is_light = row.offset <= self.light && HEAVY.contains(&row.record.kind) && bytes > RECORD_LIGHT_BYTES_MIN;
        let body = if is_light { Json::of(&bytes) } else { row.record.body.clone() };
        LogRow { offset: row.offset, record: LogRecord { body, ..row.record.clone() } }
    }

    /// The very participant, else whoever takes part as the same now.
    pub fn same(&self, new: &Participant) -> Option<&Participant> {
        let by_id = self.participants.iter().find(|one| one.participant_id == new.participant_id);
        let now = || self.participants.iter().find(|one| one.left_at_ms.is_none() && is_same(one, new));
        by_id.or_else(now)
    }

    fn matches(&self, query: &ConversationQuery) -> bool {
        let row = &self.conversation;
        let took_part = |wanted: &dyn Fn(&Participant) -> bool| self.participants.iter().any(wanted);
        query.status.is_none_or(|status| row.status == status)
            && query.created_by.as_ref().is_none_or(|by| row.created_by == *by)
            && query.subject_id.as_ref().is_none_or(|subject| row.subject_id.as_ref() == Some(subject))
            && query.tag.as_ref().is_none_or(|tag| row.tags.contains(tag))
            && query.agent_id.as_ref().is_none_or(|id| took_part(&|one| one.agent_id.as_ref() == Some(id)))
            && query.user_id.as_ref().is_none_or(|id| took_part(&|one| one.user_id.as_ref() == Some(id)))
            && (query.include_internal || row.visibility == Visibility::Listed)
    }
}

fn place(row: &Conversation) -> (i64, ConversationId) {
    (row.created_at_ms, row.conversation_id.clone())
}

fn turn_place(namespace: &Namespace, turn: &Turn) -> TurnPlace {
    TurnPlace {
        namespace: namespace.clone(),
        conversation_id: turn.conversation_id.clone(),
        created_at_ms: turn.created_at_ms,
        turn_id: turn.turn_id.clone(),
    }
}

#[async_trait]
impl Conversations for MemStore {
    async fn create(
        &self,
        namespace: &Namespace,
        new: &Conversation,
        participants: &[Participant],
        messages: &[LogRecord],
    ) -> Result<Inserted<Conversation>, Failure> {
        let now_ms = self.now_ms();
        let place = (namespace.clone(), new.conversation_id.clone());
        let mut state = self.transaction();
        if let Some(rec) = state.conversations.get(&place) {
            return Ok(Inserted::Existing(rec.conversation.clone()));
        }
        state.open(namespace, new.clone(), now_ms);
        for one in participants {
            let one = Participant { joined_at_ms: now_ms, left_at_ms: None, ..one.clone() };
            state.add_participant(&place, Some(one));
        }
        for record in messages {
            state.append(&place, record.clone(), now_ms);
        }
        Ok(Inserted::New(state.conversations[&place].conversation.clone()))
    }

    async fn conversation(&self, namespace: &Namespace, id: &ConversationId) -> Result<Option<Conversation>, Failure> {
        let state = self.transaction();
        Ok(state.conversations.get(&(namespace.clone(), id.clone())).map(|rec| rec.conversation.clone()))
    }

    async fn list(&self, query: &ConversationQuery) -> Result<Vec<Conversation>, Failure> {
        let state = self.transaction();
        let own = state.conversations.iter().filter(|((namespace, _), _)| *namespace == query.namespace);
        let mut rows: Vec<Conversation> =
            own.filter(|(_, rec)| rec.matches(query)).map(|(_, rec)| rec.conversation.clone()).collect();
        rows.retain(|row| query.after.as_ref().is_none_or(|after| place(row) < *after));
        rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
        rows.truncate(query.limit);
        Ok(rows)
    }

    async fn change(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        change: &ConversationChange,
    ) -> Result<Option<Conversation>, Failure> {
        let now_ms = self.now_ms();
        let mut state = self.transaction();
        let Some(rec) = state.conversations.get_mut(&(namespace.clone(), id.clone())) else { return Ok(None) };
        apply(&mut rec.conversation, change);
        rec.conversation.updated_at_ms = rec.conversation.updated_at_ms.max(now_ms);
        Ok(Some(rec.conversation.clone()))
    }

    async fn participants(&self, namespace: &Namespace, id: &ConversationId) -> Result<Vec<Participant>, Failure> {
        let state = self.transaction();
        let rec = state.conversations.get(&(namespace.clone(), id.clone()));
        let mut found = rec.map(|rec| rec.participants.clone()).unwrap_or_default();
        found.sort_by_key(|one| (one.left_at_ms.is_some(), one.joined_at_ms, one.participant_id.clone()));
        found.truncate(PARTICIPANTS_MAX);
        Ok(found)
    }

    async fn join(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant: &Participant,
    ) -> Result<Option<Inserted<Participant>>, Failure> {
        let now_ms = self.now_ms();
        let place = (namespace.clone(), id.clone());
        let mut state = self.transaction();
        let Some(rec) = state.conversations.get(&place) else { return Ok(None) };
        if let Some(known) = rec.same(participant) {
            return Ok(Some(Inserted::Existing(known.clone())));
        }
        let new = Participant { joined_at_ms: now_ms, left_at_ms: None, ..participant.clone() };
        state.add_participant(&place, Some(new.clone()));
        Ok(Some(Inserted::New(new)))
    }

    async fn leave(
        &self,
        namespace: &Namespace,
        id: &ConversationId,
        participant: &ParticipantId,
    ) -> Result<Option<Participant>, Failure> {
        let now_ms = self.now_ms();
        let place = (namespace.clone(), id.clone());
        let mut state = self.transaction();
        let Some(rec) = state.conversations.get_mut(&place) else { return Ok(None) };
        let found = rec.participants.iter_mut().find(|one| one.participant_id == *participant);
        let Some(one) = found else { return Ok(None) };
        if one.left_at_ms.is_some() {
            return Ok(Some(one.clone()));
        }
        one.left_at_ms = Some(now_ms);
        let left = one.clone();
        if let Some(record) = seats::left(rec.conversation.status, &left) {
            state.append(&place, record, now_ms);
        }
        Ok(Some(left))
    }

    async fn post(&self, post: Post) -> Result<Posted, Failure> {
        let now_ms = self.now_ms();
        let place = (post.namespace, post.conversation_id);
        let mut state = self.transaction();
        let Some(rec) = state.conversations.get(&place) else { return Ok(Posted::NotFound) };
        let known = rec.log.iter().find(|row| row.record.id == post.record.id);
        let is_same = known.map(|row| row.record.kind == post.record.kind && row.record.body == post.record.body);
        if let Some(refused) = refusal(is_same, rec.conversation.status) {
            return Ok(refused.into());
        }
        if let Some(offset) = known.map(|row| row.offset) {
            let verdicts = post.actions.iter().map(|new| state.told(new)).collect();
            return Ok(Posted::Done { offset, verdicts });
        }
        let offset = state.append(&place, post.record, now_ms);
        let verdicts = post.actions.into_iter().map(|new| state.accept(new, now_ms, &self.breakages)).collect();
        Ok(Posted::Done { offset, verdicts })
    }

    async fn log(&self, query: &LogQuery) -> Result<Vec<LogRow>, Failure> {
        let state = self.transaction();
        let rec = state.conversations.get(&(query.namespace.clone(), query.conversation_id.clone()));
        let wanted = |row: &&LogRow| {
            row.offset > query.after
                && query.before.is_none_or(|before| row.offset < before)
                && (query.kinds.is_empty() || query.kinds.contains(&row.record.kind))
                && query.turn_id.as_ref().is_none_or(|id| row.record.turn_id.as_ref() == Some(id))
                && query.since_ms.is_none_or(|since_ms| row.record.at_ms >= since_ms)
        };
        let shown = |rec: &ConversationRec| rec.log.iter().filter(wanted).map(|row| rec.shown(row)).collect();
        let mut rows: Vec<LogRow> = rec.map(shown).unwrap_or_default();
        if query.descending {
            rows.reverse();
        }
        let (mut page, mut bytes) = (Vec::new(), 0_usize);
        for row in rows.into_iter().take(query.limit) {
            bytes = bytes.saturating_add(row.record.body.as_str().len());
            if bytes > query.bytes && !page.is_empty() {
                break;
            }
            page.push(row);
        }
        Ok(page)
    }

    async fn look(&self, query: &LookQuery) -> Result<Option<Look>, Failure> {
        let LookQuery { log, active_max, ended_max, followed } = query;
        let Some(conversation) = self.conversation(&log.namespace, &log.conversation_id).await? else {
            return Ok(None);
        };
        let page = self.log(log).await?;
        let of_page: Vec<TurnId> = page.iter().filter_map(|row| row.record.turn_id.clone()).collect();
        let open = |turn: &Turn| turn.status == TurnStatus::Active;
        let state = self.transaction();
        let own = state.turns.iter().filter(|((namespace, _), _)| *namespace == log.namespace).map(|(_, turn)| turn);
        let (mut active, mut ended): (Vec<Turn>, Vec<Turn>) = own.cloned().partition(open);
        active.retain(|turn| turn.conversation_id == log.conversation_id);
        ended.retain(|turn| followed.contains(&turn.turn_id) || of_page.contains(&turn.turn_id));
        for turns in [&mut active, &mut ended] {
            turns.sort_by_key(|turn| (turn.created_at_ms, turn.turn_id.clone()));
        }
        active.truncate(*active_max);
        ended.drain(..ended.len().saturating_sub(*ended_max));
        Ok(Some(Look { active, conversation, page, ended }))
    }

    async fn record(
        &self,
        namespace: &Namespace,
        conversation: &ConversationId,
        id: &str,
    ) -> Result<Option<LogRow>, Failure> {
        let state = self.transaction();
        let rec = state.conversations.get(&(namespace.clone(), conversation.clone()));
        Ok(rec.and_then(|rec| rec.log.iter().find(|row| row.record.id == id).map(|row| rec.shown(row))))
    }

    async fn turn(&self, namespace: &Namespace, id: &TurnId) -> Result<Option<Turn>, Failure> {
        Ok(self.transaction().turns.get(&(namespace.clone(), id.clone())).cloned())
    }

    async fn open_turns(&self, namespace: &Namespace, of: &[ConversationId]) -> Result<Vec<Turn>, Failure> {
        let state = self.transaction();
        let own = state.turns.iter().filter(|((at, _), _)| at == namespace).map(|(_, turn)| turn);
        let open = own.filter(|turn| turn.status == TurnStatus::Active && of.contains(&turn.conversation_id));
        Ok(open.take(OPEN_TURNS_MAX).cloned().collect())
    }

    async fn is_at_work(&self, key: &SessionKey, besides: &ActionId) -> Result<bool, Failure> {
        let waiting = self.pending(key, Lane::Work, 0, usize::MAX).await?;
        let waits = |action: &Action| action.kind == ActionType::Input && action.action_id != *besides;
        let state = self.transaction();
        let own = state.turns.iter().filter(|((namespace, _), _)| *namespace == key.namespace).map(|(_, turn)| turn);
        let mut own = own.filter(|turn| turn.session_id == key.session_id);
        Ok(waiting.actions.iter().any(waits) || own.any(|turn| turn.status == TurnStatus::Active))
    }

    async fn active_turns(&self, after: Option<&TurnPlace>, limit: usize) -> Result<Vec<(TurnPlace, Turn)>, Failure> {
        let state = self.transaction();
        let placed = state.turns.iter().map(|((namespace, _), turn)| (turn_place(namespace, turn), turn.clone()));
        let mut found: Vec<(TurnPlace, Turn)> = placed
            .filter(|(_, turn)| turn.status == TurnStatus::Active)
            .filter(|(place, _)| after.is_none_or(|after| place > after))
            .collect();
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found.truncate(limit);
        Ok(found)
    }

    async fn spent(&self, namespace: &Namespace) -> Result<Spent, Failure> {
        let state = self.transaction();
        let own = state.conversations.iter().filter(|((of, _), _)| of == namespace);
        let mut spent = Spent::default();
        own.flat_map(|(_, rec)| &rec.log).filter_map(|row| Spent::of(&row.record)).for_each(|one| spent.add(one));
        let commits = state.commit_log.iter().filter(|commit| commit.key.namespace == *namespace);
        commits.flat_map(|commit| Spent::of_steps(&commit.entry)).for_each(|one| spent.add(one));
        Ok(spent)
    }

    async fn turns(&self, query: &TurnQuery) -> Result<Vec<Turn>, Failure> {
        let place = |turn: &Turn| (turn.created_at_ms, turn.turn_id.clone());
        let is_beyond = |turn: &Turn| match (&query.after, query.descending) {
            (None, _) => true,
            (Some(after), false) => place(turn) > *after,
            (Some(after), true) => place(turn) < *after,
        };
        let state = self.transaction();
        let own = state.turns.iter().filter(|((namespace, _), _)| *namespace == query.namespace).map(|(_, turn)| turn);
        let mut found: Vec<Turn> = own
            .filter(|turn| query.conversation_id.as_ref().is_none_or(|id| turn.conversation_id == *id))
            .filter(|turn| query.session_id.as_ref().is_none_or(|id| turn.session_id == *id))
            .filter(|turn| query.status.is_none_or(|status| turn.status == status) && is_beyond(turn))
            .cloned()
            .collect();
        found.sort_by_key(place);
        if query.descending {
            found.reverse();
        }
        found.truncate(query.limit);
        Ok(found)
    }
}
