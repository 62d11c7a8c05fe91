//! Adding to conversations within a transaction: logs, turns, operations, and who takes part.
//! Conversations are locked after sessions, and operations after conversations.

pub(super) mod columns;
mod sql;

use std::collections::{HashMap, HashSet};

use domain::commit::Commit;
use domain::failure::Failure;
use schemas::conversation::{Conversation, OperationState};
use schemas::id::{Namespace, OperationId, ParticipantId, SessionKey};
use schemas::session::SessionSpec;
use sqlx::PgConnection;

use super::pool::Statement;
use super::rows::{clean, get, id, json, key, name};
use super::writer::Trouble;
use crate::columns::talk::{forum, place, seat};
use crate::judge::{Guest, Seat, Work};
use crate::talking::{Additions, Forum, Joined, Place, Said, Words, announced, announcement};
#[cfg(test)]
pub(super) use sql::SQL;
pub(super) use sql::{add_spent, keep_turn, operation_columns, take_state};

pub(super) type Works = HashMap<(Namespace, OperationId), Work>;

/// Writes what commits say, and answers with the database's time if it was asked for. `forums`: all that they speak in,
/// locked.
pub(super) async fn write_words(
    connection: &mut PgConnection,
    commits: &[&Commit],
    mut forums: HashMap<Place, Forum>,
) -> Result<Option<i64>, Trouble> {
    let words = Words::of(commits);
    if words.is_empty() {
        return Ok(None);
    }
    let homeless = words.speakers.iter().filter(|(place, _)| !forums.contains_key(*place));
    let homeless: Vec<&SessionKey> = homeless.map(|(_, (key, _))| *key).collect();
    let specs = specs(connection, &homeless).await?;
    let (known, now_ms) = known_records(connection, &words.said).await?;
    let additions = words.open(&mut forums, &specs, now_ms);
    write(connection, now_ms, &words.into_additions(forums, &known, additions, now_ms)).await?;
    Ok(Some(now_ms))
}

/// The database's time.
pub(super) async fn now_ms(connection: &mut PgConnection) -> Result<i64, Trouble> {
    Ok(get(&sqlx::query(sql::NOW).fetch_one(connection).await?, "now_ms")?)
}

fn pairs<'p>(sql: &'static str, pairs: impl Iterator<Item = (&'p str, &'p str)>) -> Statement {
    let (namespaces, ids): (Vec<&str>, Vec<&str>) = pairs.unzip();
    sqlx::query(sql).bind(namespaces).bind(ids)
}

/// The conversations that there are; nobody else adds to them before this transaction has ended.
pub(super) async fn lock_forums(
    connection: &mut PgConnection,
    places: &[&Place],
) -> Result<HashMap<Place, Forum>, Trouble> {
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted = pairs(sql::LOCK_FORUMS, places.iter().map(|(namespace, id)| (namespace.as_str(), id.as_str())));
    let rows = wanted.fetch_all(connection).await?;
    Ok(rows.iter().map(|row| Ok((place(row)?, forum(row)?))).collect::<Result<_, Failure>>()?)
}

async fn specs(
    connection: &mut PgConnection,
    keys: &[&SessionKey],
) -> Result<HashMap<SessionKey, SessionSpec>, Trouble> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted = pairs(sql::FIND_SPECS, keys.iter().map(|key| (key.namespace.as_str(), key.session_id.as_str())));
    let rows = wanted.fetch_all(connection).await?;
    Ok(rows.iter().map(|row| Ok((key(row)?, json(row, "spec")?))).collect::<Result<_, Failure>>()?)
}

/// Which of the records a log has already, and the database's time. Their conversations are locked.
async fn known_records(connection: &mut PgConnection, said: &[Said<'_>]) -> Result<(HashSet<usize>, i64), Trouble> {
    if said.is_empty() {
        return Ok((HashSet::new(), now_ms(connection).await?));
    }
    let ids: Vec<String> = said.iter().map(|one| clean(&one.record.id).into_owned()).collect();
    let wanted = pairs(sql::FIND_RECORDS, said.iter().map(|one| (one.place.0.as_str(), one.place.1.as_str())));
    let rows = wanted.bind(ids).fetch_all(connection).await?;
    let now_ms = rows.first().map(|row| get(row, "now_ms")).transpose()?;
    let now_ms = now_ms.ok_or_else(|| Failure::internal("the database did not say its time"))?;
    let mut known = HashSet::new();
    for row in &rows {
        let place = get::<Option<i64>>(row, "place")?;
        known.extend(place.and_then(|place| usize::try_from(place - 1).ok()));
    }
    Ok((known, now_ms))
}

/// The operations that there are.
pub(super) async fn works(connection: &mut PgConnection, wanted: &[(&str, &str)]) -> Result<Works, Trouble> {
    find_works(connection, sql::FIND_WORKS, wanted).await
}

/// The operations that there are; nobody else ends or claims them before this transaction has ended.
pub(super) async fn lock_works(connection: &mut PgConnection, wanted: &[(&str, &str)]) -> Result<Works, Trouble> {
    find_works(connection, sql::LOCK_WORKS, wanted).await
}

async fn find_works(
    connection: &mut PgConnection,
    sql: &'static str,
    wanted: &[(&str, &str)],
) -> Result<Works, Trouble> {
    if wanted.is_empty() {
        return Ok(Works::new());
    }
    let rows = pairs(sql, wanted.iter().copied()).fetch_all(connection).await?;
    let work = |row| {
        let work = Work { session_id: id(row, "session_id")?, state: name(row, "state", OperationState::parse)? };
        Ok(((id(row, "namespace")?, id(row, "operation_id")?), work))
    };
    Ok(rows.iter().map(work).collect::<Result<_, Failure>>()?)
}

/// Where these agents sit.
pub(super) async fn seats(connection: &mut PgConnection, guests: &[Guest]) -> Result<Vec<Seat>, Trouble> {
    if guests.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = pairs(sql::FIND_SEATS, guests.iter().map(|((namespace, id), _)| (namespace.as_str(), id.as_str())));
    let agents: Vec<&str> = guests.iter().map(|(_, agent)| agent.as_str()).collect();
    let rows = wanted.bind(agents).fetch_all(connection).await?;
    Ok(rows.iter().map(seat).collect::<Result<_, Failure>>()?)
}

/// The same once their conversations are locked. `known` were found before; whoever sat down after that has a session
/// that is not locked, and sessions are locked before conversations.
pub(super) async fn seats_still(
    connection: &mut PgConnection,
    guests: &[Guest],
    known: &[Seat],
) -> Result<Vec<Seat>, Trouble> {
    let now = seats(connection, guests).await?;
    if now.iter().all(|seat| known.contains(seat)) { Ok(now) } else { Err(Trouble::Moved) }
}

/// Writes additions in their order; parts without rows cost nothing.
pub(super) async fn write(
    connection: &mut PgConnection,
    now_ms: i64,
    additions: &Additions<'_>,
) -> Result<(), Trouble> {
    write_openings(connection, additions).await?;
    if additions.says() {
        columns::said(sqlx::query(sql::SAY), now_ms, additions).execute(&mut *connection).await?;
    }
    write_operations(connection, additions).await
}

/// Writes additions that say nothing, and tells the logs who has joined. `forums`: what they add to, locked.
pub(super) async fn write_and_announce(
    connection: &mut PgConnection,
    now_ms: i64,
    additions: &Additions<'_>,
    forums: &HashMap<Place, Forum>,
) -> Result<(), Trouble> {
    let joined = write_openings(connection, additions).await?;
    write_operations(connection, additions).await?;
    let records = announced(joined, forums);
    if !records.is_empty() {
        let additions = announcement(&records, forums);
        columns::said(sqlx::query(sql::SAY), now_ms, &additions).execute(connection).await?;
    }
    Ok(())
}

/// Conversations, and who takes part: before anything is said there. Gives those who did not before.
async fn write_openings<'a>(
    connection: &mut PgConnection,
    additions: &'a Additions<'_>,
) -> Result<Vec<&'a Joined>, Trouble> {
    if !additions.opened.is_empty() {
        columns::opened(sqlx::query(sql::OPEN), additions).execute(&mut *connection).await?;
        for (namespace, conversation) in &additions.opened {
            tag(connection, namespace, conversation).await?;
        }
    }
    if additions.joined.is_empty() {
        return Ok(Vec::new());
    }
    let rows = columns::joined(sqlx::query(sql::JOIN), additions).fetch_all(connection).await?;
    let seat = |row| Ok((place(row)?, id::<ParticipantId>(row, "participant_id")?));
    let seated: HashSet<(Place, ParticipantId)> = rows.iter().map(seat).collect::<Result<_, Failure>>()?;
    let is_new = |one: &&Joined| seated.contains(&(one.place.clone(), one.participant.participant_id.clone()));
    Ok(additions.joined.iter().filter(is_new).collect())
}

async fn write_operations(connection: &mut PgConnection, additions: &Additions<'_>) -> Result<(), Trouble> {
    if !additions.operations.is_empty() {
        columns::operations(sqlx::query(sql::PUT_OPERATIONS), &additions.operations).execute(&mut *connection).await?;
    }
    if !additions.ended.is_empty() {
        columns::ended(sqlx::query(sql::END_OPERATIONS), additions).execute(connection).await?;
    }
    Ok(())
}

/// The tags of a conversation.
pub(super) async fn tag(
    connection: &mut PgConnection,
    namespace: &Namespace,
    conversation: &Conversation,
) -> Result<(), Trouble> {
    let count = conversation.tags.len();
    if count == 0 {
        return Ok(());
    }
    sqlx::query(sql::TAG)
        .bind(vec![namespace.as_str(); count])
        .bind(vec![conversation.conversation_id.as_str(); count])
        .bind(vec![conversation.created_at_ms; count])
        .bind(conversation.tags.iter().map(|tag| clean(tag).into_owned()).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    Ok(())
}
