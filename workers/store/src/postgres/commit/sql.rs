//! The statements of a commit. Each is a transaction by itself: one message to the database, whatever
//! the number of sessions.

use super::super::rows::now;
use super::super::talk::{add_spent, keep_turn, operation_columns, take_state};

/// In order: the shards that are held as said are locked, by number; the heads that are as expected
/// are replaced, in the order given, which is that of their ids; what was replaced gets its places in
/// the journal; then its actions are settled and its effects written. A head that is there already, as
/// it is when a commit without steps and events comes a second time, takes no place; if it comes while
/// the first one is still under way, it is in neither list and the answer is a conflict, as for others; whatever it
/// says is said once.
///
/// `given` ($1 to $14) is the commits. The shard's row is locked before anything of it is read, and
/// this program never runs two of these statements for one shard at a time, so each sees what the one
/// before left behind. The tests `IN (…) IS TRUE` keep the order of what they filter: a join might not.
/// An action that has no outcome is not processed; said this way, no partial index tempts the planner
/// away from the key.
macro_rules! commit_parts {
    ($unless:literal) => {
        concat!(
    "clock AS MATERIALIZED (SELECT ",
    now!(),
    " AS ms), given AS MATERIALIZED (
        SELECT * FROM unnest($1::int8[], $2::int4[], $3::text[], $4::int8[], $5::text[], $6::text[], $7::int8[],
            $8::int8[], $9::text[], $10::int8[], $11::int8[], $12::int8[], $13::text[], $14::text[])
            AS g (place, shard, owner, epoch, namespace, session_id, expect_steps, expect_offset, status, steps,
                next_offset, wake_at_ms, head, body)
    ), held AS MATERIALIZED (
        SELECT s.shard, s.owner, s.epoch, s.seq FROM unnest($15::int4[], $16::text[], $17::int8[]) AS f (shard, owner, epoch)
        JOIN shards AS s ON s.shard = f.shard AND s.owner = f.owner AND s.epoch = f.epoch ",
    $unless,
    "
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
    )"
        )
    };
}

/// What became of each commit, and who holds the shards.
macro_rules! commit_results {
    () => {
        "SELECT place, seq, shard, NULL::text AS owner, NULL::int8 AS epoch FROM placed
    UNION ALL SELECT k.place, h.seq, k.shard, NULL::text, NULL::int8 FROM kept AS k JOIN held AS h ON h.shard = k.shard
    UNION ALL SELECT NULL, NULL, shard, owner, epoch FROM held"
    };
}

/// The place of no commit.
pub(super) const HOMELESS: i64 = -1;

/// Commits that say nothing to conversations.
pub(super) const COMMIT: &str = concat!("WITH ", commit_parts!(""), " ", commit_results!());

/// Commits that say something to conversations which are there, and send nothing. If one of them ($46, $47) is not
/// there, nothing is done, and the answer has the place [`HOMELESS`].
///
/// What is new of the words ($32 to $44) gets its offsets from the rows of the conversations, as they are once they are
/// locked. Whether it is new is looked up as of the beginning of the statement: who else wrote the same record meanwhile
/// makes this one fail on its key, and the next try sees it. Then as [`super::super::talk::SAY`] says: the ends of the
/// logs, what was spent (bound: $45), turns ($48 to $55); and operations ($56 to $73) after the conversations, because
/// that is the order of locks. Calls of models by steps without turns ($74 to $78) are spent with the others.
pub(super) const SPEAK: &str = concat!(
    "WITH words AS MATERIALIZED (
        SELECT * FROM unnest($32::int8[], $33::text[], $34::text[], $35::text[], $36::text[], $37::text[], $38::text[],
            $39::int8[], $40::text[], $41::text[], $42::int4[], $43::int8[], $44::int8[]) WITH ORDINALITY
            AS w (place, namespace, conversation_id, kind, turn_id, agent_id, session_id, at_ms, record_id, body,
                of_shard, tokens, cost_nanos, nth)
    ), homeless AS MATERIALIZED (
        SELECT -1::int8 AS place FROM unnest($46::text[], $47::text[]) AS j (namespace, conversation_id)
        WHERE (SELECT c.conversation_id FROM conversations AS c
            WHERE c.namespace = j.namespace AND c.conversation_id = j.conversation_id) IS NULL
        LIMIT 1
    ), ",
    commit_parts!("WHERE (SELECT h.place FROM homeless AS h) IS NULL"),
    ", forums AS MATERIALIZED (
        SELECT c.namespace, c.conversation_id, c.last_offset
        FROM (SELECT DISTINCT w.namespace, w.conversation_id FROM words AS w
            WHERE (w.place IN (SELECT place FROM done)) IS TRUE) AS j
        JOIN conversations AS c ON c.namespace = j.namespace AND c.conversation_id = j.conversation_id
        ORDER BY c.namespace, c.conversation_id FOR NO KEY UPDATE OF c
    ), fresh AS MATERIALIZED (
        SELECT n.*, f.last_offset + row_number() OVER (PARTITION BY n.namespace, n.conversation_id ORDER BY n.nth)
            AS log_offset
        FROM (SELECT DISTINCT ON (w.namespace, w.conversation_id, w.record_id) w.* FROM words AS w
            WHERE (w.place IN (SELECT place FROM done)) IS TRUE
            ORDER BY w.namespace, w.conversation_id, w.record_id, w.nth) AS n
        JOIN forums AS f ON f.namespace = n.namespace AND f.conversation_id = n.conversation_id
        WHERE (SELECT l.log_offset FROM conversation_log AS l WHERE l.namespace = n.namespace
            AND l.conversation_id = n.conversation_id AND l.record_id = n.record_id) IS NULL
    ), ends AS (
        UPDATE conversations AS c SET last_offset = j.last_offset,
            updated_at_ms = greatest(c.updated_at_ms, (SELECT ms FROM clock)),
            unarchived_from = coalesce(c.unarchived_from, c.archived_upto + 1)
        FROM (SELECT namespace, conversation_id, max(log_offset) AS last_offset FROM fresh
            GROUP BY namespace, conversation_id) AS j
        WHERE c.namespace = j.namespace AND c.conversation_id = j.conversation_id
        RETURNING c.namespace
    ), logged AS (
        INSERT INTO conversation_log (namespace, conversation_id, log_offset, kind, turn_id, agent_id, session_id,
            at_ms, record_id, body)
        SELECT namespace, conversation_id, log_offset, kind, turn_id, agent_id, session_id, at_ms, record_id, body
        FROM fresh
    ), spent AS (
        INSERT INTO spending (namespace, shard, tokens, cost_nanos, calls)
        SELECT namespace, of_shard, least(sum(tokens), $45::int8)::int8, least(sum(cost_nanos), $45::int8)::int8, count(*)
        FROM (SELECT namespace, of_shard, tokens, cost_nanos FROM fresh WHERE tokens IS NOT NULL
            UNION ALL SELECT p.namespace, p.of_shard, p.tokens, p.cost_nanos
            FROM unnest($74::int8[], $75::text[], $76::int4[], $77::int8[], $78::int8[])
                AS p (place, namespace, of_shard, tokens, cost_nanos)
            WHERE (p.place IN (SELECT place FROM done)) IS TRUE) AS u
        GROUP BY namespace, of_shard ",
    add_spent!("$45"),
    "), turned AS (
        INSERT INTO turns (namespace, turn_id, conversation_id, session_id, status, created_at_ms, body)
        SELECT namespace, turn_id, conversation_id, session_id, status, created_at_ms, body
        FROM unnest($48::int8[], $49::text[], $50::text[], $51::text[], $52::text[], $53::text[], $54::int8[], $55::text[])
            AS t (place, namespace, turn_id, conversation_id, session_id, status, created_at_ms, body)
        WHERE (t.place IN (SELECT place FROM done)) IS TRUE ",
    keep_turn!(),
    "), dispatched AS (
        INSERT INTO operations (",
    operation_columns!(),
    ")
        SELECT ",
    operation_columns!(),
    " FROM unnest($56::int8[], $57::text[], $58::text[], $59::text[], $60::text[], $61::text[], $62::text[], $63::text[],
            $64::text[], $65::int8[], $66::int8[], $67::int8[], $68::int8[], $69::text[], $70::int8[], $71::text[],
            $72::text[], $73::int8[]) AS o (place, ",
    operation_columns!(),
    ")
        WHERE (o.place IN (SELECT place FROM done)) IS TRUE AND (SELECT count(*) FROM ends) >= 0 ",
    take_state!(),
    ") ",
    commit_results!(),
    " UNION ALL SELECT place, NULL, NULL, NULL, NULL FROM homeless"
);

/// For a transaction that goes on after its commits: first the shards, in order.
pub(super) const LOCK_SHARDS: &str =
    "SELECT shard FROM shards WHERE shard = ANY ($1::int4[]) ORDER BY shard FOR UPDATE";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] =
    &[("commit::commit", COMMIT), ("commit::speak", SPEAK), ("commit::lock_shards", LOCK_SHARDS)];
