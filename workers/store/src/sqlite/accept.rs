//! Accepting actions: read what they touch, judge them in order, write the outcome. The same code
//! serves the gateway's calls and the follow-ups of a commit, each within its own transaction.

pub(super) mod post;
mod sql;

use std::ops::Range;
use std::sync::Arc;

use domain::failure::Failure;
use domain::ports::{Clock, Verdict};
use schemas::action::{ActionOutcome, NewAction};
use schemas::json::Json;
use schemas::problem::Code;
use schemas::session::{Head, SessionStatus};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::failure::failure;
use super::pack::Pack;
use super::rows::{action_row, count, get, id, key, name, opt_id, shard};
use super::talk;
use super::writer::{Statement, Writer};
pub(super) use crate::accepting::Call;
use crate::accepting::{NewRow, Wanted, seen};
use crate::batch::Running;
use crate::judge::{Aside, Book, Known, Seat};

#[cfg(test)]
pub(super) use sql::SQL;

/// Runs a batch of calls as one transaction.
pub(super) fn runner(
    writer: Arc<Writer>,
    clock: Arc<dyn Clock>,
    shards: u16,
) -> impl Fn(Arc<[Call]>, Range<usize>) -> Running<Vec<Verdict>> + Send + Sync + 'static {
    move |calls, range| {
        let (writer, clock) = (writer.clone(), clock.clone());
        Box::pin(async move {
            let calls = &calls[range];
            let actions: Vec<&NewAction> = calls.iter().flat_map(|call| &call.actions).collect();
            let mut verdicts = run(&writer, clock.now_ms(), shards, &actions).await?.into_iter();
            Ok(calls.iter().map(|call| verdicts.by_ref().take(call.actions.len()).collect()).collect())
        })
    }
}

/// A batch that has nothing to do with conversations takes two messages to the connection's thread.
async fn run(writer: &Writer, now_ms: i64, shards: u16, batch: &[&NewAction]) -> Result<Vec<Verdict>, Failure> {
    let aside = Aside::of(batch);
    if aside.is_needed(batch) {
        let mut tx = writer.begin().await?;
        let verdicts = accept_with(tx.connection(), now_ms, shards, batch, aside).await;
        return tx.finish(verdicts).await;
    }
    let (tx, rows) = writer.begin_with(find(sql::BEGIN_AND_FIND, Wanted::of(batch))).await?;
    let mut book = match read(&rows) {
        Ok(book) => book,
        Err(failure) => return tx.finish(Err(failure)).await,
    };
    let verdicts = judge(&mut book, now_ms, shards, batch);
    tx.commit_with(write(sql::WRITE_AND_COMMIT, now_ms, batch, &book)).await?;
    Ok(verdicts)
}

/// Accepts actions within the transaction of the connection; one verdict each, in order.
pub(super) async fn accept(
    connection: &mut SqliteConnection,
    now_ms: i64,
    shards: u16,
    batch: &[&NewAction],
) -> Result<Vec<Verdict>, Failure> {
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    accept_with(connection, now_ms, shards, batch, Aside::of(batch)).await
}

async fn accept_with(
    connection: &mut SqliteConnection,
    now_ms: i64,
    shards: u16,
    batch: &[&NewAction],
    aside: Aside,
) -> Result<Vec<Verdict>, Failure> {
    let mut book = look(connection, batch, aside).await?;
    let verdicts = judge(&mut book, now_ms, shards, batch);
    enter(connection, now_ms, batch, &book).await?;
    Ok(verdicts)
}

/// All that must be known before the batch is judged.
pub(super) async fn look(
    connection: &mut SqliteConnection,
    batch: &[&NewAction],
    mut aside: Aside,
) -> Result<Book, Failure> {
    let works = talk::works(connection, &aside.operations(batch)).await?;
    aside.works = works;
    let places = Aside::places(batch);
    aside.forums = talk::forums(connection, &places.iter().collect::<Vec<_>>()).await?;
    aside.seats = talk::seats(connection, &Aside::guests(batch)).await?;
    let mut wanted = Wanted::of(batch);
    // Whose results these are is said by their operations.
    let waiting = aside.works.iter().map(|((namespace, _), work)| (namespace.as_str(), work.session_id.as_str()));
    wanted.sessions.extend(waiting);
    wanted.sessions.extend(aside.seats.iter().map(Seat::session));
    let rows = find(sql::FIND, wanted).fetch_all(&mut *connection).await.map_err(failure)?;
    Ok(Book { aside, ..read(&rows)? })
}

/// Writes what was judged.
pub(super) async fn enter(
    connection: &mut SqliteConnection,
    now_ms: i64,
    batch: &[&NewAction],
    book: &Book,
) -> Result<(), Failure> {
    write(sql::WRITE, now_ms, batch, book).execute(&mut *connection).await.map_err(failure)?;
    talk::write_and_announce(connection, now_ms, &book.aside.additions, &book.aside.forums).await
}

pub(super) fn judge(book: &mut Book, now_ms: i64, shards: u16, batch: &[&NewAction]) -> Vec<Verdict> {
    batch.iter().enumerate().map(|(index, new)| book.judge(index, new, now_ms, shards)).collect()
}

/// Asks for all that the batch touches.
fn find(script: &'static str, wanted: Wanted<'_>) -> Statement {
    let mut query = sqlx::query(script);
    for pairs in [wanted.actions, wanted.sessions, wanted.agents] {
        let mut pack = Pack::default();
        for (namespace, id) in pairs {
            pack.row(|row| {
                row.id(namespace).id(id);
            });
        }
        query = query.bind(pack.into_json());
    }
    query
}

fn read<'r>(rows: impl IntoIterator<Item = &'r SqliteRow>) -> Result<Book, Failure> {
    let mut book = Book::default();
    for row in rows {
        match get::<&str>(row, "found")? {
            "action" => {
                let row = action_row(row)?;
                book.actions.insert((row.namespace.clone(), row.action_id.clone()), seen(row)?);
            }
            "session" => {
                book.sessions.insert(key(row)?, known(row)?);
            }
            _ => {
                let (key, known) = (key(row)?, known(row)?);
                book.newest.insert((key.namespace.clone(), known.agent_id.clone()), key.clone());
                book.sessions.insert(key, known);
            }
        }
    }
    Ok(book)
}

fn known(row: &SqliteRow) -> Result<Known, Failure> {
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

/// Writes what was judged. Parts without rows are there too: they cost nothing.
fn write(script: &'static str, now_ms: i64, batch: &[&NewAction], book: &Book) -> Statement {
    let (sessions, specs) = created_rows(batch, book);
    let mut counters = Pack::default();
    for (key, known) in book.sessions.iter().filter(|(_, known)| known.is_touched && !known.is_new) {
        counters.row(|row| {
            row.id(key.namespace.as_str()).id(key.session_id.as_str());
            row.int(known.control_seq as i64).int(known.work_seq as i64);
        });
    }
    let mut actions = Pack::default();
    for entered in &book.entered {
        pack_action(&mut actions, now_ms, &NewRow::of(entered, batch, book));
    }
    let ((sessions, session_texts), (specs, spec_texts)) = (sessions.into_parts(), specs.into_parts());
    let (actions, action_texts) = actions.into_parts();
    let query = sqlx::query(script).bind(sessions).bind(session_texts).bind(specs).bind(spec_texts);
    query.bind(counters.into_json()).bind(actions).bind(action_texts)
}

fn created_rows(batch: &[&NewAction], book: &Book) -> (Pack, Pack) {
    let (mut sessions, mut specs) = (Pack::default(), Pack::default());
    for (key, index) in &book.created {
        let (Some(new), Some(known)) = (&batch[*index].session, book.sessions.get(key)) else { continue };
        let head = Head::starting(known.created_at_ms);
        let (namespace, session) = (key.namespace.as_str(), key.session_id.as_str());
        sessions.row(|row| {
            row.id(namespace).id(session).id(known.agent_id.as_str()).int(i64::from(known.shard.0));
            row.opt_id(known.conversation_id.as_ref().map(|id| id.as_str())).int(known.created_at_ms);
            row.int(known.control_seq as i64).int(known.work_seq as i64).id(head.status.as_str());
            row.int(head.steps as i64).int(head.next_offset as i64);
            row.text(&new.spec.moniker).text(Json::of(&head).as_str());
        });
        specs.row(|row| {
            row.id(namespace).id(session).text(Json::of(&new.spec).as_str());
        });
    }
    (sessions, specs)
}

fn pack_action(pack: &mut Pack, now_ms: i64, row: &NewRow<'_>) {
    let NewRow { new, target, agent, session_seq, outcome, code, error } = *row;
    pack.row(|row| {
        row.id(new.namespace.as_str()).id(new.action_id.as_str()).id(new.kind.as_str());
        row.opt_id(target.map(|(key, _)| key.session_id.as_str())).opt_id(agent.map(|agent| agent.as_str()));
        row.opt_int(target.map(|(_, known)| i64::from(known.shard.0))).id(new.kind.lane().as_str());
        row.opt_int(session_seq.map(|seq| seq as i64)).int(now_ms);
        row.opt_int(outcome.map(|_| now_ms)).opt_id(outcome.map(ActionOutcome::as_str));
        row.opt_id(code.map(Code::as_str)).id(new.urgency.as_str()).opt_text(error).text(&new.actor);
        row.bytes(&new.body_hash).text(new.payload.as_str()).text(new.metadata.as_str());
    });
}
