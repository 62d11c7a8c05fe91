//! The journal: the tail of history that LanceDB does not have yet, and a little more.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use domain::effect::{EffectClass, EffectRow, EffectState};
use domain::failure::Failure;
use domain::ports::{Journal, JournalLag};
use schemas::id::{Namespace, SessionId, SessionKey, Shard};
use schemas::record::JournalRow;

use super::PostgresStore;
use super::rows::{age, bound, count, get, id, journal_row, name, shard};

macro_rules! columns {
    () => {
        "SELECT shard, seq, namespace, session_id, committed_at_ms, body FROM journal "
    };
}

const LATEST: &str =
    concat!(columns!(), "WHERE namespace = $1 AND session_id = $2 ORDER BY last_offset DESC, seq DESC LIMIT 1");
const ENTRIES: &str = concat!(
    columns!(),
    "WHERE namespace = $1 AND session_id = $2 AND last_offset > $3 ORDER BY last_offset, seq LIMIT $4"
);
/// An entry that lies across the bound begins below it: it is the first one that ends at or above.
const ENTRIES_BACK: &str = concat!(
    columns!(),
    "WHERE namespace = $1 AND session_id = $2 AND first_offset < $3
        AND last_offset <= coalesce((
            SELECT min(j.last_offset) FROM journal AS j
            WHERE j.namespace = $1 AND j.session_id = $2 AND j.last_offset >= $3), $3)
    ORDER BY last_offset DESC, seq DESC LIMIT $4"
);
const HOLDING: &str = "
    SELECT g.session_id FROM unnest($2::text[]) AS g (session_id)
    WHERE EXISTS (SELECT FROM journal AS j WHERE j.namespace = $1 AND j.session_id = g.session_id)";
/// The database counts the bytes, so that no more than was asked for travels.
const ABOVE: &str = "
    SELECT shard, seq, namespace, session_id, committed_at_ms, body FROM (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before
        FROM (SELECT * FROM journal WHERE shard = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS rows) AS counted
    WHERE before <= $4 ORDER BY seq";
const LAG: &str = "SELECT shard, seq, archived_seq FROM shards ORDER BY shard";
/// Neither backwards nor beyond what there is.
const MARK_ARCHIVED: &str =
    "UPDATE shards SET archived_seq = least(seq, $2) WHERE shard = $1 AND archived_seq < least(seq, $2)";
/// Rows are committed in the order of `seq`, so a shard's oldest ones are all that can be old enough.
const TRIM: &str = concat!(
    "DELETE FROM journal WHERE ctid = ANY (ARRAY(
        SELECT old.row FROM shards AS s CROSS JOIN LATERAL (
            SELECT j.ctid AS row, j.committed_at_ms FROM journal AS j
            WHERE j.shard = s.shard AND j.seq <= s.archived_seq ORDER BY j.seq LIMIT $3) AS old
        WHERE old.committed_at_ms < least($2, ",
    bound!("$1"),
    ") LIMIT $3))"
);
/// Waits for nobody: whoever cleans it up already does the same.
const VACUUM: &str = "VACUUM (SKIP_LOCKED) journal";
/// Fewer are not worth it.
const VACUUM_ROWS: u64 = 1_000;
const OPEN_EFFECTS: &str = "
    SELECT effect_key, class, state, what FROM effects
    WHERE namespace = $1 AND session_id = $2 AND state <> 'settled' ORDER BY effect_key";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("journal::latest", LATEST),
    ("journal::entries", ENTRIES),
    ("journal::entries_back", ENTRIES_BACK),
    ("journal::holding", HOLDING),
    ("journal::above", ABOVE),
    ("journal::lag", LAG),
    ("journal::mark_archived", MARK_ARCHIVED),
    ("journal::trim", TRIM),
    ("journal::open_effects", OPEN_EFFECTS),
];

#[async_trait]
impl Journal for PostgresStore {
    async fn latest(&self, key: &SessionKey) -> Result<Option<JournalRow>, Failure> {
        let query = sqlx::query(LATEST).bind(key.namespace.as_str()).bind(key.session_id.as_str());
        self.0.pool.fetch_optional(query).await?.as_ref().map(journal_row).transpose()
    }

    async fn entries(&self, key: &SessionKey, after_offset: u64, limit: usize) -> Result<Vec<JournalRow>, Failure> {
        self.of_session(ENTRIES, key, after_offset, limit).await
    }

    async fn entries_back(
        &self,
        key: &SessionKey,
        before_offset: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, Failure> {
        self.of_session(ENTRIES_BACK, key, before_offset, limit).await
    }

    async fn holding(&self, namespace: &Namespace, sessions: &[SessionId]) -> Result<Vec<SessionId>, Failure> {
        let ids: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
        let query = sqlx::query(HOLDING).bind(namespace.as_str()).bind(ids);
        self.0.pool.fetch_all(query).await?.iter().map(|row| id(row, "session_id")).collect()
    }

    async fn above(&self, shard: Shard, after: u64, limit: usize, bytes: usize) -> Result<Vec<JournalRow>, Failure> {
        let query = sqlx::query(ABOVE)
            .bind(i32::from(shard.0))
            .bind(whole(after))
            .bind(whole(limit as u64))
            .bind(whole(bytes as u64));
        self.0.pool.fetch_all(query).await?.iter().map(journal_row).collect()
    }

    async fn lag(&self) -> Result<Vec<JournalLag>, Failure> {
        let rows = self.0.pool.fetch_all(sqlx::query(LAG)).await?;
        let lag = |row| {
            Ok(JournalLag { shard: shard(row)?, seq: count(row, "seq")?, archived_seq: count(row, "archived_seq")? })
        };
        rows.iter().map(lag).collect()
    }

    async fn mark_archived(&self, shard: Shard, seq: u64) -> Result<(), Failure> {
        self.check_shard(shard)?;
        let query = || sqlx::query(MARK_ARCHIVED).bind(i32::from(shard.0)).bind(whole(seq));
        self.0.pool.execute(query).await.map(drop)
    }

    async fn trim(&self, older_than_ms: u64, before_ms: i64, limit: usize) -> Result<u64, Failure> {
        let query = || sqlx::query(TRIM).bind(age(older_than_ms)).bind(before_ms).bind(whole(limit as u64));
        let trimmed = self.0.pool.execute(query).await?;
        let freed = self.0.trimmed.fetch_add(trimmed, Ordering::Relaxed) + trimmed;
        // At the end of a walk that deletes in portions.
        if trimmed < limit as u64 && freed >= VACUUM_ROWS {
            self.0.trimmed.store(0, Ordering::Relaxed);
            self.give_room_back().await;
        }
        Ok(trimmed)
    }

    async fn open_effects(&self, key: &SessionKey) -> Result<Vec<EffectRow>, Failure> {
        let query = sqlx::query(OPEN_EFFECTS).bind(key.namespace.as_str()).bind(key.session_id.as_str());
        let effect = |row| {
            Ok(EffectRow {
                key: get(row, "effect_key")?,
                class: name(row, "class", EffectClass::parse)?,
                state: name(row, "state", EffectState::parse)?,
                what: get(row, "what")?,
            })
        };
        self.0.pool.fetch_all(query).await?.iter().map(effect).collect()
    }
}

impl PostgresStore {
    /// A journal that was long is as small again as it is short. The server does so by itself, but a minute or more
    /// later, when as much again has been written behind what is free.
    async fn give_room_back(&self) {
        if let Err(failure) = self.0.pool.execute(|| sqlx::query(VACUUM)).await {
            tracing::debug!(%failure, "the journal's room is left to the server's own upkeep");
        }
    }

    async fn of_session(
        &self,
        sql: &'static str,
        key: &SessionKey,
        bound: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, Failure> {
        let query = sqlx::query(sql)
            .bind(key.namespace.as_str())
            .bind(key.session_id.as_str())
            .bind(whole(bound))
            .bind(whole(limit as u64));
        self.0.pool.fetch_all(query).await?.iter().map(journal_row).collect()
    }
}

/// Callers say "no bound" with the largest value.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
