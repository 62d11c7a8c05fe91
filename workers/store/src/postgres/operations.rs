//! Operations: dispatched work on its way through executors, other agents and people.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Claim, Ended, Ending, Hold, OperationQuery, OperationRow, Operations};
use schemas::action::NewAction;
use schemas::conversation::OperationState;
use schemas::id::{Namespace, OperationId};
use sqlx::PgConnection;

use super::PostgresStore;
use super::accept;
use super::pool::Statement;
use super::rows::{clean, count, moment};
use super::writer::{Trouble, Unit, begin, commit};
use crate::columns::talk::{operation, operation_columns};
use crate::judge::Aside;

const ONE: &str =
    concat!("SELECT ", operation_columns!(), " FROM operations AS o WHERE o.namespace = $1 AND o.operation_id = $2");
/// When a claim ends: the store's time, the timeout of an attempt if it counts ($5), and $3, without
/// ever leaving the range of times. `due_at_ms` follows: nobody may claim it before.
macro_rules! until {
    () => {
        concat!(moment!(), " + CASE WHEN $5::bool THEN least(o.timeout_ms, 2305843009213693951) ELSE 0 END + $3::int8")
    };
}
/// What others are claiming at this moment is passed over. The state comes back as it was; that it was
/// `running` says that the start before was lost, as in `domain::talk::take`.
const CLAIM: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT d.namespace, d.operation_id, d.state, d.due_at_ms FROM operations AS d
        WHERE d.kind = 'task' AND d.state IN ('pending', 'running') AND d.pool = $1 AND d.due_at_ms <= ",
    moment!(),
    " ORDER BY d.due_at_ms, d.namespace, d.operation_id LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED
    ), claimed AS (
        UPDATE operations AS o SET state = 'running', attempt = o.attempt + 1,
            lost = o.lost + CASE d.state WHEN 'running' THEN 1 ELSE 0 END, claimed_by = $2, due_at_ms = ",
    until!(),
    ", until_ms = ",
    until!(),
    " FROM due AS d WHERE o.namespace = d.namespace AND o.operation_id = d.operation_id
        RETURNING o.namespace, o.operation_id, o.attempt, o.lost, o.created_at_ms, o.due_at_ms, o.claimed_by,
            o.until_ms, o.error, o.body, d.state, d.due_at_ms AS was_due_at_ms
    )
    SELECT ",
    operation_columns!(),
    " FROM claimed AS o ORDER BY o.was_due_at_ms, o.namespace, o.operation_id"
);
const AGAIN: &str = concat!(
    "UPDATE operations SET state = 'pending', due_at_ms = ",
    moment!(),
    " + $5::int8, until_ms = NULL, claimed_by = NULL, error = $6, lost = lost + $7::int8
    WHERE namespace = $1 AND operation_id = $2 AND state IN ('pending', 'running')
        AND ($3::text IS NULL OR claimed_by = $3) AND ($4::int8 IS NULL OR until_ms = $4)"
);
const BACK: &str = concat!(
    "UPDATE operations SET state = 'pending', due_at_ms = ",
    moment!(),
    " + $5::int8, until_ms = NULL, claimed_by = NULL, error = $6, attempt = greatest(attempt - 1, 0)
    WHERE namespace = $1 AND operation_id = $2 AND state = 'running'
        AND ($3::text IS NULL OR claimed_by = $3) AND ($4::int8 IS NULL OR until_ms = $4)"
);
const LEFT: &str = concat!(
    "UPDATE operations SET due_at_ms = ",
    moment!(),
    " + $5::int8, until_ms = NULL, claimed_by = NULL, error = $6
    WHERE namespace = $1 AND operation_id = $2 AND state = 'running'
        AND ($3::text IS NULL OR claimed_by = $3) AND ($4::int8 IS NULL OR until_ms = $4)"
);
const RELEASE: &str = concat!(
    "UPDATE operations SET due_at_ms = ",
    moment!(),
    ", until_ms = NULL, claimed_by = NULL WHERE kind = 'task' AND state = 'running' AND pool = $1"
);
const EXTEND: &str = concat!(
    "UPDATE operations SET due_at_ms = ",
    moment!(),
    " + $3::int8, until_ms = ",
    moment!(),
    " + $3::int8 WHERE namespace = $1 AND operation_id = $2 AND state = 'running' AND claimed_by = $4"
);
const EXPIRED: &str = concat!(
    "SELECT ",
    operation_columns!(),
    " FROM operations AS o WHERE o.kind = 'approval' AND o.state = 'pending' AND o.until_ms <= ",
    moment!(),
    " ORDER BY o.until_ms, o.namespace, o.operation_id LIMIT $1"
);
const OVERDUE: &str = concat!(
    "SELECT ",
    operation_columns!(),
    " FROM operations AS o WHERE o.kind = 'agent' AND o.state = 'pending' AND o.until_ms <= ",
    moment!(),
    " ORDER BY o.until_ms, o.namespace, o.operation_id LIMIT $1"
);
/// As `domain::talk::deadline` says; the very expression of the index.
const UNTAKEN: &str = concat!(
    "SELECT ",
    operation_columns!(),
    " FROM operations AS o WHERE o.kind = 'task' AND o.state IN ('pending', 'running') AND o.wait_ms IS NOT NULL
        AND (CASE o.state WHEN 'pending' THEN o.created_at_ms ELSE o.due_at_ms END) + o.wait_ms <= ",
    moment!(),
    " ORDER BY (CASE o.state WHEN 'pending' THEN o.created_at_ms ELSE o.due_at_ms END) + o.wait_ms,
        o.namespace, o.operation_id LIMIT $1"
);
const WAITING: &str = concat!(
    "SELECT ",
    moment!(),
    " - o.due_at_ms AS waiting_ms FROM operations AS o
    WHERE o.kind = 'task' AND o.state IN ('pending', 'running') AND o.pool = $1 AND o.due_at_ms <= ",
    moment!(),
    " ORDER BY o.due_at_ms LIMIT 1"
);
const LIST: &str = concat!(
    "SELECT ",
    operation_columns!(),
    " FROM operations AS o WHERE o.namespace = $1 AND (o.created_at_ms, o.operation_id) > ($2, $3)
        AND ($4::text IS NULL OR o.conversation_id = $4)
        AND ($5::text IS NULL OR o.turn_id = $5)
        AND ($6::text IS NULL OR o.kind = $6)
        AND ($7::text IS NULL OR o.state = $7)
    ORDER BY o.created_at_ms, o.operation_id LIMIT $8"
);

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("operations::one", ONE),
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
];

#[async_trait]
impl Operations for PostgresStore {
    async fn claim(&self, pool: &str, claimant: &str, hold: Hold, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        let (pool, claimant) = (clean(pool).into_owned(), clean(claimant).into_owned());
        let (is_attempt, ms) = match hold {
            Hold::Extended(ms) => (false, ms),
            Hold::Attempt(ms) => (true, ms),
        };
        let query = || {
            let claim = sqlx::query(CLAIM).bind(&pool).bind(&claimant).bind(span(ms));
            claim.bind(limit as i64).bind(is_attempt)
        };
        self.0.by_key.write(query).await?.iter().map(operation).collect()
    }

    async fn release(&self, pool: &str) -> Result<u64, Failure> {
        let pool = clean(pool).into_owned();
        self.0.pool.execute(|| sqlx::query(RELEASE).bind(&pool)).await
    }

    async fn end(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claim: Option<Claim<'_>>,
        ended: Ended,
    ) -> Result<Ending, Failure> {
        let (sql, after_ms, error, lost) = match ended {
            Ended::Again { after_ms, error, lost } => (AGAIN, after_ms, error, Some(i64::from(lost))),
            Ended::Back { after_ms, error } => (BACK, after_ms, error, None),
            Ended::Left { after_ms, error } => (LEFT, after_ms, error, None),
            Ended::Settled { state, action } => {
                let settle = Settle { shards: self.0.shards, id, state, action: &action };
                return self.0.talking.run(&settle).await;
            }
        };
        let (claimant, error) = (claim.map(|claim| clean(claim.claimant).into_owned()), clean(&error).into_owned());
        let until_ms = claim.and_then(|claim| claim.until_ms);
        let query = || {
            let query = at(sql, namespace, id).bind(&claimant).bind(until_ms).bind(span(after_ms)).bind(&error);
            match lost {
                Some(lost) => query.bind(lost),
                None => query,
            }
        };
        let scheduled = self.0.pool.execute(query).await? > 0;
        Ok(if scheduled { Ending::Scheduled } else { Ending::NotOpen })
    }

    async fn extend(
        &self,
        namespace: &Namespace,
        id: &OperationId,
        claimant: &str,
        hold_ms: u64,
    ) -> Result<bool, Failure> {
        let claimant = clean(claimant).into_owned();
        let query = || at(EXTEND, namespace, id).bind(span(hold_ms)).bind(&claimant);
        Ok(self.0.by_key.execute(query).await? > 0)
    }

    async fn operation(&self, namespace: &Namespace, id: &OperationId) -> Result<Option<OperationRow>, Failure> {
        self.0.by_key.fetch_optional(at(ONE, namespace, id)).await?.as_ref().map(operation).transpose()
    }

    async fn operations(&self, query: &OperationQuery) -> Result<Vec<OperationRow>, Failure> {
        let (at, id) = query.after.as_ref().map_or((i64::MIN, ""), |(at, id)| (*at, id.as_str()));
        let statement = sqlx::query(LIST)
            .bind(query.namespace.as_str())
            .bind(at)
            .bind(id)
            .bind(query.conversation_id.as_ref().map(|id| id.as_str()))
            .bind(query.turn_id.as_ref().map(|id| id.as_str()))
            .bind(query.kind.map(|kind| kind.as_str()))
            .bind(query.state.map(|state| state.as_str()))
            .bind(query.limit as i64);
        self.0.pool.fetch_all(statement).await?.iter().map(operation).collect()
    }

    async fn expired_approvals(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        self.0.pool.fetch_all(sqlx::query(EXPIRED).bind(limit as i64)).await?.iter().map(operation).collect()
    }

    async fn untaken(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        self.0.pool.fetch_all(sqlx::query(UNTAKEN).bind(limit as i64)).await?.iter().map(operation).collect()
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<OperationRow>, Failure> {
        self.0.pool.fetch_all(sqlx::query(OVERDUE).bind(limit as i64)).await?.iter().map(operation).collect()
    }

    async fn waiting_ms(&self, pool: &str) -> Result<Option<u64>, Failure> {
        let row = self.0.pool.fetch_optional(sqlx::query(WAITING).bind(clean(pool).into_owned())).await?;
        row.as_ref().map(|row| count(row, "waiting_ms")).transpose()
    }
}

/// Binds the address of an operation.
fn at(sql: &'static str, namespace: &Namespace, id: &OperationId) -> Statement {
    sqlx::query(sql).bind(namespace.as_str()).bind(id.as_str())
}

/// A length of time that can be added to any time.
fn span(ms: u64) -> i64 {
    const LONGEST: i64 = i64::MAX / 4;
    i64::try_from(ms).map_or(LONGEST, |ms| ms.min(LONGEST))
}

/// Accepts the result of an operation that is open, or a repeat of the result that it has.
struct Settle<'s> {
    shards: u16,
    id: &'s OperationId,
    state: OperationState,
    action: &'s NewAction,
}

#[async_trait]
impl Unit<Ending> for Settle<'_> {
    async fn run(&self, connection: &mut PgConnection) -> Result<Ending, Trouble> {
        begin(connection).await?;
        let ending = self.settle(connection).await?;
        commit(connection).await?;
        Ok(ending)
    }
}

impl Settle<'_> {
    async fn settle(&self, connection: &mut PgConnection) -> Result<Ending, Trouble> {
        let batch = [self.action];
        let (mut book, now_ms) = accept::look(connection, &batch, Aside::ending(self.id, self.state)).await?;
        if !book.may_end(self.action, self.id) {
            return Ok(Ending::NotOpen);
        }
        let verdicts = accept::judge(&mut book, now_ms, self.shards, &batch);
        accept::enter(connection, now_ms, &batch, &book).await?;
        let verdict = verdicts.into_iter().next().ok_or_else(|| Failure::internal("an action got no verdict"))?;
        Ok(Ending::Settled(verdict))
    }
}
