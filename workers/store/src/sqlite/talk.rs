//! Adding to conversations within a transaction: logs, turns, operations, and who takes part.

mod packs;
mod sql;

use std::collections::{HashMap, HashSet};

use domain::failure::Failure;
use schemas::conversation::{Conversation, OperationState};
use schemas::id::{Namespace, OperationId, ParticipantId, SessionKey};
use schemas::limits::SPENT_OF_SHARD_MAX;
use schemas::session::SessionSpec;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::failure::failure;
use super::pack::Pack;
use super::rows::{get, id, json, key, name};
use super::writer::Statement;
use crate::columns::talk::{forum, place, seat};
use crate::judge::{Guest, Seat, Work};
use crate::talking::{Additions, Forum, Joined, Place, Words, announced, announcement};
#[cfg(test)]
pub(super) use sql::SQL;
pub(super) use sql::{find_forums, find_records, insert_log, move_ends, put_turns, say as say_script, spend};

/// What must be known of conversations before anything is added to them.
#[derive(Default)]
pub(super) struct Known {
    forums: HashMap<Place, Forum>,
    /// Records of what is said that a log has already, by their place in the list.
    records: HashSet<usize>,
}

/// Binds what a script is to look for.
pub(super) fn wanted(query: Statement, words: &Words<'_>) -> Statement {
    let forums = pairs(words.speakers.keys().map(|(namespace, id)| (namespace.as_str(), id.as_str())));
    let (records, texts) = packs::records(&words.said).into_parts();
    query.bind(forums).bind(records).bind(texts)
}

/// What a script has found; other rows are passed over.
pub(super) fn known(rows: &[SqliteRow]) -> Result<Known, Failure> {
    let mut known = Known::default();
    for row in rows {
        match get::<&str>(row, "done")? {
            "forum" => {
                known.forums.insert(place(row)?, forum(row)?);
            }
            "record" => {
                known.records.insert(position(row)?);
            }
            _ => {}
        }
    }
    Ok(known)
}

pub(super) async fn look(connection: &mut SqliteConnection, words: &Words<'_>) -> Result<Known, Failure> {
    known(&find(connection, wanted(sqlx::query(sql::LOOK), words)).await?)
}

/// What commits add, and where.
pub(super) async fn additions<'b>(
    connection: &mut SqliteConnection,
    now_ms: i64,
    words: Words<'b>,
    known: Known,
) -> Result<Additions<'b>, Failure> {
    let Known { mut forums, records } = known;
    let homeless = words.speakers.iter().filter(|(place, _)| !forums.contains_key(*place));
    let homeless: Vec<&SessionKey> = homeless.map(|(_, (key, _))| *key).collect();
    let specs = specs(connection, &homeless).await?;
    let additions = words.open(&mut forums, &specs, now_ms);
    Ok(words.into_additions(forums, &records, additions, now_ms))
}

async fn find(connection: &mut SqliteConnection, query: Statement) -> Result<Vec<SqliteRow>, Failure> {
    query.fetch_all(connection).await.map_err(failure)
}

fn pairs<'p>(pairs: impl Iterator<Item = (&'p str, &'p str)>) -> String {
    let mut pack = Pack::default();
    for (namespace, id) in pairs {
        pack.row(|row| {
            row.id(namespace).id(id);
        });
    }
    pack.into_json()
}

/// Names conversations to a script.
pub(super) fn keys(places: &[&Place]) -> String {
    pairs(places.iter().map(|(namespace, id)| (namespace.as_str(), id.as_str())))
}

/// The conversations that there are.
pub(super) async fn forums(
    connection: &mut SqliteConnection,
    places: &[&Place],
) -> Result<HashMap<Place, Forum>, Failure> {
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = find(connection, sqlx::query(sql::FIND_FORUMS).bind(keys(places))).await?;
    rows.iter().map(|row| Ok((place(row)?, forum(row)?))).collect()
}

async fn specs(
    connection: &mut SqliteConnection,
    keys: &[&SessionKey],
) -> Result<HashMap<SessionKey, SessionSpec>, Failure> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted = pairs(keys.iter().map(|key| (key.namespace.as_str(), key.session_id.as_str())));
    let rows = find(connection, sqlx::query(sql::FIND_SPECS).bind(wanted)).await?;
    rows.iter().map(|row| Ok((key(row)?, json(row, "spec")?))).collect()
}

fn position(row: &SqliteRow) -> Result<usize, Failure> {
    Ok(usize::try_from(get::<i64>(row, "place")?).unwrap_or(usize::MAX))
}

/// The operations that there are.
pub(super) async fn works(
    connection: &mut SqliteConnection,
    wanted: &[(&str, &str)],
) -> Result<HashMap<(Namespace, OperationId), Work>, Failure> {
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = find(connection, sqlx::query(sql::FIND_WORKS).bind(pairs(wanted.iter().copied()))).await?;
    let work = |row| {
        let work = Work { session_id: id(row, "session_id")?, state: name(row, "state", OperationState::parse)? };
        Ok(((id(row, "namespace")?, id(row, "operation_id")?), work))
    };
    rows.iter().map(work).collect()
}

/// Where these agents sit.
pub(super) async fn seats(connection: &mut SqliteConnection, guests: &[Guest]) -> Result<Vec<Seat>, Failure> {
    if guests.is_empty() {
        return Ok(Vec::new());
    }
    let mut pack = Pack::default();
    for ((namespace, conversation), agent) in guests {
        pack.row(|row| {
            row.id(namespace.as_str()).id(conversation.as_str()).id(agent.as_str());
        });
    }
    let rows = find(connection, sqlx::query(sql::FIND_SEATS).bind(pack.into_json())).await?;
    rows.iter().map(seat).collect()
}

/// Writes additions in their order; parts without rows cost nothing.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    now_ms: i64,
    additions: &Additions<'_>,
) -> Result<(), Failure> {
    write_openings(connection, additions).await?;
    if additions.says() {
        let say = say(sqlx::query(sql::SAY), now_ms, additions);
        say.execute(&mut *connection).await.map_err(failure)?;
    }
    write_operations(connection, additions).await
}

/// Writes additions that say nothing, and tells the logs who has joined. `forums`: what they add to.
pub(super) async fn write_and_announce(
    connection: &mut SqliteConnection,
    now_ms: i64,
    additions: &Additions<'_>,
    forums: &HashMap<Place, Forum>,
) -> Result<(), Failure> {
    let joined = write_openings(connection, additions).await?;
    write_operations(connection, additions).await?;
    let records = announced(joined, forums);
    if records.is_empty() {
        return Ok(());
    }
    let say = say(sqlx::query(sql::SAY), now_ms, &announcement(&records, forums));
    say.execute(connection).await.map(drop).map_err(failure)
}

/// Conversations, and who takes part: before anything is said there. Gives those who did not before.
pub(super) async fn write_openings<'a>(
    connection: &mut SqliteConnection,
    additions: &'a Additions<'_>,
) -> Result<Vec<&'a Joined>, Failure> {
    put(connection, sql::OPEN, packs::opened(additions)).await?;
    put(connection, sql::TAG, packs::tags(additions)).await?;
    if additions.joined.is_empty() {
        return Ok(Vec::new());
    }
    let (rows, texts) = packs::joined(additions).into_parts();
    let rows = find(connection, sqlx::query(sql::JOIN).bind(rows).bind(texts)).await?;
    let seat = |row| Ok((place(row)?, id::<ParticipantId>(row, "participant_id")?));
    let seated: HashSet<(Place, ParticipantId)> = rows.iter().map(seat).collect::<Result<_, Failure>>()?;
    let is_new = |one: &&Joined| seated.contains(&(one.place.clone(), one.participant.participant_id.clone()));
    Ok(additions.joined.iter().filter(is_new).collect())
}

pub(super) async fn write_operations(
    connection: &mut SqliteConnection,
    additions: &Additions<'_>,
) -> Result<(), Failure> {
    put(connection, sql::PUT_OPERATIONS, packs::operations(additions)).await?;
    set(connection, sql::END_OPERATIONS, packs::ended(additions)).await
}

/// Binds what is said.
pub(super) fn say(query: Statement, now_ms: i64, additions: &Additions<'_>) -> Statement {
    let ((log, texts), (turns, turn_texts)) =
        (packs::placed(additions).into_parts(), packs::turns(additions).into_parts());
    let query = query.bind(log).bind(texts).bind(packs::ends(additions, now_ms).into_json());
    let query = query.bind(packs::spent(additions).into_json()).bind(turns).bind(turn_texts);
    query.bind(SPENT_OF_SHARD_MAX as i64)
}

/// The tags of a conversation.
pub(super) async fn tag(
    connection: &mut SqliteConnection,
    namespace: &Namespace,
    conversation: &Conversation,
) -> Result<(), Failure> {
    let mut pack = Pack::default();
    packs::tags_of(&mut pack, namespace, conversation);
    put(connection, sql::TAG, pack).await
}

/// Rows with texts.
async fn put(connection: &mut SqliteConnection, sql: &'static str, pack: Pack) -> Result<(), Failure> {
    if pack.is_empty() {
        return Ok(());
    }
    let (rows, texts) = pack.into_parts();
    sqlx::query(sql).bind(rows).bind(texts).execute(connection).await.map(drop).map_err(failure)
}

/// Rows without texts.
async fn set(connection: &mut SqliteConnection, sql: &'static str, pack: Pack) -> Result<(), Failure> {
    if pack.is_empty() {
        return Ok(());
    }
    sqlx::query(sql).bind(pack.into_json()).execute(connection).await.map(drop).map_err(failure)
}
