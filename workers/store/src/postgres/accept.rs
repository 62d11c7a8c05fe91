//! Accepting actions: look at what they touch, judge them in order, write the outcome. The same code
//! serves the gateway's calls and the follow-ups of a commit, each within its own transaction. New
//! sessions are written without a look first: most of them are new indeed.

mod columns;
mod sql;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::Verdict;
use schemas::action::{ActionType, NewAction};
use schemas::session::SessionStatus;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::failure::is_duplicate;
use super::pool::Statement;
use super::rows::{action_row, count, get, id, key, name, opt_id, shard};
use super::talk;
use super::time::Time;
use super::writer::{Trouble, Unit, Writer, begin, commit};
pub(super) use crate::accepting::Call;
use crate::accepting::{Wanted, seen};
use crate::batch::Running;
use crate::judge::{Aside, Book, Known, Seat};
#[cfg(test)]
pub(super) use sql::SQL;

/// Runs a batch of calls as one transaction.
pub(super) fn runner(
    writer: Arc<Writer>,
    shards: u16,
    time: Arc<Time>,
) -> impl Fn(Arc<[Call]>, Range<usize>) -> Running<Vec<Verdict>> + Send + Sync + 'static {
    move |calls, range| {
        let (writer, time) = (writer.clone(), time.clone());
        Box::pin(async move {
            let calls = &calls[range];
            let actions = calls.iter().flat_map(|call| &call.actions).collect();
            let batch = Batch { shards, actions, time: &time };
            let mut verdicts = writer.run(&batch).await?.into_iter();
            Ok(calls.iter().map(|call| verdicts.by_ref().take(call.actions.len()).collect()).collect())
        })
    }
}

struct Batch<'b> {
    shards: u16,
    actions: Vec<&'b NewAction>,
    time: &'b Time,
}

#[async_trait]
impl Unit<Vec<Verdict>> for Batch<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Vec<Verdict>, Trouble> {
        if let Some(verdicts) = self.create(connection).await? {
            return Ok(verdicts);
        }
        begin(connection).await?;
        let (verdicts, now_ms) = accept(connection, self.shards, &self.actions).await?;
        commit(connection).await?;
        if let Some(now_ms) = now_ms {
            self.time.told(now_ms);
        }
        Ok(verdicts)
    }
}

impl Batch<'_> {
    /// Writes sessions as if none of them were there, in one statement that is a transaction by
    /// itself. If one is, the statement changes nothing, and `None` says that it takes a look, as it
    /// does for sessions of conversations.
    async fn create(&self, connection: &mut PgConnection) -> Result<Option<Vec<Verdict>>, Trouble> {
        let Some(now_ms) = self.time.now_ms() else { return Ok(None) };
        let is_new = |new: &&NewAction| new.kind == ActionType::Create && new.session.is_some();
        if !self.actions.iter().all(is_new) || Aside::default().is_needed(&self.actions) {
            return Ok(None);
        }
        let mut book = Book::default();
        let verdicts = judge(&mut book, now_ms, self.shards, &self.actions);
        let query = columns::bind(sqlx::query(sql::WRITE), now_ms, &self.actions, &book, columns::Agents::Unknown);
        match query.execute(connection).await {
            Ok(_) => Ok(Some(verdicts)),
            Err(error) if is_duplicate(&error) => Ok(None),
            Err(error) => Err(Trouble::Committing(error)),
        }
    }
}

/// Accepts actions within the transaction of the connection; one verdict each, in order, and the
/// database's time.
pub(super) async fn accept(
    connection: &mut PgConnection,
    shards: u16,
    batch: &[&NewAction],
) -> Result<(Vec<Verdict>, Option<i64>), Trouble> {
    if batch.is_empty() {
        return Ok((Vec::new(), None));
    }
    let (mut book, now_ms) = look(connection, batch, Aside::of(batch)).await?;
    let verdicts = judge(&mut book, now_ms, shards, batch);
    enter(connection, now_ms, batch, &book).await?;
    Ok((verdicts, Some(now_ms)))
}

/// For a transaction that writes to a conversation first: its sessions are locked before that.
pub(super) async fn lock_sessions(connection: &mut PgConnection, named: &[(&str, &str)]) -> Result<(), Trouble> {
    if named.is_empty() {
        return Ok(());
    }
    let (namespaces, sessions): (Vec<&str>, Vec<&str>) = named.iter().copied().unzip();
    sqlx::query(sql::LOCK_SESSIONS).bind(namespaces).bind(sessions).execute(connection).await?;
    Ok(())
}

/// All that must be known before the batch is judged, and the database's time. What will be written
/// to is locked: sessions, then conversations, then operations, each in the order of their ids.
pub(super) async fn look(
    connection: &mut PgConnection,
    batch: &[&NewAction],
    mut aside: Aside,
) -> Result<(Book, i64), Trouble> {
    let operations: Vec<(String, String)> =
        aside.operations(batch).into_iter().map(|(namespace, id)| (namespace.to_owned(), id.to_owned())).collect();
    let operations: Vec<(&str, &str)> =
        operations.iter().map(|(namespace, id)| (namespace.as_str(), id.as_str())).collect();
    let waiting = talk::works(connection, &operations).await?;
    let guests = Aside::guests(batch);
    let seats = talk::seats(connection, &guests).await?;
    let mut wanted = Wanted::of(batch);
    // Whose results these are is said by their operations.
    wanted.sessions.extend(waiting.iter().map(|((namespace, _), work)| (namespace.as_str(), work.session_id.as_str())));
    wanted.sessions.extend(seats.iter().map(Seat::session));
    let (mut book, now_ms, has_repeats) = read(&find(&wanted).fetch_all(&mut *connection).await?)?;
    let places = Aside::places(batch);
    aside.forums = talk::lock_forums(connection, &places.iter().collect::<Vec<_>>()).await?;
    aside.seats = talk::seats_still(connection, &guests, &seats).await?;
    aside.works = talk::lock_works(connection, &operations).await?;
    book.aside = aside;
    // Whoever else brought this very result may have ended its operation while we waited for a lock.
    if has_repeats || !operations.is_empty() {
        find_actions(connection, &wanted.actions, &mut book).await?;
    }
    Ok((book, now_ms))
}

async fn find_actions(connection: &mut PgConnection, wanted: &[(&str, &str)], book: &mut Book) -> Result<(), Trouble> {
    let (namespaces, ids): (Vec<&str>, Vec<&str>) = wanted.iter().copied().unzip();
    let rows = sqlx::query(sql::FIND_ACTIONS).bind(namespaces).bind(ids).fetch_all(&mut *connection).await?;
    for row in &rows {
        let row = action_row(row)?;
        book.actions.insert((row.namespace.clone(), row.action_id.clone()), seen(row)?);
    }
    Ok(())
}

/// What a repeated message is told of its actions. Its conversation is locked, so they are there.
pub(super) async fn told(connection: &mut PgConnection, batch: &[&NewAction]) -> Result<Vec<Verdict>, Trouble> {
    let mut book = Book::default();
    find_actions(connection, &Wanted::of(batch).actions, &mut book).await?;
    Ok(batch.iter().map(|new| book.told(new)).collect())
}

pub(super) fn judge(book: &mut Book, now_ms: i64, shards: u16, batch: &[&NewAction]) -> Vec<Verdict> {
    batch.iter().enumerate().map(|(index, new)| book.judge(index, new, now_ms, shards)).collect()
}

/// Writes what was judged.
pub(super) async fn enter(
    connection: &mut PgConnection,
    now_ms: i64,
    batch: &[&NewAction],
    book: &Book,
) -> Result<(), Trouble> {
    if !book.entered.is_empty() {
        let query = columns::bind(sqlx::query(sql::WRITE), now_ms, batch, book, columns::Agents::Known);
        query.execute(&mut *connection).await?;
    }
    talk::write_and_announce(connection, now_ms, &book.aside.additions, &book.aside.forums).await
}

fn find(wanted: &Wanted<'_>) -> Statement {
    let mut query = sqlx::query(sql::FIND);
    for pairs in [&wanted.actions, &wanted.sessions, &wanted.agents] {
        let (namespaces, ids): (Vec<&str>, Vec<&str>) = pairs.iter().copied().unzip();
        query = query.bind(namespaces).bind(ids);
    }
    query
}

/// What is known of sessions, the database's time, and whether some actions were there before.
fn read(rows: &[PgRow]) -> Result<(Book, i64, bool), Failure> {
    let (mut book, mut now_ms, mut has_repeats) = (Book::default(), None, false);
    for row in rows {
        match get::<&str>(row, "found")? {
            "session" => {
                let (key, known) = (key(row)?, known(row)?);
                if get(row, "is_newest")? {
                    book.newest.insert((key.namespace.clone(), known.agent_id.clone()), key.clone());
                }
                book.sessions.insert(key, known);
            }
            "now" => now_ms = Some(get(row, "created_at_ms")?),
            _ => has_repeats = true,
        }
    }
    let now_ms = now_ms.ok_or_else(|| Failure::internal("the database did not say its time"))?;
    Ok((book, now_ms, has_repeats))
}

fn known(row: &PgRow) -> Result<Known, Failure> {
    Ok(Known {
        agent_id: id(row, "agent_id")?,
        conversation_id: opt_id(row, "conversation_id")?,
        shard: shard(row)?,
        status: name(row, "status", SessionStatus::parse)?,
        created_at_ms: get(row, "created_at_ms")?,
        control_seq: count(row, "control_seq")?,
        work_seq: count(row, "work_seq")?,
        is_new: false,
        is_touched: false,
    })
}
