//! What changes conversations apart from commits: each a transaction that holds the conversation's
//! row, so that nobody else writes between look and write. All end with a commit, also of nothing: a
//! connection that is given back has no transaction open.

use std::collections::HashMap;

use async_trait::async_trait;
use domain::ports::{ConversationChange, Inserted, Post, Posted};
use domain::talk::{apply, refusal, seats, stored};
use schemas::action::NewAction;
use schemas::conversation::{Conversation, LogRecord, Participant};
use schemas::id::{ConversationId, Namespace, ParticipantId};
use schemas::json::Json;
use sqlx::PgConnection;

use super::super::rows::clean;
use super::super::writer::{Trouble, Unit, begin, commit};
use super::super::{accept, talk};
use super::{at, sql};
use crate::accepting::Wanted;
use crate::columns::talk::{conversation, log_row, participant};
use crate::talking::{Additions, Forum, Joined, Said, announcement, place};

/// The row, locked to the end of the transaction.
async fn find(
    connection: &mut PgConnection,
    namespace: &Namespace,
    id: &ConversationId,
) -> Result<Option<Conversation>, Trouble> {
    let row = at(sql::LOCK_ONE, namespace, id).fetch_optional(connection).await?;
    Ok(row.as_ref().map(conversation).transpose()?)
}

pub(super) struct Create<'c> {
    pub(super) namespace: &'c Namespace,
    pub(super) new: &'c Conversation,
    pub(super) participants: &'c [Participant],
    pub(super) messages: &'c [LogRecord],
}

#[async_trait]
impl Unit<Inserted<Conversation>> for Create<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Inserted<Conversation>, Trouble> {
        begin(connection).await?;
        let result = match find(connection, self.namespace, &self.new.conversation_id).await? {
            Some(known) => Inserted::Existing(known),
            None => Inserted::New(self.insert(connection).await?),
        };
        commit(connection).await?;
        Ok(result)
    }
}

impl Create<'_> {
    async fn insert(&self, connection: &mut PgConnection) -> Result<Conversation, Trouble> {
        let now_ms = talk::now_ms(connection).await?;
        let mut new = Conversation {
            status: stored(self.new.status),
            last_offset: 0,
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            ..self.new.clone()
        };
        let home = (self.namespace.clone(), new.conversation_id.clone());
        let mut forums = HashMap::from([(home.clone(), Forum::of(&new))]);
        let said: Vec<Said<'_>> =
            self.messages.iter().map(|record| Said { place: home.clone(), record, shard: None }).collect();
        let joined = self.participants.iter().map(|one| Joined {
            place: home.clone(),
            opened_at_ms: now_ms,
            participant: Participant { joined_at_ms: now_ms, left_at_ms: None, ..one.clone() },
            at_creation: false,
        });
        let additions = Additions {
            joined: joined.collect(),
            placed: place(&said, &mut forums, &Default::default()),
            opened: vec![(self.namespace.clone(), new.clone())],
            ..Additions::default()
        };
        talk::write(connection, now_ms, &additions).await?;
        new.last_offset = additions.placed.len() as u64;
        Ok(new)
    }
}

pub(super) struct Change<'c> {
    pub(super) namespace: &'c Namespace,
    pub(super) id: &'c ConversationId,
    pub(super) change: &'c ConversationChange,
}

#[async_trait]
impl Unit<Option<Conversation>> for Change<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Option<Conversation>, Trouble> {
        begin(connection).await?;
        let mut found = find(connection, self.namespace, self.id).await?;
        if let Some(conversation) = &mut found {
            apply(conversation, self.change);
            conversation.updated_at_ms = conversation.updated_at_ms.max(talk::now_ms(connection).await?);
            let query = at(sql::CHANGE, self.namespace, self.id);
            let query = query.bind(conversation.status.as_str()).bind(conversation.updated_at_ms);
            query.bind(Json::of(conversation).as_str().to_owned()).execute(&mut *connection).await?;
            if self.change.tags.is_some() {
                at(sql::FORGET_TAGS, self.namespace, self.id).execute(&mut *connection).await?;
                talk::tag(connection, self.namespace, conversation).await?;
            }
        }
        commit(connection).await?;
        Ok(found)
    }
}

pub(super) struct Join<'j> {
    pub(super) namespace: &'j Namespace,
    pub(super) id: &'j ConversationId,
    pub(super) new: &'j Participant,
}

#[async_trait]
impl Unit<Option<Inserted<Participant>>> for Join<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Option<Inserted<Participant>>, Trouble> {
        begin(connection).await?;
        let result = match find(connection, self.namespace, self.id).await? {
            Some(conversation) => Some(self.join(connection, &conversation).await?),
            None => None,
        };
        commit(connection).await?;
        Ok(result)
    }
}

impl Join<'_> {
    async fn join(
        &self,
        connection: &mut PgConnection,
        conversation: &Conversation,
    ) -> Result<Inserted<Participant>, Trouble> {
        let same = at(sql::SAME, self.namespace, self.id)
            .bind(self.new.participant_id.as_str())
            .bind(self.new.user_id.as_ref().map(|id| id.as_str()))
            .bind(self.new.agent_id.as_ref().map(|id| id.as_str()))
            .bind(self.new.session_id.as_ref().map(|id| id.as_str()));
        if let Some(row) = same.fetch_optional(&mut *connection).await? {
            return Ok(Inserted::Existing(participant(&row)?));
        }
        let now_ms = talk::now_ms(connection).await?;
        let new = Participant { joined_at_ms: now_ms, left_at_ms: None, ..self.new.clone() };
        let place = (self.namespace.clone(), self.id.clone());
        let joined =
            Joined { place, opened_at_ms: conversation.created_at_ms, participant: new.clone(), at_creation: false };
        let forums = HashMap::from([(joined.place.clone(), Forum::of(conversation))]);
        let additions = Additions { joined: vec![joined], ..Additions::default() };
        talk::write_and_announce(connection, now_ms, &additions, &forums).await?;
        Ok(Inserted::New(new))
    }
}

pub(super) struct Leave<'l> {
    pub(super) namespace: &'l Namespace,
    pub(super) id: &'l ConversationId,
    pub(super) who: &'l ParticipantId,
}

#[async_trait]
impl Unit<Option<Participant>> for Leave<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Option<Participant>, Trouble> {
        begin(connection).await?;
        let result = match find(connection, self.namespace, self.id).await? {
            Some(conversation) => self.leave(connection, &conversation).await?,
            None => None,
        };
        commit(connection).await?;
        Ok(result)
    }
}

impl Leave<'_> {
    async fn leave(
        &self,
        connection: &mut PgConnection,
        conversation: &Conversation,
    ) -> Result<Option<Participant>, Trouble> {
        let seat = at(sql::SEAT, self.namespace, self.id).bind(self.who.as_str());
        let seat = seat.fetch_optional(&mut *connection).await?;
        let Some(known) = seat.as_ref().map(participant).transpose()? else { return Ok(None) };
        if known.left_at_ms.is_some() {
            return Ok(Some(known));
        }
        let now_ms = talk::now_ms(connection).await?;
        let left = at(sql::LEAVE, self.namespace, self.id).bind(self.who.as_str()).bind(now_ms);
        left.execute(&mut *connection).await?;
        let left = Participant { left_at_ms: Some(now_ms), ..known };
        if let Some(record) = seats::left(conversation.status, &left) {
            let home = (self.namespace.clone(), self.id.clone());
            let forums = HashMap::from([(home.clone(), Forum::of(conversation))]);
            talk::write(connection, now_ms, &announcement(&[(home, record)], &forums)).await?;
        }
        Ok(Some(left))
    }
}

pub(super) struct Posting<'p> {
    pub(super) shards: u16,
    pub(super) post: &'p Post,
}

#[async_trait]
impl Unit<Posted> for Posting<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Posted, Trouble> {
        begin(connection).await?;
        let posted = self.append(connection).await?;
        commit(connection).await?;
        Ok(posted)
    }
}

impl Posting<'_> {
    /// The message first, so that it stands in the log before what its actions cause; but sessions are
    /// locked before conversations, here as everywhere.
    async fn append(&self, connection: &mut PgConnection) -> Result<Posted, Trouble> {
        let post = self.post;
        let actions: Vec<&NewAction> = post.actions.iter().collect();
        accept::lock_sessions(connection, &Wanted::of(&actions).sessions).await?;
        let said = Said::of(post);
        let mut forums = talk::lock_forums(connection, &[&said.place]).await?;
        let Some(forum) = forums.get(&said.place) else { return Ok(Posted::NotFound) };
        let known = at(sql::RECORD, &post.namespace, &post.conversation_id);
        let known = known.bind(clean(&post.record.id).into_owned()).fetch_optional(&mut *connection).await?;
        let known = known.as_ref().map(log_row).transpose()?;
        let is_same =
            known.as_ref().map(|row| row.record.kind == post.record.kind && row.record.body == post.record.body);
        if let Some(refused) = refusal(is_same, forum.status) {
            return Ok(refused.into());
        }
        if let Some(row) = known {
            let verdicts = accept::told(connection, &actions).await?;
            return Ok(Posted::Done { offset: row.offset, verdicts });
        }
        let placed = place(std::slice::from_ref(&said), &mut forums, &Default::default());
        let offset = placed.first().map_or(0, |placed| placed.offset);
        let now_ms = talk::now_ms(connection).await?;
        talk::write(connection, now_ms, &Additions { placed, ..Additions::default() }).await?;
        let (verdicts, _) = accept::accept(connection, self.shards, &actions).await?;
        Ok(Posted::Done { offset, verdicts })
    }
}
