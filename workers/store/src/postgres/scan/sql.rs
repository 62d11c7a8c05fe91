//! The statements of the looks: each finds, for every one of the given shards, what one look asks
//! for, by the index and no further than its limit.

use super::super::rows::bound;

/// Steps from session to session over the index, however many actions each one has. Of a paused
/// session the first action that counts is looked for: an `EXISTS` might be answered for all of them.
pub(super) const PENDING: &str = concat!(
    "SELECT j.place, f.namespace, f.session_id
    FROM unnest($1::int4[], $2::int8[], $3::text[], $4::text[], $5::int8[]) WITH ORDINALITY
        AS j (shard, age_ms, namespace, session_id, most, place)
    CROSS JOIN LATERAL (
        WITH RECURSIVE walk (namespace, session_id) AS (
            (SELECT a.namespace, a.session_id FROM actions AS a
            WHERE a.processed_at_ms IS NULL AND a.shard = j.shard
                AND (a.namespace, a.session_id) > (j.namespace, j.session_id)
            ORDER BY a.namespace, a.session_id LIMIT 1)
            UNION ALL
            SELECT n.namespace, n.session_id FROM walk AS w CROSS JOIN LATERAL (
                SELECT a.namespace, a.session_id FROM actions AS a
                WHERE a.processed_at_ms IS NULL AND a.shard = j.shard
                    AND (a.namespace, a.session_id) > (w.namespace, w.session_id)
                ORDER BY a.namespace, a.session_id LIMIT 1) AS n
        ), age AS MATERIALIZED (SELECT ",
    bound!("j.age_ms"),
    " AS bound_ms)
        SELECT w.namespace, w.session_id FROM walk AS w
        CROSS JOIN LATERAL (
            SELECT s.status FROM sessions AS s
            WHERE s.namespace = w.namespace AND s.session_id = w.session_id OFFSET 0) AS s
        WHERE CASE WHEN s.status IN ('paused', 'error') THEN (
                SELECT true FROM actions AS a
                WHERE a.processed_at_ms IS NULL AND a.shard = j.shard AND a.namespace = w.namespace
                    AND a.session_id = w.session_id AND a.lane = 'control'
                    AND a.accepted_at_ms < (SELECT bound_ms FROM age) AND a.type IN ('pause', 'resume', 'destroy')
                LIMIT 1)
            ELSE (SELECT bound_ms FROM age) > least(
                (SELECT a.accepted_at_ms FROM actions AS a
                    WHERE a.processed_at_ms IS NULL AND a.shard = j.shard AND a.namespace = w.namespace
                        AND a.session_id = w.session_id AND a.lane = 'control'
                    ORDER BY a.session_seq LIMIT 1),
                (SELECT a.accepted_at_ms FROM actions AS a
                    WHERE a.processed_at_ms IS NULL AND a.shard = j.shard AND a.namespace = w.namespace
                        AND a.session_id = w.session_id AND a.lane = 'work'
                    ORDER BY a.session_seq LIMIT 1)) END
        LIMIT j.most) AS f
    ORDER BY j.place, f.namespace, f.session_id"
);

pub(super) const DUE: &str = "
    SELECT j.place, d.wake_at_ms, d.namespace, d.session_id
    FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::text[], $5::text[], $6::int8[]) WITH ORDINALITY
        AS j (shard, until_ms, wake_at_ms, namespace, session_id, most, place)
    CROSS JOIN LATERAL (
        SELECT s.wake_at_ms, s.namespace, s.session_id FROM sessions AS s
        WHERE s.shard = j.shard AND s.wake_at_ms IS NOT NULL AND s.wake_at_ms <= j.until_ms
            AND (s.wake_at_ms, s.namespace, s.session_id) > (j.wake_at_ms, j.namespace, j.session_id)
        ORDER BY s.wake_at_ms, s.namespace, s.session_id LIMIT j.most) AS d
    ORDER BY j.place, d.wake_at_ms, d.namespace, d.session_id";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[("scan::pending", PENDING), ("scan::due", DUE)];
