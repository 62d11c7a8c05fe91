//! The ledger of actions: reads, marks and upkeep. Acceptance is in `accept`.

use async_trait::async_trait;
use domain::failure::Failure;
use domain::ports::{Ledger, LedgerStats, Pending, Verdict};
use schemas::action::{Action, ActionView, Lane, NewAction};
use schemas::id::{ActionId, Namespace, SessionId, SessionKey, Shard};

use super::SqliteStore;
use super::accept;
use super::failure::failure;
use super::pack::Pack;
use super::rows::{action_columns, action_row, count, get, key};
use crate::action_row::ActionRow;

const ACTION: &str = concat!(
    "SELECT ",
    action_columns!(),
    " FROM actions AS a LEFT JOIN sessions AS s ON s.namespace = a.namespace AND s.session_id = a.session_id
    WHERE a.namespace = ?1 AND a.action_id = ?2"
);
/// Counter and rows in one statement, and so of one moment. A lane without rows gives one row
/// whose action is absent.
const PENDING: &str = concat!(
    "SELECT CASE ?3 WHEN 'control' THEN s.control_seq ELSE s.work_seq END AS last_seq, a.id AS row_id, ",
    action_columns!(),
    " FROM sessions AS s LEFT JOIN actions AS a INDEXED BY actions_pending
        ON a.processed_at_ms IS NULL AND a.shard = s.shard AND a.namespace = s.namespace
        AND a.session_id = s.session_id AND a.lane = ?3 AND a.session_seq > ?4
    WHERE s.namespace = ?1 AND s.session_id = ?2
    ORDER BY a.session_seq LIMIT ?5"
);
const PENDING_COUNT: &str = "
    SELECT count(*) AS pending FROM sessions AS s CROSS JOIN actions AS a INDEXED BY actions_pending
        ON a.processed_at_ms IS NULL AND a.shard = s.shard AND a.namespace = s.namespace
        AND a.session_id = s.session_id
    WHERE s.namespace = ?1 AND s.session_id = ?2";
/// Steps from session to session over the index, however many actions each one has.
const SESSIONS_WITH_PENDING: &str = "
    WITH RECURSIVE walk (namespace, session_id) AS (
        SELECT * FROM (
            SELECT a.namespace, a.session_id FROM actions AS a INDEXED BY actions_pending
            WHERE a.processed_at_ms IS NULL AND a.shard = ?1 AND (a.namespace, a.session_id) > (?2, ?3)
            ORDER BY a.namespace, a.session_id LIMIT 1)
        UNION ALL
        SELECT n.namespace, n.session_id FROM walk CROSS JOIN actions AS n ON n.id = coalesce(
            (SELECT a.id FROM actions AS a INDEXED BY actions_pending
            WHERE a.processed_at_ms IS NULL AND a.shard = ?1
                AND a.namespace = walk.namespace AND a.session_id > walk.session_id
            ORDER BY a.session_id LIMIT 1),
            (SELECT a.id FROM actions AS a INDEXED BY actions_pending
            WHERE a.processed_at_ms IS NULL AND a.shard = ?1 AND a.namespace > walk.namespace
            ORDER BY a.namespace, a.session_id LIMIT 1))
    )
    SELECT w.namespace, w.session_id FROM walk AS w
    CROSS JOIN sessions AS s ON s.namespace = w.namespace AND s.session_id = w.session_id
    WHERE CASE WHEN s.status IN ('paused', 'error') THEN EXISTS (
            SELECT 1 FROM actions AS a INDEXED BY actions_pending
            WHERE a.processed_at_ms IS NULL AND a.shard = ?1 AND a.namespace = w.namespace
                AND a.session_id = w.session_id AND a.lane = 'control' AND a.accepted_at_ms < ?4
                AND a.type IN ('pause', 'resume', 'destroy'))
        ELSE ?4 > min(
            coalesce((SELECT a.accepted_at_ms FROM actions AS a INDEXED BY actions_pending
                WHERE a.processed_at_ms IS NULL AND a.shard = ?1 AND a.namespace = w.namespace
                    AND a.session_id = w.session_id AND a.lane = 'control'
                ORDER BY a.session_seq LIMIT 1), ?4),
            coalesce((SELECT a.accepted_at_ms FROM actions AS a INDEXED BY actions_pending
                WHERE a.processed_at_ms IS NULL AND a.shard = ?1 AND a.namespace = w.namespace
                    AND a.session_id = w.session_id AND a.lane = 'work'
                ORDER BY a.session_seq LIMIT 1), ?4)) END
    LIMIT ?5";
const MARK_PUBLISHED: &str = "
    UPDATE actions SET published_at_ms = ?2 FROM json_each(?1) AS j
    WHERE actions.namespace = j.value->>0 AND actions.action_id = j.value->>1 AND actions.published_at_ms IS NULL";
const UNPUBLISHED: &str = concat!(
    "SELECT ",
    action_columns!(),
    " FROM actions AS a INDEXED BY actions_unpublished
    CROSS JOIN sessions AS s ON s.namespace = a.namespace AND s.session_id = a.session_id
    WHERE a.processed_at_ms IS NULL AND a.published_at_ms IS NULL AND a.accepted_at_ms < ?1
    ORDER BY a.accepted_at_ms, a.id LIMIT ?2"
);
const FORGET_ACTIONS: &str = "
    DELETE FROM actions WHERE id IN (
        SELECT id FROM actions INDEXED BY actions_processed
        WHERE processed_at_ms IS NOT NULL AND processed_at_ms < ?1 ORDER BY processed_at_ms LIMIT ?2)";
/// Settled effects only stand guard while their action could be repeated.
const FORGET_EFFECTS: &str = "
    DELETE FROM effects WHERE (namespace, session_id, effect_key) IN (
        SELECT namespace, session_id, effect_key FROM effects INDEXED BY effects_settled
        WHERE settled_at_ms IS NOT NULL AND settled_at_ms < ?1 ORDER BY settled_at_ms LIMIT ?2)";
/// The oldest action of those sessions that go on by themselves, among as many as are asked for.
macro_rules! oldest_of {
    ($sessions:literal) => {
        concat!(
            "(SELECT min(o.oldest_ms) FROM (
                SELECT a.namespace, a.session_id, min(a.accepted_at_ms) AS oldest_ms
                FROM actions AS a INDEXED BY actions_pending WHERE a.processed_at_ms IS NULL
                GROUP BY a.shard, a.namespace, a.session_id",
            $sessions,
            ") AS o
            CROSS JOIN sessions AS s ON s.namespace = o.namespace AND s.session_id = o.session_id
            WHERE s.status NOT IN ('paused', 'error'))"
        )
    };
}
/// The index is read whole, and a few sessions are looked up: all of them only if the 256 that have
/// waited longest are held up. What moves those counts wherever it is.
const STATS: &str = concat!(
    "SELECT (SELECT count(*) FROM actions INDEXED BY actions_pending WHERE processed_at_ms IS NULL) AS pending,
        (SELECT min(m.at_ms) FROM (
            SELECT coalesce(",
    oldest_of!(" ORDER BY oldest_ms LIMIT 256"),
    ", ",
    oldest_of!(""),
    ") AS at_ms
            UNION ALL
            SELECT min(a.accepted_at_ms) FROM actions AS a INDEXED BY actions_pending
            WHERE a.processed_at_ms IS NULL AND a.lane = 'control' AND a.type IN ('pause', 'resume', 'destroy')
        ) AS m) AS oldest_ms"
);
/// One index search per shard, and none over the whole ledger.
const BACKLOG: &str = "
    SELECT (SELECT count(*) FROM actions AS a INDEXED BY actions_pending
        WHERE a.processed_at_ms IS NULL AND a.shard = j.value) AS pending
    FROM json_each(?1) AS j ORDER BY j.key";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("ledger::action", ACTION),
    ("ledger::pending", PENDING),
    ("ledger::pending_count", PENDING_COUNT),
    ("ledger::sessions_with_pending", SESSIONS_WITH_PENDING),
    ("ledger::mark_published", MARK_PUBLISHED),
    ("ledger::unpublished", UNPUBLISHED),
    ("ledger::forget_actions", FORGET_ACTIONS),
    ("ledger::forget_effects", FORGET_EFFECTS),
    ("ledger::stats", STATS),
    ("ledger::backlog", BACKLOG),
];

#[async_trait]
impl Ledger for SqliteStore {
    async fn accept(&self, actions: Vec<NewAction>) -> Result<Vec<Verdict>, Failure> {
        if actions.is_empty() {
            return Ok(Vec::new());
        }
        self.0.accepts.call(accept::Call::new(actions)).await
    }

    async fn action(&self, namespace: &Namespace, id: &ActionId) -> Result<Option<ActionView>, Failure> {
        let row = sqlx::query(ACTION)
            .bind(namespace.as_str())
            .bind(id.as_str())
            .fetch_optional(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        row.map(|row| action_row(&row).map(ActionRow::into_view)).transpose()
    }

    async fn pending(&self, key: &SessionKey, lane: Lane, after: u64, limit: usize) -> Result<Pending, Failure> {
        let rows = sqlx::query(PENDING)
            .bind(key.namespace.as_str())
            .bind(key.session_id.as_str())
            .bind(lane.as_str())
            .bind(after as i64)
            // Even when no action is asked for, one row brings the counter.
            .bind(limit.max(1) as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        let last_seq = rows.first().map_or(Ok(0), |row| count(row, "last_seq"))?;
        let mut actions = Vec::with_capacity(rows.len());
        for row in rows.iter().take(limit) {
            if get::<Option<i64>>(row, "row_id")?.is_some() {
                actions.push(action_row(row)?.into_action()?);
            }
        }
        Ok(Pending { actions, last_seq })
    }

    async fn pending_count(&self, key: &SessionKey) -> Result<u64, Failure> {
        let row = sqlx::query(PENDING_COUNT)
            .bind(key.namespace.as_str())
            .bind(key.session_id.as_str())
            .fetch_one(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        count(&row, "pending")
    }

    async fn sessions_with_pending(
        &self,
        shard: Shard,
        older_than_ms: u64,
        after: Option<(Namespace, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, Failure> {
        let after = after.as_ref().map_or(("", ""), |(namespace, session)| (namespace.as_str(), session.as_str()));
        let rows = sqlx::query(SESSIONS_WITH_PENDING)
            .bind(i64::from(shard.0))
            .bind(after.0)
            .bind(after.1)
            .bind(self.bound_ms(older_than_ms))
            .bind(limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(key).collect()
    }

    async fn mark_published(&self, actions: &[(Namespace, ActionId)]) -> Result<(), Failure> {
        if actions.is_empty() {
            return Ok(());
        }
        let mut pack = Pack::default();
        for (namespace, id) in actions {
            pack.row(|row| {
                row.id(namespace.as_str()).id(id.as_str());
            });
        }
        let query = sqlx::query(MARK_PUBLISHED).bind(pack.into_json()).bind(self.0.clock.now_ms());
        self.0.writer.execute(query).await.map(drop)
    }

    async fn unpublished(&self, older_than_ms: u64, limit: usize) -> Result<Vec<Action>, Failure> {
        let rows = sqlx::query(UNPUBLISHED)
            .bind(self.bound_ms(older_than_ms))
            .bind(limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(|row| action_row(row)?.into_action()).collect()
    }

    async fn forget_processed(&self, older_than_ms: u64, limit: usize) -> Result<u64, Failure> {
        let processed_before_ms = self.bound_ms(older_than_ms);
        let effects = sqlx::query(FORGET_EFFECTS).bind(processed_before_ms).bind(limit as i64);
        self.0.writer.execute(effects).await?;
        let actions = sqlx::query(FORGET_ACTIONS).bind(processed_before_ms).bind(limit as i64);
        self.0.writer.execute(actions).await
    }

    async fn stats(&self) -> Result<LedgerStats, Failure> {
        let row = sqlx::query(STATS).fetch_one(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        Ok(LedgerStats { pending: count(&row, "pending")?, oldest_ms: get(&row, "oldest_ms")? })
    }

    async fn backlog(&self, shards: &[Shard]) -> Result<Vec<(Shard, u64)>, Failure> {
        let numbers = serde_json::to_string(shards).map_err(|error| Failure::internal(error.to_string()))?;
        let rows =
            sqlx::query(BACKLOG).bind(numbers).fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        shards.iter().zip(rows).map(|(shard, row)| Ok((*shard, count(&row, "pending")?))).collect()
    }
}

impl SqliteStore {
    /// What is not younger than `age_ms` lies before this time.
    pub(super) fn bound_ms(&self, age_ms: u64) -> i64 {
        match age_ms {
            // All, even what was written before the clock went back.
            0 => i64::MAX,
            _ => self.0.clock.now_ms().saturating_sub(i64::try_from(age_ms).unwrap_or(i64::MAX)).saturating_add(1),
        }
    }
}
