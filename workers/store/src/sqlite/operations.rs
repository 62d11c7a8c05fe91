//! Operations: dispatched work on its way through executors, other agents and people.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Claim, Ended, Ending, Hold, OperationQuery, OperationRow, Operations};
use domain::talk::{later, take};
use schemas::action::NewAction;
use schemas::conversation::OperationState;
use schemas::id::{Namespace, OperationId};
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::accept;
use super::failure::failure;
use super::pack::Pack;
use super::rows::get;
use super::writer::Statement;
use crate::columns::talk::{operation, operation_columns};
use crate::judge::Aside;

macro_rules! select {
    ($from:literal, $rest:literal) => {
        concat!("SELECT ", operation_columns!(), " FROM operations AS o", $from, $rest)
    };
}

const ONE: &str = select!("", " WHERE o.namespace = ?1 AND o.operation_id = ?2");
const HAS_DUE: &str = "
    SELECT 1 FROM operations INDEXED BY operations_due
    WHERE kind = 'task' AND state IN ('pending', 'running') AND pool = ?1 AND due_at_ms <= ?2 LIMIT 1";
const DUE: &str = select!(
    " INDEXED BY operations_due",
    " WHERE o.kind = 'task' AND o.state IN ('pending', 'running') AND o.pool = ?1 AND o.due_at_ms <= ?2
    ORDER BY o.due_at_ms, o.namespace, o.operation_id LIMIT ?3"
);
const CLAIM: &str = "
    UPDATE operations SET state = 'running', attempt = j.value->>2, due_at_ms = j.value->>3, until_ms = j.value->>3,
        lost = j.value->>4, claimed_by = ?2
    FROM json_each(?1) AS j WHERE operations.namespace = j.value->>0 AND operations.operation_id = j.value->>1";
const AGAIN: &str = "
    UPDATE operations SET state = 'pending', due_at_ms = ?5, until_ms = NULL, claimed_by = NULL, error = ?6,
        lost = lost + ?7
    WHERE namespace = ?1 AND operation_id = ?2 AND state IN ('pending', 'running')
        AND (?3 IS NULL OR claimed_by = ?3) AND (?4 IS NULL OR until_ms = ?4)";
const BACK: &str = "
    UPDATE operations SET state = 'pending', due_at_ms = ?5, until_ms = NULL, claimed_by = NULL, error = ?6,
        attempt = max(attempt - 1, 0)
    WHERE namespace = ?1 AND operation_id = ?2 AND state = 'running'
        AND (?3 IS NULL OR claimed_by = ?3) AND (?4 IS NULL OR until_ms = ?4)";
const LEFT: &str = "
    UPDATE operations SET due_at_ms = ?5, until_ms = NULL, claimed_by = NULL, error = ?6
    WHERE namespace = ?1 AND operation_id = ?2 AND state = 'running'
        AND (?3 IS NULL OR claimed_by = ?3) AND (?4 IS NULL OR until_ms = ?4)";
const RELEASE: &str = "
    UPDATE operations SET due_at_ms = ?2, until_ms = NULL, claimed_by = NULL
    WHERE kind = 'task' AND state IN ('pending', 'running') AND pool = ?1 AND state = 'running'";
const EXTEND: &str = "
    UPDATE operations SET until_ms = ?4, due_at_ms = ?4
    WHERE namespace = ?1 AND operation_id = ?2 AND state = 'running' AND claimed_by = ?3";
const EXPIRED: &str = select!(
    " INDEXED BY approvals_due",
    " WHERE o.kind = 'approval' AND o.state = 'pending' AND o.until_ms <= ?1
    ORDER BY o.until_ms, o.namespace, o.operation_id LIMIT ?2"
);
const OVERDUE: &str = select!(
    " INDEXED BY agents_due",
    " WHERE o.kind = 'agent' AND o.state = 'pending' AND o.until_ms <= ?1
    ORDER BY o.until_ms, o.namespace, o.operation_id LIMIT ?2"
);
/// As `domain::talk::deadline` says; the very expression of the index.
const UNTAKEN: &str = select!(
    " INDEXED BY operations_waiting",
    " WHERE o.kind = 'task' AND o.state IN ('pending', 'running') AND o.wait_ms IS NOT NULL
        AND (CASE o.state WHEN 'pending' THEN o.created_at_ms ELSE o.due_at_ms END) + o.wait_ms <= ?1
    ORDER BY (CASE o.state WHEN 'pending' THEN o.created_at_ms ELSE o.due_at_ms END) + o.wait_ms,
        o.namespace, o.operation_id LIMIT ?2"
);
const WAITING: &str = "
    SELECT due_at_ms FROM operations INDEXED BY operations_due
    WHERE kind = 'task' AND state IN ('pending', 'running') AND pool = ?1 AND due_at_ms <= ?2
    ORDER BY due_at_ms LIMIT 1";

/// The pages of a list differ in the index that leads; all conditions are in each of them.
macro_rules! list {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            operation_columns!(),
            " FROM operations AS o INDEXED BY ",
            $index,
            " WHERE o.namespace = ?1 AND (o.created_at_ms, o.operation_id) > (?2, ?3)
                AND (?4 IS NULL OR o.conversation_id = ?4)
                AND (?5 IS NULL OR o.turn_id = ?5)
                AND (?6 IS NULL OR o.kind = ?6)
                AND (?7 IS NULL OR o.state = ?7)",
            $condition,
            " ORDER BY o.created_at_ms, o.operation_id LIMIT ?8"
        )
    };
}
const LIST: &str = list!("operations_newest", "");
const LIST_OF_CONVERSATION: &str = list!("operations_of_conversation", " AND o.conversation_id = ?4");
const LIST_OF_TURN: &str = list!("operations_of_turn", " AND o.turn_id = ?5");

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("operations::one", ONE),
    ("operations::has_due", HAS_DUE),
    ("operations::due", DUE),
    ("operations::claim", CLAIM),
    ("operations::again", AGAIN),
    ("operations::back", BACK),
    ("operations::left", LEFT),
    ("operations::release", RELEASE),
    ("operations::extend", EXTEND),
    ("operations::expired", EXPIRED),
    ("operations::overdue", OVERDUE),
    ("operations::untaken", UNTAKEN),
    ("operations::waiting", WAITING),
    ("operations::list", LIST),
    ("operations::list_of_conversation", LIST_OF_CONVERSATION),
    ("operations::list_of_turn", LIST_OF_TURN),
];

#[async_trait]
impl Operations for SqliteStore {
    async fn claim(&self, pool: &str, claimant: &str, hold: Hold, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        let now_ms = self.0.clock.now_ms();
        // Executors ask all the time; only work takes the write lock.
        let has_due = sqlx::query(HAS_DUE).bind(pool).bind(now_ms);
        if limit == 0 || has_due.fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?.is_none() {
            return Ok(Vec::new());
        }
        let mut tx = self.0.writer.begin().await?;
        let claimed = claim(tx.connection(), now_ms, (pool, claimant), hold, limit).await;
        tx.finish(claimed).await
    }

    async fn release(&self, pool: &str) -> Result<u64, Failure> {
        let query = sqlx::query(RELEASE).bind(pool.to_owned()).bind(self.0.clock.now_ms());
        self.0.writer.execute(query).await
    }

    async fn end(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claim: Option<Claim<'_>>,
        ended: Ended,
    ) -> Result<Ending, Failure> {
        let now_ms = self.0.clock.now_ms();
        let query = match ended {
            Ended::Again { after_ms, error, lost } => {
                let query = held(AGAIN, (namespace, id), claim).bind(later(now_ms, after_ms)).bind(error);
                query.bind(i64::from(lost))
            }
            Ended::Back { after_ms, error } => {
                held(BACK, (namespace, id), claim).bind(later(now_ms, after_ms)).bind(error)
            }
            Ended::Left { after_ms, error } => {
                held(LEFT, (namespace, id), claim).bind(later(now_ms, after_ms)).bind(error)
            }
            Ended::Settled { state, action } => {
                let mut tx = self.0.writer.begin().await?;
                let result = settle(tx.connection(), (now_ms, self.0.shards), (id, state), &action).await;
                return tx.finish(result).await;
            }
        };
        let scheduled = self.0.writer.execute(query).await? > 0;
        Ok(if scheduled { Ending::Scheduled } else { Ending::NotOpen })
    }

    async fn extend(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claimant: &str,
        hold_ms: u64,
    ) -> Result<bool, Failure> {
        let query = at(EXTEND, namespace, id).bind(claimant.to_owned()).bind(later(self.0.clock.now_ms(), hold_ms));
        Ok(self.0.writer.execute(query).await? > 0)
    }

    async fn operation(&self, namespace: &Namespace, id: &OperationId) -> Result<Option<OperationRow>, Failure> {
        let row = at(ONE, namespace, id).fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        row.as_ref().map(operation).transpose()
    }

    async fn operations(&self, query: &OperationQuery) -> Result<Vec<OperationRow>, Failure> {
        let (at, id) = query.after.as_ref().map_or((i64::MIN, ""), |(at, id)| (*at, id.as_str()));
        let rows = sqlx::query(list_statement(query))
            .bind(query.namespace.as_str())
            .bind(at)
            .bind(id)
            .bind(query.conversation_id.as_ref().map(|id| id.as_str()))
            .bind(query.turn_id.as_ref().map(|id| id.as_str()))
            .bind(query.kind.map(|kind| kind.as_str()))
            .bind(query.state.map(|state| state.as_str()))
            .bind(query.limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(operation).collect()
    }

    async fn expired_approvals(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        self.over(EXPIRED, limit).await
    }

    async fn untaken(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        self.over(UNTAKEN, limit).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        self.over(OVERDUE, limit).await
    }

    async fn waiting_ms(&self, pool: &str) -> Result<Option<u64>, Failure> {
        let now_ms = self.0.clock.now_ms();
        let query = sqlx::query(WAITING).bind(pool.to_owned()).bind(now_ms);
        let row = query.fetch_optional(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        let Some(row) = row else { return Ok(None) };
        let due_at_ms: i64 = get(&row, "due_at_ms")?;
        Ok(Some(u64::try_from(now_ms - due_at_ms).unwrap_or(0)))
    }
}

impl SqliteStore {
    /// Operations whose time has come.
    async fn over(&self, sql: &'static str, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        let query = sqlx::query(sql).bind(self.0.clock.now_ms()).bind(limit as i64);
        query.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?.iter().map(operation).collect()
    }
}

/// Binds the address of an operation.
fn at(sql: &'static str, namespace: &Namespace, id: &OperationId) -> Statement {
    sqlx::query(sql).bind(namespace.to_string()).bind(id.to_string())
}

/// Binds the address of an operation, and by which claim it must be held, if by a certain one.
fn held(sql: &'static str, (namespace, id): (&Namespace, &OperationId), claim: Option<Claim<'_>>) -> Statement {
    let claimant = claim.map(|claim| claim.claimant.to_owned());
    at(sql, namespace, id).bind(claimant).bind(claim.and_then(|claim| claim.until_ms))
}

/// The statement whose index narrows the query most.
fn list_statement(query: &OperationQuery) -> &'static str {
    if query.turn_id.is_some() {
        LIST_OF_TURN
    } else if query.conversation_id.is_some() {
        LIST_OF_CONVERSATION
    } else {
        LIST
    }
}

async fn claim(
    connection: &mut SqliteConnection,
    now_ms: i64,
    (pool, claimant): (&str, &str),
    hold: Hold,
    limit: usize,
) -> Result<Vec<OperationRow>, Failure> {
    let due = sqlx::query(DUE).bind(pool.to_owned()).bind(now_ms).bind(limit as i64);
    let due = due.fetch_all(&mut *connection).await.map_err(failure)?;
    let mut rows = due.iter().map(operation).collect::<Result<Vec<OperationRow>, Failure>>()?;
    let mut pack = Pack::default();
    for OperationRow { namespace, operation } in &mut rows {
        take(operation, claimant, now_ms, hold);
        pack.row(|row| {
            row.id(namespace.as_str()).id(operation.operation_id.as_str());
            row.int(i64::from(operation.attempt)).int(operation.due_at_ms).int(i64::from(operation.lost));
        });
    }
    let query = sqlx::query(CLAIM).bind(pack.into_json()).bind(claimant.to_owned());
    query.execute(connection).await.map_err(failure)?;
    Ok(rows)
}

/// Accepts the result of an operation that is open, or a repeat of the result that it has.
async fn settle(
    connection: &mut SqliteConnection,
    (now_ms, shards): (i64, u16),
    (id, state): (&OperationId, OperationState),
    action: &NewAction,
) -> Result<Ending, Failure> {
    let batch = [action];
    let mut book = accept::look(connection, &batch, Aside::ending(id, state)).await?;
    if !book.may_end(action, id) {
        return Ok(Ending::NotOpen);
    }
    let verdicts = accept::judge(&mut book, now_ms, shards, &batch);
    accept::enter(connection, now_ms, &batch, &book).await?;
    let verdict = verdicts.into_iter().next().ok_or_else(|| Failure::internal("an action got no verdict"))?;
    Ok(Ending::Settled(verdict))
}
