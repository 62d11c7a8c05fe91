//! Adding to conversations within a transaction: logs, turns, operations, and who takes part.

mod packs;
mod sql;

use std::collections::{HashMap, HashSet};

use domain::commit::Commit;
use domain::failure::Failure;
use schemas::conversation::{Conversation, OperationState};
use schemas::id::{Namespace, OperationId, SessionKey};
use schemas::session::SessionSpec;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::failure::failure;
use super::pack::Pack;
use super::rows::{get, id, json, key, name};
use super::writer::Statement;
use crate::columns::talk::{forum, place};
use crate::judge::Work;
use crate::talking::{Additions, Forum, Place, Said, Words};
#[cfg(test)]
pub(super) use sql::SQL;

/// Writes what commits say.
pub(super) async fn write_words(
    connection: &mut SqliteConnection,
    now_ms: i64,
    commits: &[&Commit],
) -> Result<(), Failure> {
    let words = Words::of(commits);
    if words.is_empty() {
        return Ok(());
    }
    let places: Vec<&Place> = words.speakers.keys().collect();
    let mut forums = forums(connection, &places).await?;
    let homeless = words.speakers.iter().filter(|(place, _)| !forums.contains_key(*place));
    let homeless: Vec<&SessionKey> = homeless.map(|(_, (key, _))| *key).collect();
    let specs = specs(connection, &homeless).await?;
    let additions = words.open(&mut forums, &specs, now_ms);
    let known = known_records(connection, &words.said).await?;
    write(connection, now_ms, &words.into_additions(forums, &known, additions, now_ms)).await
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

/// The conversations that there are.
pub(super) async fn forums(
    connection: &mut SqliteConnection,
    places: &[&Place],
) -> Result<HashMap<Place, Forum>, Failure> {
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let wanted = pairs(places.iter().map(|(namespace, id)| (namespace.as_str(), id.as_str())));
    let rows = find(connection, sqlx::query(sql::FIND_FORUMS).bind(wanted)).await?;
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

/// Which of the records a log has already.
pub(super) async fn known_records(
    connection: &mut SqliteConnection,
    said: &[Said<'_>],
) -> Result<HashSet<usize>, Failure> {
    if said.is_empty() {
        return Ok(HashSet::new());
    }
    let mut pack = Pack::default();
    for one in said {
        pack.row(|row| {
            row.id(one.place.0.as_str()).id(one.place.1.as_str()).text(&one.record.id);
        });
    }
    let (wanted, texts) = pack.into_parts();
    let rows = find(connection, sqlx::query(sql::FIND_RECORDS).bind(wanted).bind(texts)).await?;
    rows.iter().map(|row| Ok(usize::try_from(get::<i64>(row, "place")?).unwrap_or(usize::MAX))).collect()
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

/// Writes additions in their order; parts without rows cost nothing.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    now_ms: i64,
    additions: &Additions<'_>,
) -> Result<(), Failure> {
    put(connection, sql::OPEN, packs::opened(additions)).await?;
    put(connection, sql::TAG, packs::tags(additions)).await?;
    put(connection, sql::JOIN, packs::joined(additions)).await?;
    put(connection, sql::LOG, packs::placed(additions)).await?;
    set(connection, sql::MOVE_ENDS, packs::ends(additions, now_ms)).await?;
    set(connection, sql::SPEND, packs::spent(additions)).await?;
    put(connection, sql::PUT_TURNS, packs::turns(additions)).await?;
    put(connection, sql::PUT_OPERATIONS, packs::operations(additions)).await?;
    set(connection, sql::END_OPERATIONS, packs::ended(additions)).await
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
