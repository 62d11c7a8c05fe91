//! Logs on their way to the archive.

use async_trait::async_trait;
use domain::conversation::kept::{KINDS, LogPlace, Stretch};
use domain::failure::Failure;
use domain::ports::{TranscriptTail, UnarchivedRow};
use futures::TryStreamExt;
use schemas::json::Json;

use super::SqliteStore;
use super::failure::failure;
use super::rows::get;
use crate::columns::talk::{log_place, unarchived};

/// `?4`: the kinds whose bodies are wanted. A page begins in its log by the index, however much is behind or
/// before it there.
const UNARCHIVED: &str = "
    SELECT c.namespace, c.conversation_id, l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id, l.session_id,
        l.at_ms, iif(l.kind IN (SELECT value FROM json_each(?4)), l.body, 'null') AS body
    FROM conversations AS c INDEXED BY conversations_unarchived
    CROSS JOIN conversation_log AS l ON l.namespace = c.namespace AND l.conversation_id = c.conversation_id
        AND l.log_offset > max(c.unarchived_from - 1, iif(c.namespace = ?1 AND c.conversation_id = ?2, ?3, 0))
    WHERE c.unarchived_from IS NOT NULL AND (c.namespace, c.conversation_id) >= (?1, ?2)
    ORDER BY c.namespace, c.conversation_id, l.log_offset LIMIT ?5";
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

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("transcripts::unarchived", UNARCHIVED),
    ("transcripts::record_archived", RECORD_ARCHIVED),
    ("transcripts::archived_ends", ARCHIVED_ENDS),
];

#[async_trait]
impl TranscriptTail for SqliteStore {
    async fn unarchived(
        &self,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure> {
        let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.as_str()).collect();
        let mut reader = self.0.readers.lend().await?;
        let mut stream = behind(sqlx::query(UNARCHIVED), after)
            .bind(after.map_or(0, |after| whole(after.offset)))
            .bind(Json::of(&kinds).as_str().to_owned())
            .bind(limit as i64)
            .fetch(&mut *reader);
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

    async fn record_archived(&self, stretches: &[Stretch]) -> Result<(), Failure> {
        let row = |Stretch { first, upto }: &Stretch| {
            (first.namespace.to_string(), first.conversation_id.to_string(), whole(first.offset), whole(*upto))
        };
        let stretches = Json::of(&stretches.iter().map(row).collect::<Vec<_>>());
        let query = sqlx::query(RECORD_ARCHIVED).bind(stretches.as_str().to_owned());
        self.0.writer.execute(query).await.map(drop)
    }

    async fn archived_ends(&self, after: Option<&LogPlace>, limit: usize) -> Result<Vec<LogPlace>, Failure> {
        let rows = behind(sqlx::query(ARCHIVED_ENDS), after).bind(limit as i64);
        rows.fetch_all(&mut *self.0.readers.lend().await?).await.map_err(failure)?.iter().map(log_place).collect()
    }
}

type Statement<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

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
        assert_eq!(told, [("a", 1, "unreadable"), ("a", 2, "unreadable"), ("b", 1, "{}"), ("b", 2, "null")]);
    }
}
