//! Accepting actions: read what they touch, judge them in order, write the outcome. The same code
//! serves the gateway's calls and the follow-ups of a commit, each within its own transaction.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use domain::failure::Failure;
use domain::ports::{Accepted, Clock, Refusal, Verdict};
use schemas::action::{ActionOutcome, ActionType, NewAction};
use schemas::id::SessionKey;
use schemas::json::Json;
use schemas::limits::{ACCEPT_BATCH_MAX, COMMIT_BATCH_BYTES_MAX};
use schemas::problem::Code;
use schemas::session::{Head, SessionStatus};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::batch::Batched;
use super::failure::{bad_value, failure};
use super::judge::{Book, Entered, Known, Seen};
use super::pack::Pack;
use super::rows::{ActionRow, action_columns, count, get, id, key, name, opt_id, shard};
use super::writer::Writer;

const FIND_ACTIONS: &str = concat!(
    "SELECT ",
    action_columns!(),
    " FROM json_each(?1) AS j
    CROSS JOIN actions AS a ON a.namespace = j.value->>0 AND a.action_id = j.value->>1
    LEFT JOIN sessions AS s ON s.namespace = a.namespace AND s.session_id = a.session_id"
);
const FIND_SESSIONS: &str = "
    SELECT s.namespace, s.session_id, s.agent_id, s.conversation_id, s.shard, s.status, s.created_at_ms,
        s.control_seq, s.work_seq
    FROM json_each(?1) AS j
    CROSS JOIN sessions AS s ON s.namespace = j.value->>0 AND s.session_id = j.value->>1";
const FIND_NEWEST: &str = "
    SELECT s.namespace, s.session_id, s.agent_id, s.conversation_id, s.shard, s.status, s.created_at_ms,
        s.control_seq, s.work_seq
    FROM json_each(?1) AS j
    CROSS JOIN sessions AS s ON s.namespace = j.value->>0 AND s.session_id = (
        SELECT n.session_id FROM sessions AS n INDEXED BY sessions_of_agent
        WHERE n.namespace = j.value->>0 AND n.agent_id = j.value->>1
        ORDER BY n.created_at_ms DESC, n.session_id DESC LIMIT 1)";
const INSERT_SESSIONS: &str = "
    INSERT INTO sessions (namespace, session_id, agent_id, shard, conversation_id, created_at_ms, control_seq,
        work_seq, status, steps, next_offset, moniker, head)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8,
        value->>9, value->>10, cast(substr(?2, value->>11, value->>12) AS TEXT),
        cast(substr(?2, value->>13, value->>14) AS TEXT)
    FROM json_each(?1)";
const INSERT_SPECS: &str = "
    INSERT INTO session_specs (namespace, session_id, spec)
    SELECT value->>0, value->>1, cast(substr(?2, value->>2, value->>3) AS TEXT) FROM json_each(?1)";
const UPDATE_COUNTERS: &str = "
    UPDATE sessions SET control_seq = j.value->>2, work_seq = j.value->>3 FROM json_each(?1) AS j
    WHERE sessions.namespace = j.value->>0 AND sessions.session_id = j.value->>1";
const INSERT_ACTIONS: &str = "
    INSERT INTO actions (namespace, action_id, type, session_id, agent_id, shard, lane, session_seq, accepted_at_ms,
        processed_at_ms, outcome, code, urgency, error, actor, body_hash, payload, metadata)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8,
        value->>9, value->>10, value->>11, value->>12, cast(substr(?2, value->>13, value->>14) AS TEXT),
        cast(substr(?2, value->>15, value->>16) AS TEXT), substr(?2, value->>17, value->>18),
        cast(substr(?2, value->>19, value->>20) AS TEXT), cast(substr(?2, value->>21, value->>22) AS TEXT)
    FROM json_each(?1)";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("accept::find_actions", FIND_ACTIONS),
    ("accept::find_sessions", FIND_SESSIONS),
    ("accept::find_newest", FIND_NEWEST),
    ("accept::insert_sessions", INSERT_SESSIONS),
    ("accept::insert_specs", INSERT_SPECS),
    ("accept::update_counters", UPDATE_COUNTERS),
    ("accept::insert_actions", INSERT_ACTIONS),
];

/// One call of `Ledger::accept`.
pub(super) struct Call {
    actions: Vec<NewAction>,
    bytes: usize,
}

impl Call {
    pub(super) fn new(actions: Vec<NewAction>) -> Self {
        let bytes = actions.iter().map(|new| new.payload.as_str().len() + new.metadata.as_str().len()).sum();
        Self { actions, bytes }
    }
}

impl Batched for Call {
    type Answer = Vec<Verdict>;
    /// Actions and bytes.
    type Load = (usize, usize);

    fn join(&self, load: &mut Self::Load) -> bool {
        let (actions, bytes) = (load.0 + self.actions.len(), load.1 + self.bytes);
        let fits = actions <= ACCEPT_BATCH_MAX && bytes <= COMMIT_BATCH_BYTES_MAX;
        if fits || load.0 == 0 {
            *load = (actions, bytes);
        }
        fits
    }
}

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
            let mut tx = writer.begin().await?;
            let result = accept(tx.connection(), clock.now_ms(), shards, &actions).await;
            let mut verdicts = tx.finish(result).await?.into_iter();
            Ok(calls.iter().map(|call| verdicts.by_ref().take(call.actions.len()).collect()).collect())
        })
    }
}

pub(super) type Running<A> = std::pin::Pin<Box<dyn Future<Output = Result<Vec<A>, Failure>> + Send>>;

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
    let mut book = read(connection, batch).await?;
    let judge = |(index, new): (usize, &&NewAction)| book.judge(index, new, now_ms, shards);
    let verdicts = batch.iter().enumerate().map(judge).collect();
    write(connection, now_ms, batch, &book).await?;
    Ok(verdicts)
}

async fn read(connection: &mut SqliteConnection, batch: &[&NewAction]) -> Result<Book, Failure> {
    let (mut actions, mut sessions, mut agents) = (Pack::default(), Pack::default(), Pack::default());
    for new in batch {
        let namespace = new.namespace.as_str();
        actions.row(|row| {
            row.id(namespace).id(new.action_id.as_str());
        });
        let create = new.session.as_ref();
        if let Some(session) = create.map(|create| &create.session_id).or(new.session_id.as_ref()) {
            sessions.row(|row| {
                row.id(namespace).id(session.as_str());
            });
        }
        // The newest session is the target of what names only the agent, and a create must be newer.
        let agent = match create {
            Some(create) => Some(&create.agent_id),
            None => new.agent_id.as_ref().filter(|_| new.session_id.is_none()),
        };
        if let Some(agent) = agent {
            agents.row(|row| {
                row.id(namespace).id(agent.as_str());
            });
        }
    }
    let mut book = Book::default();
    for row in find(connection, FIND_ACTIONS, actions).await? {
        let row = ActionRow::read(&row)?;
        book.actions.insert((row.namespace.clone(), row.action_id.clone()), seen(row)?);
    }
    for row in find(connection, FIND_SESSIONS, sessions).await? {
        book.sessions.insert(key(&row)?, known(&row)?);
    }
    for row in find(connection, FIND_NEWEST, agents).await? {
        let (key, known) = (key(&row)?, known(&row)?);
        book.newest.insert((key.namespace.clone(), known.agent_id.clone()), key.clone());
        book.sessions.insert(key, known);
    }
    Ok(book)
}

async fn find(connection: &mut SqliteConnection, sql: &'static str, wanted: Pack) -> Result<Vec<SqliteRow>, Failure> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query(sql).bind(wanted.into_json()).fetch_all(connection).await.map_err(failure)
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

/// What a repeat of a stored action is told: a row without a number was refused.
fn seen(row: ActionRow) -> Result<Seen, Failure> {
    let body_hash = row.body_hash;
    let verdict = if row.session_seq.is_none() && row.outcome == Some(ActionOutcome::Rejected) {
        Verdict::Refused(Refusal {
            code: row.code.ok_or_else(|| bad_value("code", "absent"))?,
            detail: row.error.unwrap_or_default(),
            recorded: true,
        })
    } else {
        Verdict::Repeated(Accepted { action: row.into_action()? })
    };
    Ok(Seen { body_hash, verdict })
}

async fn write(
    connection: &mut SqliteConnection,
    now_ms: i64,
    batch: &[&NewAction],
    book: &Book,
) -> Result<(), Failure> {
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
        action_row(&mut actions, now_ms, batch[entered.index], entered, book);
    }
    run(connection, INSERT_SESSIONS, sessions).await?;
    run(connection, INSERT_SPECS, specs).await?;
    if !counters.is_empty() {
        sqlx::query(UPDATE_COUNTERS).bind(counters.into_json()).execute(&mut *connection).await.map_err(failure)?;
    }
    run(connection, INSERT_ACTIONS, actions).await
}

/// Executes a statement over packed rows, if there are any.
pub(super) async fn run(connection: &mut SqliteConnection, sql: &'static str, pack: Pack) -> Result<(), Failure> {
    if pack.is_empty() {
        return Ok(());
    }
    let (json, blob) = pack.into_parts();
    sqlx::query(sql).bind(json).bind(blob).execute(connection).await.map_err(failure)?;
    Ok(())
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

fn action_row(pack: &mut Pack, now_ms: i64, new: &NewAction, entered: &Entered, book: &Book) {
    let target: Option<(&SessionKey, &Known)> =
        entered.target.as_ref().and_then(|key| Some((key, book.sessions.get(key)?)));
    let agent = match (target, &new.session, &new.agent_id) {
        // What names a session of another agent is recorded as it was sent.
        (_, _, Some(agent)) => Some(agent),
        (_, Some(session), None) => Some(&session.agent_id),
        (Some((_, known)), None, None) => Some(&known.agent_id),
        (None, None, None) => None,
    };
    let (outcome, code, error) = match &entered.ended {
        Some((outcome, code, error)) => (Some(*outcome), *code, error.as_deref()),
        None => (None, None, None),
    };
    pack.row(|row| {
        row.id(new.namespace.as_str()).id(new.action_id.as_str()).id(new.kind.as_str());
        row.opt_id(target.map(|(key, _)| key.session_id.as_str())).opt_id(agent.map(|agent| agent.as_str()));
        row.opt_int(target.map(|(_, known)| i64::from(known.shard.0))).id(new.kind.lane().as_str());
        row.opt_int(entered.session_seq.map(|seq| seq as i64)).int(now_ms);
        row.opt_int(outcome.map(|_| now_ms)).opt_id(outcome.map(ActionOutcome::as_str));
        row.opt_id(code.map(Code::as_str)).id(new.urgency.as_str()).opt_text(error).text(&new.actor);
        row.bytes(&new.body_hash).text(new.payload.as_str()).text(new.metadata.as_str());
    });
}

/// The accepted actions that are now under way, for the queue.
pub(super) fn under_way(verdict: Verdict) -> Option<schemas::action::Action> {
    match verdict {
        Verdict::Accepted(accepted) | Verdict::Repeated(accepted) => {
            let started_twice = accepted.action.kind == ActionType::Create && accepted.action.session_seq == 0;
            (!started_twice).then_some(accepted.action)
        }
        Verdict::Refused(_) => None,
    }
}
