//! The journal: the tail of history that LanceDB does not have yet, and a little more.

use async_trait::async_trait;
use domain::effect::{EffectClass, EffectRow, EffectState};
use domain::failure::Failure;
use domain::ports::{Journal, JournalLag};
use futures::TryStreamExt;
use schemas::id::{Namespace, SessionId, SessionKey, Shard};
use schemas::json::Json;
use schemas::record::JournalRow;

use super::SqliteStore;
use super::failure::failure;
use super::rows::{count, get, id, journal_row, name, shard};

macro_rules! columns {
    () => {
        "SELECT shard, seq, namespace, session_id, committed_at_ms, body FROM journal "
    };
}

const LATEST: &str = concat!(
    columns!(),
    "INDEXED BY journal_of_session WHERE namespace = ?1 AND session_id = ?2
    ORDER BY last_offset DESC, seq DESC LIMIT 1"
);
const ENTRIES: &str = concat!(
    columns!(),
    "INDEXED BY journal_of_session WHERE namespace = ?1 AND session_id = ?2 AND last_offset > ?3
    ORDER BY last_offset, seq LIMIT ?4"
);
/// An entry that lies across the bound begins below it: it is the first one that ends at or above.
const ENTRIES_BACK: &str = concat!(
    columns!(),
    "INDEXED BY journal_of_session WHERE namespace = ?1 AND session_id = ?2 AND first_offset < ?3
        AND last_offset <= coalesce((
            SELECT min(j.last_offset) FROM journal AS j INDEXED BY journal_of_session
            WHERE j.namespace = ?1 AND j.session_id = ?2 AND j.last_offset >= ?3), ?3)
    ORDER BY last_offset DESC, seq DESC LIMIT ?4"
);
const HOLDING: &str = "
    SELECT j.value AS session_id FROM json_each(?2) AS j
    WHERE EXISTS (
        SELECT 1 FROM journal AS e INDEXED BY journal_of_session
        WHERE e.namespace = ?1 AND e.session_id = j.value)";
const ABOVE: &str = concat!(columns!(), "WHERE shard = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
const LAG: &str = "SELECT shard, seq, archived_seq FROM shards ORDER BY shard";
/// Neither backwards nor beyond what there is.
const MARK_ARCHIVED: &str =
    "UPDATE shards SET archived_seq = min(seq, ?2) WHERE shard = ?1 AND archived_seq < min(seq, ?2)";
const TRIM: &str = "
    DELETE FROM journal WHERE id IN (
        SELECT j.id FROM shards AS s
        CROSS JOIN journal AS j ON j.shard = s.shard AND j.seq <= s.archived_seq AND j.committed_at_ms < ?1
        LIMIT ?2)";
const OPEN_EFFECTS: &str = "
    SELECT effect_key, class, state, what FROM effects
    WHERE namespace = ?1 AND session_id = ?2 AND state <> 'settled' ORDER BY effect_key";

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
impl Journal for SqliteStore {
    async fn latest(&self, key: &SessionKey) -> Result<Option<JournalRow>, Failure> {
        let row = sqlx::query(LATEST)
            .bind(key.namespace.as_str())
            .bind(key.session_id.as_str())
            .fetch_optional(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        row.as_ref().map(journal_row).transpose()
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
        let rows = sqlx::query(HOLDING)
            .bind(namespace.as_str())
            .bind(Json::of(sessions).as_str().to_owned())
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(|row| id(row, "session_id")).collect()
    }

    async fn above(&self, shard: Shard, after: u64, limit: usize, bytes: usize) -> Result<Vec<JournalRow>, Failure> {
        let mut reader = self.0.readers.lend().await?;
        let mut stream = sqlx::query(ABOVE)
            .bind(i64::from(shard.0))
            .bind(offset_bound(after))
            .bind(limit as i64)
            .fetch(&mut *reader);
        let (mut rows, mut taken) = (Vec::new(), 0);
        while let Some(row) = stream.try_next().await.map_err(failure)? {
            taken += get::<&str>(&row, "body")?.len();
            rows.push(journal_row(&row)?);
            if taken > bytes {
                break;
            }
        }
        Ok(rows)
    }

    async fn lag(&self) -> Result<Vec<JournalLag>, Failure> {
        let rows = sqlx::query(LAG).fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?;
        let lag = |row| {
            Ok(JournalLag { shard: shard(row)?, seq: count(row, "seq")?, archived_seq: count(row, "archived_seq")? })
        };
        rows.iter().map(lag).collect()
    }

    async fn mark_archived(&self, shard: Shard, seq: u64) -> Result<(), Failure> {
        self.check_shard(shard)?;
        let query = sqlx::query(MARK_ARCHIVED).bind(i64::from(shard.0)).bind(offset_bound(seq));
        self.0.writer.execute(query).await.map(drop)
    }

    async fn trim(&self, older_than_ms: u64, before_ms: i64, limit: usize) -> Result<u64, Failure> {
        let committed_before_ms = self.bound_ms(older_than_ms).min(before_ms);
        self.0.writer.execute(sqlx::query(TRIM).bind(committed_before_ms).bind(limit as i64)).await
    }

    async fn open_effects(&self, key: &SessionKey) -> Result<Vec<EffectRow>, Failure> {
        let rows = sqlx::query(OPEN_EFFECTS)
            .bind(key.namespace.as_str())
            .bind(key.session_id.as_str())
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        let effect = |row| {
            Ok(EffectRow {
                key: get(row, "effect_key")?,
                class: name(row, "class", EffectClass::parse)?,
                state: name(row, "state", EffectState::parse)?,
                what: get(row, "what")?,
            })
        };
        rows.iter().map(effect).collect()
    }
}

impl SqliteStore {
    async fn of_session(
        &self,
        sql: &'static str,
        key: &SessionKey,
        bound: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, Failure> {
        let rows = sqlx::query(sql)
            .bind(key.namespace.as_str())
            .bind(key.session_id.as_str())
            .bind(offset_bound(bound))
            .bind(limit as i64)
            .fetch_all(&mut *self.0.readers.lend().await?)
            .await
            .map_err(failure)?;
        rows.iter().map(journal_row).collect()
    }
}

/// Callers say "no bound" with `u64::MAX`.
fn offset_bound(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}
