//! The ledger of actions: reads, marks and upkeep. Acceptance is in `accept`.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Ledger, LedgerStats, Pending, Verdict};
use schemas::action::{Action, ActionView, Lane, NewAction};
use schemas::id::{ActionId, Namespace, SessionId, SessionKey, Shard};

use super::PostgresStore;
use super::rows::{action_columns, action_row, age, bound, count, get, now};
use super::{accept, scan};
use crate::action_row::ActionRow;

const ACTION: &str = concat!(
    "SELECT ",
    action_columns!(),
    " FROM actions AS a LEFT JOIN LATERAL (
        SELECT * FROM sessions AS k WHERE k.namespace = a.namespace AND k.session_id = a.session_id OFFSET 0) AS s ON true
    WHERE a.namespace = $1 AND a.action_id = $2"
);
/// Counter and rows in one statement, and so of one moment. A lane without rows gives one row
/// whose action is absent.
const PENDING: &str = concat!(
    "SELECT CASE $3 WHEN 'control' THEN s.control_seq ELSE s.work_seq END AS last_seq, ",
    action_columns!(),
    " FROM sessions AS s LEFT JOIN LATERAL (
        SELECT * FROM actions AS p
        WHERE p.processed_at_ms IS NULL AND p.shard = s.shard AND p.namespace = s.namespace
            AND p.session_id = s.session_id AND p.lane = $3 AND p.session_seq > $4
        ORDER BY p.session_seq LIMIT $5) AS a ON true
    WHERE s.namespace = $1 AND s.session_id = $2 ORDER BY a.session_seq"
);
const PENDING_COUNT: &str = "
    SELECT count(*) AS pending FROM sessions AS s CROSS JOIN LATERAL (
        SELECT 1 FROM actions AS p
        WHERE p.processed_at_ms IS NULL AND p.shard = s.shard AND p.namespace = s.namespace
            AND p.session_id = s.session_id OFFSET 0) AS a
    WHERE s.namespace = $1 AND s.session_id = $2";
/// In the order of the ids, as commits settle: two of them never wait for each other.
const MARK_PUBLISHED: &str = concat!(
    "WITH mine AS MATERIALIZED (
        SELECT a.namespace, a.action_id FROM unnest($1::text[], $2::text[]) AS j (namespace, action_id)
        JOIN actions AS a ON a.namespace = j.namespace AND a.action_id = j.action_id
        WHERE a.published_at_ms IS NULL ORDER BY a.namespace, a.action_id FOR NO KEY UPDATE OF a
    )
    UPDATE actions AS a SET published_at_ms = ",
    now!(),
    " FROM mine WHERE a.namespace = mine.namespace AND a.action_id = mine.action_id"
);
const UNPUBLISHED: &str = concat!(
    "SELECT ",
    action_columns!(),
    " FROM (
        SELECT * FROM actions AS u WHERE u.processed_at_ms IS NULL AND u.published_at_ms IS NULL
            AND u.accepted_at_ms < ",
    bound!("$1"),
    " ORDER BY u.accepted_at_ms, u.session_seq LIMIT $2) AS a
    JOIN sessions AS s ON s.namespace = a.namespace AND s.session_id = a.session_id
    ORDER BY a.accepted_at_ms, a.session_seq"
);
const FORGET_ACTIONS: &str = concat!(
    "DELETE FROM actions WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM actions WHERE processed_at_ms < ",
    bound!("$1"),
    " ORDER BY processed_at_ms LIMIT $2))"
);
/// Settled effects only stand guard while their action could be repeated.
const FORGET_EFFECTS: &str = concat!(
    "DELETE FROM effects WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM effects WHERE settled_at_ms < ",
    bound!("$1"),
    " ORDER BY settled_at_ms LIMIT $2))"
);
/// The oldest action of those sessions that go on by themselves, among as many as are asked for. Each
/// session is looked up by its key: a join might read them all.
macro_rules! oldest_of {
    ($sessions:literal) => {
        concat!(
            "(SELECT min(o.oldest_ms) FROM (
                SELECT a.namespace, a.session_id, min(a.accepted_at_ms) AS oldest_ms FROM actions AS a
                WHERE a.processed_at_ms IS NULL GROUP BY a.shard, a.namespace, a.session_id",
            $sessions,
            ") AS o
            CROSS JOIN LATERAL (
                SELECT s.status FROM sessions AS s
                WHERE s.namespace = o.namespace AND s.session_id = o.session_id OFFSET 0) AS s
            WHERE s.status NOT IN ('paused', 'error'))"
        )
    };
}
/// What is pending is read whole, and a few sessions are looked up: all of them only if the 256 that
/// have waited longest are held up. What moves those counts wherever it is.
const STATS: &str = concat!(
    "SELECT (SELECT count(*) FROM actions WHERE processed_at_ms IS NULL) AS pending, least(
        coalesce(",
    oldest_of!(" ORDER BY oldest_ms LIMIT 256"),
    ", ",
    oldest_of!(""),
    "),
        (SELECT min(a.accepted_at_ms) FROM actions AS a
        WHERE a.processed_at_ms IS NULL AND a.lane = 'control' AND a.type IN ('pause', 'resume', 'destroy'))
    ) AS oldest_ms"
);
/// One index search per shard, and none over the whole ledger.
const BACKLOG: &str = "
    SELECT (SELECT count(*) FROM actions AS a WHERE a.processed_at_ms IS NULL AND a.shard = j.shard) AS pending
    FROM unnest($1::int4[]) WITH ORDINALITY AS j (shard, place) ORDER BY j.place";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("ledger::action", ACTION),
    ("ledger::pending", PENDING),
    ("ledger::pending_count", PENDING_COUNT),
    ("ledger::mark_published", MARK_PUBLISHED),
    ("ledger::unpublished", UNPUBLISHED),
    ("ledger::forget_actions", FORGET_ACTIONS),
    ("ledger::forget_effects", FORGET_EFFECTS),
    ("ledger::stats", STATS),
    ("ledger::backlog", BACKLOG),
];

#[async_trait]
impl Ledger for PostgresStore {
    async fn accept(&self, actions: Vec<NewAction>) -> Result<Vec<Verdict>, Failure> {
        if actions.is_empty() {
            return Ok(Vec::new());
        }
        self.0.accepts.call(accept::Call::new(actions)).await
    }

    async fn action(&self, namespace: &Namespace, id: &ActionId) -> Result<Option<ActionView>, Failure> {
        let query = sqlx::query(ACTION).bind(namespace.as_str()).bind(id.as_str());
        let row = self.0.by_key.fetch_optional(query).await?;
        row.map(|row| action_row(&row).map(ActionRow::into_view)).transpose()
    }

    async fn pending(&self, key: &SessionKey, lane: Lane, after: u64, limit: usize) -> Result<Pending, Failure> {
        let query = sqlx::query(PENDING)
            .bind(key.namespace.as_str())
            .bind(key.session_id.as_str())
            .bind(lane.as_str())
            .bind(after as i64)
            .bind(limit as i64);
        let rows = self.0.by_key.fetch_all(query).await?;
        let last_seq = rows.first().map_or(Ok(0), |row| count(row, "last_seq"))?;
        let mut actions = Vec::with_capacity(rows.len());
        for row in &rows {
            if get::<Option<&str>>(row, "action_id")?.is_some() {
                actions.push(action_row(row)?.into_action()?);
            }
        }
        Ok(Pending { actions, last_seq })
    }

    async fn pending_count(&self, key: &SessionKey) -> Result<u64, Failure> {
        let query = sqlx::query(PENDING_COUNT).bind(key.namespace.as_str()).bind(key.session_id.as_str());
        count(&self.0.by_key.fetch_one(query).await?, "pending")
    }

    async fn sessions_with_pending(
        &self,
        shard: Shard,
        older_than_ms: u64,
        after: Option<(Namespace, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, Failure> {
        self.0.pending.call(scan::Call(scan::Pending { shard, older_than_ms, after, limit })).await
    }

    async fn mark_published(&self, actions: &[(Namespace, ActionId)]) -> Result<(), Failure> {
        if actions.is_empty() {
            return Ok(());
        }
        let (namespaces, ids): (Vec<&str>, Vec<&str>) =
            actions.iter().map(|(namespace, id)| (namespace.as_str(), id.as_str())).unzip();
        self.0.by_key.execute(|| sqlx::query(MARK_PUBLISHED).bind(&namespaces).bind(&ids)).await.map(drop)
    }

    async fn unpublished(&self, older_than_ms: u64, limit: usize) -> Result<Vec<Action>, Failure> {
        let query = sqlx::query(UNPUBLISHED).bind(age(older_than_ms)).bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(|row| action_row(row)?.into_action()).collect()
    }

    async fn forget_processed(&self, older_than_ms: u64, limit: usize) -> Result<u64, Failure> {
        let forget = |sql: &'static str| move || sqlx::query(sql).bind(age(older_than_ms)).bind(limit as i64);
        self.0.pool.execute(forget(FORGET_EFFECTS)).await?;
        self.0.pool.execute(forget(FORGET_ACTIONS)).await
    }

    async fn stats(&self) -> Result<LedgerStats, Failure> {
        let row = self.0.pool.fetch_one(sqlx::query(STATS)).await?;
        Ok(LedgerStats { pending: count(&row, "pending")?, oldest_ms: get(&row, "oldest_ms")? })
    }

    async fn backlog(&self, shards: &[Shard]) -> Result<Vec<(Shard, u64)>, Failure> {
        let numbers: Vec<i32> = shards.iter().map(|shard| i32::from(shard.0)).collect();
        let rows = self.0.pool.fetch_all(sqlx::query(BACKLOG).bind(numbers)).await?;
        shards.iter().zip(rows).map(|(shard, row)| Ok((*shard, count(&row, "pending")?))).collect()
    }
}
