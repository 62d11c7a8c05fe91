//! What changes conversations apart from commits: each within a transaction of its own, which holds
//! the file's write lock from its start, so that nobody else writes between look and write.

use std::collections::HashMap;

use domain::failure::Failure;
use domain::ports::{ConversationChange, Inserted};
use domain::talk::{apply, seats, stored};
use schemas::conversation::{Conversation, LogRecord, Participant};
use schemas::id::{ConversationId, Namespace, ParticipantId};
use schemas::json::Json;
use sqlx::SqliteConnection;

use super::super::failure::failure;
use super::super::talk;
use super::{at, sql};
use crate::columns::talk::{conversation, participant};
use crate::talking::{Additions, Forum, Joined, Said, announcement, place};

type Key<'k> = (&'k Namespace, &'k ConversationId);
/// A new conversation, its first participants, and its first messages.
pub(super) type Given<'g> = (&'g Conversation, &'g [Participant], &'g [LogRecord]);

async fn find(connection: &mut SqliteConnection, key: Key<'_>) -> Result<Option<Conversation>, Failure> {
    let row = at(sql::ONE, key.0, key.1).fetch_optional(connection).await.map_err(failure)?;
    row.as_ref().map(conversation).transpose()
}

pub(super) async fn create(
    connection: &mut SqliteConnection,
    now_ms: i64,
    namespace: &Namespace,
    (new, participants, messages): Given<'_>,
) -> Result<Inserted<Conversation>, Failure> {
    if let Some(known) = find(connection, (namespace, &new.conversation_id)).await? {
        return Ok(Inserted::Existing(known));
    }
    let mut new = Conversation {
        status: stored(new.status),
        last_offset: 0,
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
        ..new.clone()
    };
    let home = (namespace.clone(), new.conversation_id.clone());
    let mut forums = HashMap::from([(home.clone(), Forum::of(&new))]);
    let said: Vec<Said<'_>> = messages.iter().map(|record| Said { place: home.clone(), record, shard: None }).collect();
    let joined = participants.iter().map(|one| Joined {
        place: home.clone(),
        opened_at_ms: now_ms,
        participant: Participant { joined_at_ms: now_ms, left_at_ms: None, ..one.clone() },
        at_creation: false,
    });
    let additions = Additions {
        joined: joined.collect(),
        placed: place(&said, &mut forums, &Default::default()),
        opened: vec![(namespace.clone(), new.clone())],
        ..Additions::default()
    };
    talk::write(connection, now_ms, &additions).await?;
    new.last_offset = additions.placed.len() as u64;
    Ok(Inserted::New(new))
}

pub(super) async fn change(
    connection: &mut SqliteConnection,
    now_ms: i64,
    key: Key<'_>,
    change: &ConversationChange,
) -> Result<Option<Conversation>, Failure> {
    let Some(mut conversation) = find(connection, key).await? else { return Ok(None) };
    apply(&mut conversation, change);
    conversation.updated_at_ms = conversation.updated_at_ms.max(now_ms);
    let query = at(sql::CHANGE, key.0, key.1).bind(conversation.status.as_str()).bind(conversation.updated_at_ms);
    let query = query.bind(Json::of(&conversation).as_str().to_owned());
    query.execute(&mut *connection).await.map_err(failure)?;
    if change.tags.is_some() {
        at(sql::FORGET_TAGS, key.0, key.1).execute(&mut *connection).await.map_err(failure)?;
        talk::tag(connection, key.0, &conversation).await?;
    }
    Ok(Some(conversation))
}

pub(super) async fn join(
    connection: &mut SqliteConnection,
    now_ms: i64,
    (namespace, id): Key<'_>,
    new: &Participant,
) -> Result<Option<Inserted<Participant>>, Failure> {
    let Some(conversation) = find(connection, (namespace, id)).await? else { return Ok(None) };
    let same = at(sql::SAME, namespace, id)
        .bind(new.participant_id.to_string())
        .bind(new.user_id.as_ref().map(ToString::to_string))
        .bind(new.agent_id.as_ref().map(ToString::to_string))
        .bind(new.session_id.as_ref().map(ToString::to_string));
    if let Some(row) = same.fetch_optional(&mut *connection).await.map_err(failure)? {
        return Ok(Some(Inserted::Existing(participant(&row)?)));
    }
    let new = Participant { joined_at_ms: now_ms, left_at_ms: None, ..new.clone() };
    let place = (namespace.clone(), id.clone());
    let joined =
        Joined { place, opened_at_ms: conversation.created_at_ms, participant: new.clone(), at_creation: false };
    let forums = HashMap::from([(joined.place.clone(), Forum::of(&conversation))]);
    let additions = Additions { joined: vec![joined], ..Additions::default() };
    talk::write_and_announce(connection, now_ms, &additions, &forums).await?;
    Ok(Some(Inserted::New(new)))
}

pub(super) async fn leave(
    connection: &mut SqliteConnection,
    now_ms: i64,
    (namespace, id): Key<'_>,
    who: &ParticipantId,
) -> Result<Option<Participant>, Failure> {
    let Some(conversation) = find(connection, (namespace, id)).await? else { return Ok(None) };
    let seat = at(sql::SEAT, namespace, id).bind(who.to_string());
    let seat = seat.fetch_optional(&mut *connection).await.map_err(failure)?;
    let Some(known) = seat.as_ref().map(participant).transpose()? else { return Ok(None) };
    if known.left_at_ms.is_some() {
        return Ok(Some(known));
    }
    let left = at(sql::LEAVE, namespace, id).bind(who.to_string()).bind(now_ms);
    left.execute(&mut *connection).await.map_err(failure)?;
    let left = Participant { left_at_ms: Some(now_ms), ..known };
    if let Some(record) = seats::left(conversation.status, &left) {
        let home = (namespace.clone(), id.clone());
        let forums = HashMap::from([(home.clone(), Forum::of(&conversation))]);
        talk::write(connection, now_ms, &announcement(&[(home, record)], &forums)).await?;
    }
    Ok(Some(left))
}
