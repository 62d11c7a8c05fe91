//! Logs on their way to the archive.

use async_trait::async_trait;
use domain::conversation::kept::{HEAVY, LogPlace, Stretch};
use domain::failure::Failure;
use domain::ports::{TranscriptTail, UnarchivedRow};
use futures::TryStreamExt;
use schemas::json::Json;
use schemas::limits::RECORD_LIGHT_BYTES_MIN;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::failure::failure;
use super::rows::get;
use crate::columns::talk::{log_place, unarchived};

/// A page begins in its log by the index, however much is behind or before it there.
const UNARCHIVED: &str = "
    SELECT c.namespace, c.conversation_id, l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id, l.session_id,
        l.at_ms, l.body
    FROM conversations AS c INDEXED BY conversations_unarchived
    CROSS JOIN conversation_log AS l ON l.namespace = c.namespace AND l.conversation_id = c.conversation_id
        AND l.log_offset > max(c.unarchived_from - 1, iif(c.namespace = ?1 AND c.conversation_id = ?2, ?3, 0))
    WHERE c.unarchived_from IS NOT NULL AND (c.namespace, c.conversation_id) >= (?1, ?2)
    ORDER BY c.namespace, c.conversation_id, l.log_offset LIMIT ?4";
/// `?1`: `[namespace, conversation, first, last]` of each.
const RECORD_ARCHIVED: &str = "
    UPDATE conversations SET archived_upto = j.value->>3,
        unarchived_from = iif(last_offset > (j.value->>3), (j.value->>3) + 1, NULL)
    FROM json_each(?1) AS j
    WHERE conversations.namespace = j.value->>0 AND conversations.conversation_id = j.value->>1
        AND conversations.unarchived_from >= (j.value->>2) AND conversations.unarchived_from <= (j.value->>3)";
const ARCHIVED_ENDS: &str = "
    SELECT c.namespace, c.conversation_id, c.archived_upto AS log_offset
    FROM conversations AS c WHERE (c.namespace, c.conversation_id) > (?1, ?2)
    ORDER BY c.namespace, c.conversation_id LIMIT ?3";
/// `?6`: the kinds whose bodies are wanted. A log is read up to the first record that is not old enough; of a
/// page's length, more is not looked at, and of a log that begins with such a record, as most do, nothing else.
const HEAVY_RECORDS: &str = "
    SELECT c.namespace, c.conversation_id, l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id, l.session_id,
        l.at_ms, iif(l.kind IN (SELECT value FROM json_each(?6)), l.body, 'null') AS body
    FROM conversations AS c INDEXED BY conversations_heavy
    CROSS JOIN conversation_log AS l ON l.namespace = c.namespace AND l.conversation_id = c.conversation_id
        AND l.log_offset > max(c.light_upto, iif(c.namespace = ?1 AND c.conversation_id = ?2, ?3, 0))
        AND l.log_offset <= iif((
            SELECT f.at_ms FROM conversation_log AS f
            WHERE f.namespace = c.namespace AND f.conversation_id = c.conversation_id
                AND f.log_offset = c.light_upto + 1) < ?5, min(c.archived_upto, coalesce((
            SELECT min(w.log_offset) - 1 FROM (
                SELECT k.log_offset, k.at_ms FROM conversation_log AS k
                WHERE k.namespace = c.namespace AND k.conversation_id = c.conversation_id
                    AND k.log_offset > max(c.light_upto, iif(c.namespace = ?1 AND c.conversation_id = ?2, ?3, 0))
                ORDER BY k.log_offset LIMIT ?4) AS w
            WHERE w.at_ms >= ?5), c.archived_upto)), 0)
    WHERE c.light_upto < c.archived_upto AND (c.namespace, c.conversation_id) >= (?1, ?2)
    ORDER BY c.namespace, c.conversation_id, l.log_offset LIMIT ?4";
/// `?1` as above, `?2`: kinds. The number of bytes takes the place of a body.
const LIGHTEN: &str = "
    UPDATE conversation_log SET body = CAST(octet_length(conversation_log.body) AS TEXT)
    FROM json_each(?1) AS j
    CROSS JOIN conversations AS c ON c.namespace = j.value->>0 AND c.conversation_id = j.value->>1
    WHERE c.light_upto >= (j.value->>2) - 1 AND c.light_upto < (j.value->>3) AND c.archived_upto >= (j.value->>3)
        AND conversation_log.namespace = c.namespace AND conversation_log.conversation_id = c.conversation_id
        AND conversation_log.log_offset >= (j.value->>2) AND conversation_log.log_offset <= (j.value->>3)
        AND conversation_log.kind IN (SELECT value FROM json_each(?2)) AND octet_length(conversation_log.body) > ?3";
const RECORD_LIGHT: &str = "
    UPDATE conversations SET light_upto = j.value->>3
    FROM json_each(?1) AS j
    WHERE conversations.namespace = j.value->>0 AND conversations.conversation_id = j.value->>1
        AND conversations.light_upto >= (j.value->>2) - 1 AND conversations.light_upto < (j.value->>3)
        AND conversations.archived_upto >= (j.value->>3)";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("transcripts::unarchived", UNARCHIVED),
    ("transcripts::record_archived", RECORD_ARCHIVED),
    ("transcripts::archived_ends", ARCHIVED_ENDS),
    ("transcripts::heavy_records", HEAVY_RECORDS),
    ("transcripts::lighten", LIGHTEN),
    ("transcripts::record_light", RECORD_LIGHT),
];

#[async_trait]
impl TranscriptTail for SqliteStore {
    async fn unarchived(
        &self,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure> {
        self.page(from(UNARCHIVED, after, limit), bytes).await
    }

    async fn record_archived(&self, stretches: &[Stretch]) -> Result<(), Failure> {
        self.0.writer.execute(sqlx::query(RECORD_ARCHIVED).bind(listed(stretches))).await.map(drop)
    }

    async fn archived_ends(&self, after: Option<&LogPlace>, limit: usize) -> Result<Vec<LogPlace>, Failure> {
        let rows = behind(sqlx::query(ARCHIVED_ENDS), after).bind(limit as i64);
        rows.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?.iter().map(log_place).collect()
    }

    async fn heavy_records(
        &self,
        older_than_ms: u64,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure> {
        let query = from(HEAVY_RECORDS, after, limit).bind(self.bound_ms(older_than_ms)).bind(heavy_kinds());
        self.page(query, bytes).await
    }

    async fn lighten_records(&self, stretches: &[Stretch]) -> Result<(), Failure> {
        let mut tx = self.0.writer.begin().await?;
        let result = lighten(tx.connection(), &listed(stretches)).await;
        tx.finish(result).await
    }
}

impl SqliteStore {
    /// The rows of a page, up to so many bytes of bodies.
    async fn page(&self, query: Statement<'_>, bytes: usize) -> Result<Vec<UnarchivedRow>, Failure> {
        let mut reader = self.0.readers.lend().await?;
        let mut stream = query.fetch(&mut *reader);
        let (mut rows, mut taken) = (Vec::new(), 0_usize);
        while let Some(row) = stream.try_next().await.map_err(failure)? {
            taken = taken.saturating_add(get::<&str>(&row, "body").map_or(0, str::len));
            if taken > bytes && !rows.is_empty() {
                break;
            }
            rows.push(unarchived(&row)?);
        }
        Ok(rows)
    }
}

/// The records first: which of them it is about is read off the conversations.
async fn lighten(connection: &mut SqliteConnection, stretches: &str) -> Result<(), Failure> {
    let bodies = sqlx::query(LIGHTEN).bind(stretches).bind(heavy_kinds()).bind(RECORD_LIGHT_BYTES_MIN as i64);
    bodies.execute(&mut *connection).await.map_err(failure)?;
    sqlx::query(RECORD_LIGHT).bind(stretches).execute(&mut *connection).await.map_err(failure)?;
    Ok(())
}

/// As `json_each` takes them: `[namespace, conversation, first, last]` of each.
fn listed(stretches: &[Stretch]) -> String {
    let row = |Stretch { first, upto }: &Stretch| {
        (first.namespace.to_string(), first.conversation_id.to_string(), whole(first.offset), whole(*upto))
    };
    Json::of(&stretches.iter().map(row).collect::<Vec<_>>()).as_str().to_owned()
}

fn heavy_kinds() -> String {
    Json::of(&HEAVY.iter().map(|kind| kind.as_str()).collect::<Vec<_>>()).as_str().to_owned()
}

type Statement<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

/// A page of rows behind a place.
fn from<'q>(sql: &'static str, after: Option<&'q LogPlace>, limit: usize) -> Statement<'q> {
    let query = behind(sqlx::query(sql), after).bind(after.map_or(0, |after| whole(after.offset)));
    query.bind(limit as i64)
}

fn behind<'q>(query: Statement<'q>, after: Option<&'q LogPlace>) -> Statement<'q> {
    let (namespace, conversation) =
        after.map_or(("", ""), |after| (after.namespace.as_str(), after.conversation_id.as_str()));
    query.bind(namespace).bind(conversation)
}

/// The end of a log is the largest value.
fn whole(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{Connection, SqliteConnection};
    use tempfile::TempDir;
    use testkit::fake::SimClock;

    use super::*;
    use crate::OpenOptions;

    #[tokio::test]
    async fn a_record_that_cannot_be_read_hides_no_other() {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().join("store.db");
        let options = OpenOptions { shards: Some(4), create: true, clock: Arc::new(SimClock::new()) };
        let store = SqliteStore::open(&path, options).await.expect("the store opens");
        let options = SqliteConnectOptions::new().filename(&path);
        let mut connection = SqliteConnection::connect_with(&options).await.expect("a connection");
        // Of another program, and no JSON.
        let fill = "
            INSERT INTO conversations (namespace, conversation_id, created_at_ms, updated_at_ms, status, visibility,
                created_by, last_offset, body, unarchived_from)
            VALUES ('default', 'a', 1, 1, 'active', 'listed', 'ana', 2, '{}', 1),
                ('default', 'b', 1, 1, 'active', 'listed', 'ana', 2, '{}', 1);
            INSERT INTO conversation_log (namespace, conversation_id, log_offset, record_id, kind, at_ms, body)
            VALUES ('default', 'a', 1, 'r1', 'dream', 1, '{}'), ('default', 'a', 2, 'r2', 'note', 1, '{'),
                ('default', 'b', 1, 'r1', 'note', 1, '{}'), ('default', 'b', 2, 'r2', 'assembly', 1, '{}')";
        sqlx::raw_sql(fill).execute(&mut connection).await.expect("filled");
        connection.close().await.expect("closed");
        let rows = store.unarchived(None, 10, usize::MAX).await.expect("a read");
        let told: Vec<_> = rows
            .iter()
            .map(|(place, row)| {
                let read = row.as_ref().map_or("unreadable", |row| row.record.body.as_str());
                (place.conversation_id.as_str(), place.offset, read)
            })
            .collect();
        assert_eq!(told, [("a", 1, "unreadable"), ("a", 2, "unreadable"), ("b", 1, "{}"), ("b", 2, "{}")]);
    }
}
