//! Logs on their way to the archive.

use async_trait::async_trait;
use domain::conversation::kept::{KINDS, LogPlace, Stretch};
use domain::failure::Failure;
use domain::ports::{TranscriptTail, UnarchivedRow};

use super::PostgresStore;
use super::pool::Statement;
use crate::columns::talk::{log_place, unarchived};

/// `$4`: the kinds whose bodies are wanted. One conversation more than rows: that of the place before may have
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
                l.session_id, l.at_ms, CASE WHEN l.kind = ANY ($4::text[]) THEN l.body ELSE 'null' END AS body
            FROM (
                SELECT f.namespace, f.conversation_id, f.unarchived_from FROM conversations AS f
                WHERE f.unarchived_from IS NOT NULL AND (f.namespace, f.conversation_id) >= ($1, $2)
                ORDER BY f.namespace, f.conversation_id LIMIT $5::int8 + 1) AS w
            CROSS JOIN LATERAL (
                SELECT * FROM conversation_log AS k
                WHERE k.namespace = w.namespace AND k.conversation_id = w.conversation_id
                    AND k.log_offset > greatest(w.unarchived_from - 1,
                        CASE WHEN w.namespace = $1 AND w.conversation_id = $2 THEN $3::int8 ELSE 0 END)
                ORDER BY k.log_offset LIMIT $5::int8) AS l
            ORDER BY w.namespace, w.conversation_id, l.log_offset LIMIT $5::int8) AS p) AS c
    WHERE c.taken <= $6::int8 OR c.taken = c.own
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

#[cfg(test)]
pub(super) const SQL: &[(&str, &str)] = &[
    ("transcripts::unarchived", UNARCHIVED),
    ("transcripts::record_archived", RECORD_ARCHIVED),
    ("transcripts::archived_ends", ARCHIVED_ENDS),
];

#[async_trait]
impl TranscriptTail for PostgresStore {
    async fn unarchived(
        &self,
        after: Option<&LogPlace>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<UnarchivedRow>, Failure> {
        let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.as_str()).collect();
        let query = behind(sqlx::query(UNARCHIVED), after)
            .bind(after.map_or(0, |after| whole(after.offset)))
            .bind(kinds)
            .bind(limit as i64)
            .bind(whole(bytes as u64));
        self.0.pool.fetch_all(query).await?.iter().map(unarchived).collect()
    }

    async fn record_archived(&self, stretches: &[Stretch]) -> Result<(), Failure> {
        let query = || {
            let texts = |of: fn(&Stretch) -> String| stretches.iter().map(of).collect::<Vec<_>>();
            let numbers = |of: fn(&Stretch) -> u64| stretches.iter().map(|one| whole(of(one))).collect::<Vec<_>>();
            sqlx::query(RECORD_ARCHIVED)
                .bind(texts(|one| one.first.namespace.to_string()))
                .bind(texts(|one| one.first.conversation_id.to_string()))
                .bind(numbers(|one| one.first.offset))
                .bind(numbers(|one| one.upto))
        };
        self.0.pool.execute(query).await.map(drop)
    }

    async fn archived_ends(&self, after: Option<&LogPlace>, limit: usize) -> Result<Vec<LogPlace>, Failure> {
        let query = behind(sqlx::query(ARCHIVED_ENDS), after).bind(limit as i64);
        self.0.pool.fetch_all(query).await?.iter().map(log_place).collect()
    }
}

fn behind(query: Statement, after: Option<&LogPlace>) -> Statement {
    let texts = |of: fn(&LogPlace) -> String| after.map_or(String::new(), of);
    query.bind(texts(|after| after.namespace.to_string())).bind(texts(|after| after.conversation_id.to_string()))
}

/// The end of a log is the largest value.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
