//! Accepting actions: look at what they touch, judge them in order, write the outcome. The same code
//! serves the gateway's calls and the follow-ups of a commit, each within its own transaction. New
//! sessions are written without a look first: most of them are new indeed.

mod columns;
mod sql;
mod time;

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
use super::writer::{Trouble, Unit, Writer, begin, commit};
pub(super) use crate::accepting::Call;
use crate::accepting::{Wanted, seen};
use crate::batch::Running;
use crate::judge::{Book, Known};
#[cfg(test)]
pub(super) use sql::SQL;
use time::Time;

/// Runs a batch of calls as one transaction.
pub(super) fn runner(
    writer: Arc<Writer>,
    shards: u16,
) -> impl Fn(Arc<[Call]>, Range<usize>) -> Running<Vec<Verdict>> + Send + Sync + 'static {
    let time = Arc::new(Time::default());
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
    /// itself. If one is, the statement changes nothing, and `None` says that it takes a look.
    async fn create(&self, connection: &mut PgConnection) -> Result<Option<Vec<Verdict>>, Trouble> {
        let Some(now_ms) = self.time.now_ms() else { return Ok(None) };
        if !self.actions.iter().all(|new| new.kind == ActionType::Create && new.session.is_some()) {
            return Ok(None);
        }
        let mut book = Book::default();
        let all = self.actions.iter().enumerate();
        let verdicts = all.map(|(index, new)| book.judge(index, new, now_ms, self.shards)).collect();
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
    let wanted = Wanted::of(batch);
    let (mut book, now_ms, has_repeats) = read(&find(&wanted).fetch_all(&mut *connection).await?)?;
    if has_repeats {
        let (namespaces, ids): (Vec<&str>, Vec<&str>) = wanted.actions.iter().copied().unzip();
        let rows = sqlx::query(sql::FIND_ACTIONS).bind(namespaces).bind(ids).fetch_all(&mut *connection).await?;
        for row in &rows {
            let row = action_row(row)?;
            book.actions.insert((row.namespace.clone(), row.action_id.clone()), seen(row)?);
        }
    }
    let verdicts = batch.iter().enumerate().map(|(index, new)| book.judge(index, new, now_ms, shards)).collect();
    if !book.entered.is_empty() {
        let query = columns::bind(sqlx::query(sql::WRITE), now_ms, batch, &book, columns::Agents::Known);
        query.execute(connection).await?;
    }
    Ok((verdicts, Some(now_ms)))
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
