//! The statement of a commit. It is a transaction by itself: one message to the database, whatever
//! the number of sessions.

use super::super::rows::now;

/// In order: the shards that are held as said are locked, by number; the heads that are as expected
/// are replaced, in the order given, which is that of their ids; what was replaced gets its places in
/// the journal; then its actions are settled and its effects written. A head that is there already, as
/// it is when a commit without steps and events comes a second time, takes no place; if it comes while
/// the first one is still under way, it is in neither list and the answer is a conflict, as for others.
///
/// `given` ($1 to $14) is the commits. The shard's row is locked before anything of it is read, and
/// this program never runs two of these statements for one shard at a time, so each sees what the one
/// before left behind. The tests `IN (…) IS TRUE` keep the order of what they filter: a join might not.
/// An action that has no outcome is not processed; said this way, no partial index tempts the planner
/// away from the key.
pub(super) const COMMIT: &str = concat!(
    "WITH clock AS MATERIALIZED (SELECT ",
    now!(),
    " AS ms), given AS MATERIALIZED (
        SELECT * FROM unnest($1::int8[], $2::int4[], $3::text[], $4::int8[], $5::text[], $6::text[], $7::int8[],
            $8::int8[], $9::text[], $10::int8[], $11::int8[], $12::int8[], $13::text[], $14::text[])
            AS g (place, shard, owner, epoch, namespace, session_id, expect_steps, expect_offset, status, steps,
                next_offset, wake_at_ms, head, body)
    ), held AS MATERIALIZED (
        SELECT s.shard, s.owner, s.epoch, s.seq FROM unnest($15::int4[], $16::text[], $17::int8[]) AS f (shard, owner, epoch)
        JOIN shards AS s ON s.shard = f.shard AND s.owner = f.owner AND s.epoch = f.epoch
        ORDER BY s.shard FOR UPDATE OF s
    ), replaced AS (
        UPDATE sessions AS s SET status = g.status, steps = g.steps, next_offset = g.next_offset, head = g.head,
            wake_at_ms = CASE WHEN greatest(s.wake_at_ms, g.wake_at_ms) <= (SELECT ms + 1000 FROM clock)
                AND s.wake_at_ms IS NOT NULL AND g.wake_at_ms IS NOT NULL THEN s.wake_at_ms ELSE g.wake_at_ms END
        FROM given AS g
        WHERE s.namespace = g.namespace AND s.session_id = g.session_id AND s.shard = g.shard
            AND s.steps = g.expect_steps AND s.next_offset = g.expect_offset AND s.head <> g.head
            AND ((g.shard, g.owner, g.epoch) IN (SELECT shard, owner, epoch FROM held)) IS TRUE
        RETURNING g.shard, g.place
    ), kept AS MATERIALIZED (
        SELECT g.shard, g.place FROM given AS g
        JOIN sessions AS s ON s.namespace = g.namespace AND s.session_id = g.session_id
        WHERE g.next_offset = g.expect_offset AND s.shard = g.shard AND s.head = g.head
            AND s.steps = g.expect_steps AND s.next_offset = g.expect_offset
            AND ((g.shard, g.owner, g.epoch) IN (SELECT shard, owner, epoch FROM held)) IS TRUE
    ), done AS MATERIALIZED (
        SELECT place FROM replaced UNION ALL SELECT place FROM kept
    ), placed AS MATERIALIZED (
        SELECT r.shard, r.place, h.seq + row_number() OVER (PARTITION BY r.shard ORDER BY r.place) AS seq
        FROM replaced AS r JOIN held AS h ON h.shard = r.shard
    ), moved AS (
        UPDATE shards AS s SET seq = p.seq
        FROM (SELECT shard, max(seq) AS seq FROM placed GROUP BY shard) AS p WHERE s.shard = p.shard
    ), journaled AS (
        INSERT INTO journal (shard, seq, namespace, session_id, first_offset, last_offset, committed_at_ms, body)
        SELECT p.shard, p.seq, g.namespace, g.session_id, g.expect_offset, g.next_offset - 1, (SELECT ms FROM clock), g.body
        FROM placed AS p JOIN given AS g ON g.place = p.place
    ), settled AS (
        UPDATE actions AS a SET processed_at_ms = (SELECT ms FROM clock), outcome = t.outcome, code = t.code,
            error = t.error
        FROM unnest($18::int8[], $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[])
            AS t (place, namespace, session_id, action_id, outcome, code, error)
        WHERE a.namespace = t.namespace AND a.action_id = t.action_id AND a.session_id = t.session_id
            AND a.outcome IS NULL AND (t.place IN (SELECT place FROM done)) IS TRUE
    ), recorded AS (
        INSERT INTO effects (namespace, session_id, effect_key, class, state, what, settled_at_ms)
        SELECT namespace, session_id, effect_key, class, state, what,
            CASE state WHEN 'settled' THEN (SELECT ms FROM clock) END
        FROM unnest($25::int8[], $26::text[], $27::text[], $28::text[], $29::text[], $30::text[], $31::text[])
            AS t (place, namespace, session_id, effect_key, class, state, what)
        WHERE (t.place IN (SELECT place FROM done)) IS TRUE
        ON CONFLICT (namespace, session_id, effect_key) DO UPDATE
            SET state = excluded.state, settled_at_ms = excluded.settled_at_ms WHERE effects.state <> 'settled'
    )
    SELECT place, seq, shard, NULL::text AS owner, NULL::int8 AS epoch FROM placed
    UNION ALL SELECT k.place, h.seq, k.shard, NULL::text, NULL::int8 FROM kept AS k JOIN held AS h ON h.shard = k.shard
    UNION ALL SELECT NULL, NULL, shard, owner, epoch FROM held"
);

/// For a transaction that goes on after its commits: first the shards, in order.
pub(super) const LOCK_SHARDS: &str =
    "SELECT shard FROM shards WHERE shard = ANY ($1::int4[]) ORDER BY shard FOR UPDATE";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[("commit::commit", COMMIT), ("commit::lock_shards", LOCK_SHARDS)];
