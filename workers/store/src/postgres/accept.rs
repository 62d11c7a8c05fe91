//! Accepting actions: look at what they touch, judge them in order, write the outcome. The same code
//! serves the gateway's calls and the follow-ups of a commit, each within its own transaction.

mod columns;
mod sql;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::Verdict;
use schemas::action::NewAction;
use schemas::session::SessionStatus;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::pool::Statement;
use super::rows::{action_row, count, get, id, key, name, opt_id, shard};
use super::writer::{Trouble, Unit, Writer, begin, commit};
pub(super) use crate::accepting::Call;
use crate::accepting::{Wanted, seen};
use crate::batch::Running;
use crate::judge::{Book, Known};
#[cfg(test)]
pub(super) use sql::SQL;

/// Runs a batch of calls as one transaction.
pub(super) fn runner(
    writer: Arc<Writer>,
    shards: u16,
) -> impl Fn(Arc<[Call]>, Range<usize>) -> Running<Vec<Verdict>> + Send + Sync + 'static {
    move |calls, range| {
        let writer = writer.clone();
        Box::pin(async move {
            let calls = &calls[range];
            let batch = Batch { shards, actions: calls.iter().flat_map(|call| &call.actions).collect() };
            let mut verdicts = writer.run(&batch).await?.into_iter();
            Ok(calls.iter().map(|call| verdicts.by_ref().take(call.actions.len()).collect()).collect())
        })
    }
}

struct Batch<'b> {
    shards: u16,
    actions: Vec<&'b NewAction>,
}

#[async_trait]
impl Unit<Vec<Verdict>> for Batch<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Vec<Verdict>, Trouble> {
        begin(connection).await?;
        let verdicts = accept(connection, self.shards, &self.actions).await?;
        commit(connection).await?;
        Ok(verdicts)
    }
}

/// Accepts actions within the transaction of the connection; one verdict each, in order.
pub(super) async fn accept(
    connection: &mut PgConnection,
    shards: u16,
    batch: &[&NewAction],
) -> Result<Vec<Verdict>, Trouble> {
    if batch.is_empty() {
        return Ok(Vec::new());
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
        columns::bind(sqlx::query(sql::WRITE), now_ms, batch, &book).execute(connection).await?;
    }
    Ok(verdicts)
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
