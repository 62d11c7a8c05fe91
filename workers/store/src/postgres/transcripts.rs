//! Logs on their way to the archive.

use async_trait::async_trait;
use domain::conversation::kept::{HEAVY, LogPlace, Stretch};
use domain::failure::Failure;
use domain::ports::{TranscriptTail, UnarchivedRow};
use schemas::limits::RECORD_LIGHT_BYTES_MIN;

use super::PostgresStore;
use super::pool::Statement;
use super::rows::{age, bound};
use crate::columns::talk::{log_place, unarchived};

/// One conversation more than rows: that of the place before may have
/// none left. A page begins in its log by the index, and is in the order in which conversations are found: so it
/// looks at no rows beyond its own. The database counts the bytes, so that no more than was asked for travels.
const UNARCHIVED: &str = "
    SELECT c.namespace, c.conversation_id, c.log_offset, c.record_id, c.kind, c.turn_id, c.agent_id, c.session_id,
        c.at_ms, c.body
    FROM (
        SELECT p.*, octet_length(p.body) AS own,
            sum(octet_length(p.body)) OVER (ORDER BY p.namespace, p.conversation_id, p.log_offset
                ROWS UNBOUNDED PRECEDING) AS taken
        FROM (
            SELECT w.namespace, w.conversation_id, l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id,
                l.session_id, l.at_ms, l.body
            FROM (
                SELECT f.namespace, f.conversation_id, f.unarchived_from FROM conversations AS f
                WHERE f.unarchived_from IS NOT NULL AND (f.namespace, f.conversation_id) >= ($1, $2)
                ORDER BY f.namespace, f.conversation_id LIMIT $4::int8 + 1) AS w
            CROSS JOIN LATERAL (
                SELECT * FROM conversation_log AS k
                WHERE k.namespace = w.namespace AND k.conversation_id = w.conversation_id
                    AND k.log_offset > greatest(w.unarchived_from - 1,
                        CASE WHEN w.namespace = $1 AND w.conversation_id = $2 THEN $3::int8 ELSE 0 END)
                ORDER BY k.log_offset LIMIT $4::int8) AS l
            ORDER BY w.namespace, w.conversation_id, l.log_offset LIMIT $4::int8) AS p) AS c
    WHERE c.taken <= $5::int8 OR c.taken = c.own
    ORDER BY c.namespace, c.conversation_id, c.log_offset";
/// Locks the conversations in the order of their ids, as commits do.
const RECORD_ARCHIVED: &str = "
    UPDATE conversations AS c SET archived_upto = j.upto, unarchived_from = CASE WHEN c.last_offset > j.upto THEN j.upto + 1 END
    FROM (SELECT f.namespace, f.conversation_id, g.first, g.upto
        FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[]) AS g (namespace, conversation_id, first, upto)
        JOIN conversations AS f ON f.namespace = g.namespace AND f.conversation_id = g.conversation_id
        ORDER BY f.namespace, f.conversation_id FOR NO KEY UPDATE OF f) AS j
    WHERE c.namespace = j.namespace AND c.conversation_id = j.conversation_id
        AND c.unarchived_from >= j.first AND c.unarchived_from <= j.upto";
const ARCHIVED_ENDS: &str = "
    SELECT c.namespace, c.conversation_id, c.archived_upto AS log_offset
    FROM conversations AS c WHERE (c.namespace, c.conversation_id) > ($1, $2)
    ORDER BY c.namespace, c.conversation_id LIMIT $3";

/// As above. `$7`: the kinds whose bodies are wanted. A log is read up to the first record that is not old enough;
/// one that begins with such a record takes no place in the page.
const HEAVY_RECORDS: &str = concat!(
    "
    SELECT c.namespace, c.conversation_id, c.log_offset, c.record_id, c.kind, c.turn_id, c.agent_id, c.session_id,
        c.at_ms, c.body
    FROM (
        SELECT p.*, octet_length(p.body) AS own,
            sum(octet_length(p.body)) OVER (ORDER BY p.namespace, p.conversation_id, p.log_offset
                ROWS UNBOUNDED PRECEDING) AS taken
        FROM (
            SELECT w.namespace, w.conversation_id, l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id,
                l.session_id, l.at_ms, CASE WHEN l.kind = ANY ($7::text[]) THEN l.body ELSE 'null' END AS body
            FROM (
                SELECT f.namespace, f.conversation_id, f.light_upto, f.archived_upto FROM conversations AS f
                WHERE f.light_upto < f.archived_upto AND (f.namespace, f.conversation_id) >= ($1, $2)
                    AND EXISTS (SELECT 1 FROM conversation_log AS k
                        WHERE k.namespace = f.namespace AND k.conversation_id = f.conversation_id
                            AND k.log_offset = f.light_upto + 1 AND k.at_ms < ",
    bound!("$6"),
    " OFFSET 0)
                ORDER BY f.namespace, f.conversation_id LIMIT $4::int8 + 1) AS w
            CROSS JOIN LATERAL (
                SELECT * FROM (
                    SELECT k.*, bool_or(k.at_ms >= ",
    bound!("$6"),
    ") OVER (ORDER BY k.log_offset ROWS UNBOUNDED PRECEDING) AS is_young
                    FROM conversation_log AS k
                    WHERE k.namespace = w.namespace AND k.conversation_id = w.conversation_id
                        AND k.log_offset <= w.archived_upto AND k.log_offset > greatest(w.light_upto,
                            CASE WHEN w.namespace = $1 AND w.conversation_id = $2 THEN $3::int8 ELSE 0 END)
                    ORDER BY k.log_offset LIMIT $4::int8) AS o
                WHERE NOT o.is_young) AS l
            ORDER BY w.namespace, w.conversation_id, l.log_offset LIMIT $4::int8) AS p) AS c
    WHERE c.taken <= $5::int8 OR c.taken = c.own
    ORDER BY c.namespace, c.conversation_id, c.log_offset"
);
/// Locks the conversations as above: that makes whoever lightens the only one. The number of bytes takes the place of
/// a body. Who waited for the lock sees the bodies of before; those that are light by then are too short, and stay.
const LIGHTEN: &str = "
    WITH done AS (
        UPDATE conversations AS c SET light_upto = j.upto
        FROM (SELECT f.namespace, f.conversation_id, g.first, g.upto
            FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[]) AS g (namespace, conversation_id, first, upto)
            JOIN conversations AS f ON f.namespace = g.namespace AND f.conversation_id = g.conversation_id
            ORDER BY f.namespace, f.conversation_id FOR NO KEY UPDATE OF f) AS j
        WHERE c.namespace = j.namespace AND c.conversation_id = j.conversation_id
            AND c.light_upto >= j.first - 1 AND c.light_upto < j.upto AND c.archived_upto >= j.upto
        RETURNING c.namespace, c.conversation_id, j.first, j.upto)
    UPDATE conversation_log AS l SET body = octet_length(l.body)::text
    WHERE octet_length(l.body) > $6::int8 AND l.ctid = ANY (ARRAY(
        SELECT k.ctid FROM done CROSS JOIN LATERAL (
            SELECT o.ctid FROM conversation_log AS o
            WHERE o.namespace = done.namespace AND o.conversation_id = done.conversation_id
                AND o.log_offset >= done.first AND o.log_offset <= done.upto
                AND o.kind = ANY ($5::text[]) AND octet_length(o.body) > $6::int8 OFFSET 0) AS k))";

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("transcripts::unarchived", UNARCHIVED),
    ("transcripts::record_archived", RECORD_ARCHIVED),
    ("transcripts::archived_ends", ARCHIVED_ENDS),
    ("transcripts::heavy_records", HEAVY_RECORDS),
    ("transcripts::lighten", LIGHTEN),
];

#[async_trait]
impl TranscriptTail for PostgresStore {
    async fn unarchived(
        &self,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure> {
        self.0.pool.fetch_all(page(UNARCHIVED, after, limit, bytes)).await?.iter().map(unarchived).collect()
    }

    async fn record_archived(&self, stretches: &[Stretch]) -> Result<(), Failure> {
        self.0.pool.execute(|| of_stretches(RECORD_ARCHIVED, stretches)).await.map(drop)
    }

    async fn archived_ends(&self, after: Option<&LogPlace>, limit: usize) -> Result<Vec<LogPlace>, Failure> {
        let query = behind(sqlx::query(ARCHIVED_ENDS), after).bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(log_place).collect()
    }

    async fn heavy_records(
        &self,
        older_than_ms: u64,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure> {
        let query = page(HEAVY_RECORDS, after, limit, bytes).bind(age(older_than_ms)).bind(heavy_kinds());
        self.0.pool.fetch_all(query).await?.iter().map(unarchived).collect()
    }

    async fn lighten_records(&self, stretches: &[Stretch]) -> Result<(), Failure> {
        let query = || of_stretches(LIGHTEN, stretches).bind(heavy_kinds()).bind(RECORD_LIGHT_BYTES_MIN as i64);
        self.0.pool.execute(query).await.map(drop)
    }
}

fn page(sql: &'static str, after: Option<&LogPlace>, limit: usize, bytes: usize) -> Statement {
    let query = behind(sqlx::query(sql), after).bind(after.map_or(0, |after| whole(after.offset)));
    query.bind(limit as i64).bind(whole(bytes as u64))
}

fn of_stretches(sql: &'static str, stretches: &[Stretch]) -> Statement {
    let texts = |of: fn(&Stretch) -> String| stretches.iter().map(of).collect::<Vec<_>>();
    let numbers = |of: fn(&Stretch) -> u64| stretches.iter().map(|one| whole(of(one))).collect::<Vec<_>>();
    sqlx::query(sql)
        .bind(texts(|one| one.first.namespace.to_string()))
        .bind(texts(|one| one.first.conversation_id.to_string()))
        .bind(numbers(|one| one.first.offset))
        .bind(numbers(|one| one.upto))
}

fn heavy_kinds() -> Vec<&'static str> {
    HEAVY.iter().map(|kind| kind.as_str()).collect()
}

fn behind(query: Statement, after: Option<&LogPlace>) -> Statement {
    let texts = |of: fn(&LogPlace) -> String| after.map_or(String::new(), of);
    query.bind(texts(|after| after.namespace.to_string())).bind(texts(|after| after.conversation_id.to_string()))
}

/// The end of a log is the largest value.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
