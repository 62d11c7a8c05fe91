//! The statements that read conversations and change their rows. Readers are planned for what is
//! asked, so conditions that do not apply cost nothing.

use crate::columns::talk::conversation_columns;

pub(super) const ONE: &str = concat!(
    "SELECT ",
    conversation_columns!(),
    " FROM conversations AS c WHERE c.namespace = $1 AND c.conversation_id = $2"
);
pub(super) const LOCK_ONE: &str = concat!(
    "SELECT ",
    conversation_columns!(),
    " FROM conversations AS c WHERE c.namespace = $1 AND c.conversation_id = $2 FOR NO KEY UPDATE"
);

/// The pages of a list differ in the table that leads; all conditions are in each of them. `OFFSET 0`
/// keeps what is asked of each row a look by key: nothing is read whole and hashed, however wrong
/// the planner's numbers are.
macro_rules! list {
    ($from:literal, $condition:literal, $at:literal, $id:literal) => {
        concat!(
            "SELECT ",
            conversation_columns!(),
            $from,
            " WHERE c.namespace = $1 AND (",
            $at,
            ", ",
            $id,
            ") < ($2, $3)
                AND ($4::text IS NULL OR c.status = $4)
                AND ($5::text IS NULL OR c.created_by = $5)
                AND ($6::text IS NULL OR c.subject_id = $6)
                AND ($7::text IS NULL OR EXISTS (SELECT 1 FROM conversation_tags AS g
                    WHERE g.namespace = c.namespace AND g.tag = $7 AND g.opened_at_ms = c.created_at_ms
                        AND g.conversation_id = c.conversation_id OFFSET 0))
                AND ($8::text IS NULL OR EXISTS (SELECT 1 FROM conversation_participants AS a
                    WHERE a.namespace = c.namespace AND a.conversation_id = c.conversation_id AND a.agent_id = $8
                    OFFSET 0))
                AND ($9::text IS NULL OR EXISTS (SELECT 1 FROM conversation_participants AS u
                    WHERE u.namespace = c.namespace AND u.conversation_id = c.conversation_id AND u.user_id = $9
                    OFFSET 0))
                AND ($10::bool OR c.visibility = 'listed')",
            $condition,
            " ORDER BY ",
            $at,
            " DESC, ",
            $id,
            " DESC LIMIT $11"
        )
    };
}

pub(super) const LIST: &str = list!(" FROM conversations AS c", "", "c.created_at_ms", "c.conversation_id");
pub(super) const LIST_OF_TAG: &str = list!(
    " FROM conversation_tags AS t
    CROSS JOIN LATERAL (SELECT * FROM conversations AS k
        WHERE k.namespace = t.namespace AND k.conversation_id = t.conversation_id OFFSET 0) AS c",
    " AND t.namespace = $1 AND t.tag = $7",
    "t.opened_at_ms",
    "t.conversation_id"
);
/// An agent may take part with several sessions: the first row stands for all.
pub(super) const LIST_OF_AGENT: &str = list!(
    " FROM conversation_participants AS p
    CROSS JOIN LATERAL (SELECT * FROM conversations AS k
        WHERE k.namespace = p.namespace AND k.conversation_id = p.conversation_id OFFSET 0) AS c",
    " AND p.namespace = $1 AND p.agent_id = $8 AND NOT EXISTS (
        SELECT 1 FROM conversation_participants AS o WHERE o.namespace = p.namespace
            AND o.conversation_id = p.conversation_id AND o.agent_id = p.agent_id AND o.participant_id < p.participant_id
        OFFSET 0)",
    "p.opened_at_ms",
    "p.conversation_id"
);
pub(super) const LIST_OF_USER: &str = list!(
    " FROM conversation_participants AS p
    CROSS JOIN LATERAL (SELECT * FROM conversations AS k
        WHERE k.namespace = p.namespace AND k.conversation_id = p.conversation_id OFFSET 0) AS c",
    " AND p.namespace = $1 AND p.user_id = $9 AND NOT EXISTS (
        SELECT 1 FROM conversation_participants AS o WHERE o.namespace = p.namespace
            AND o.conversation_id = p.conversation_id AND o.user_id = p.user_id AND o.participant_id < p.participant_id
        OFFSET 0)",
    "p.opened_at_ms",
    "p.conversation_id"
);

pub(super) const CHANGE: &str = "
    UPDATE conversations SET status = $3, updated_at_ms = $4, body = $5 WHERE namespace = $1 AND conversation_id = $2";
pub(super) const FORGET_TAGS: &str = "DELETE FROM conversation_tags WHERE namespace = $1 AND conversation_id = $2";

macro_rules! participants {
    () => {
        "SELECT p.joined_at_ms, p.left_at_ms, p.body FROM conversation_participants AS p
        WHERE p.namespace = $1 AND p.conversation_id = $2"
    };
}
pub(super) const PARTICIPANTS: &str =
    concat!(participants!(), " ORDER BY p.left_at_ms IS NOT NULL, p.joined_at_ms, p.participant_id LIMIT $3");
/// The very row, else whoever takes part as the same now.
pub(super) const SAME: &str = concat!(
    participants!(),
    " AND (p.participant_id = $3
        OR (p.left_at_ms IS NULL AND p.user_id IS NOT DISTINCT FROM $4::text
            AND p.agent_id IS NOT DISTINCT FROM $5::text AND p.session_id IS NOT DISTINCT FROM $6::text))
    ORDER BY p.participant_id = $3 DESC LIMIT 1"
);
pub(super) const SEAT: &str = concat!(participants!(), " AND p.participant_id = $3");
pub(super) const LEAVE: &str = "
    UPDATE conversation_participants SET left_at_ms = $4
    WHERE namespace = $1 AND conversation_id = $2 AND participant_id = $3";

/// The database counts the bytes, so that no more than was asked for travels.
macro_rules! log {
    ($order:literal, $condition:literal) => {
        concat!(
            "SELECT c.log_offset, c.record_id, c.kind, c.turn_id, c.agent_id, c.session_id, c.at_ms, c.body FROM (
                SELECT p.*, octet_length(p.body) AS own,
                    sum(octet_length(p.body)) OVER (ORDER BY p.log_offset ",
            $order,
            " ROWS UNBOUNDED PRECEDING) AS taken
                FROM (SELECT * FROM conversation_log AS l
                    WHERE l.namespace = $1 AND l.conversation_id = $2 AND l.log_offset > $3 AND l.log_offset < $4
                        AND ($5::int8 IS NULL OR l.at_ms >= $5)
                        AND ($6::text[] IS NULL OR l.kind = ANY ($6))
                        AND ($7::text IS NULL OR l.turn_id = $7)",
            $condition,
            " ORDER BY l.log_offset ",
            $order,
            " LIMIT $8) AS p) AS c
            WHERE c.taken <= $9 OR c.taken = c.own ORDER BY c.log_offset ",
            $order
        )
    };
}
pub(super) const LOG: [&str; 2] = [log!("ASC", ""), log!("DESC", "")];
pub(super) const LOG_OF_TURN: [&str; 2] = [log!("ASC", " AND l.turn_id = $7"), log!("DESC", " AND l.turn_id = $7")];
/// Asked for nothing but summaries: the planner takes their index.
pub(super) const LOG_OF_SUMMARIES: [&str; 2] =
    [log!("ASC", " AND l.kind = 'summary'"), log!("DESC", " AND l.kind = 'summary'")];
pub(super) const RECORD: &str = "
    SELECT l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id, l.session_id, l.at_ms, l.body
    FROM conversation_log AS l WHERE l.namespace = $1 AND l.conversation_id = $2 AND l.record_id = $3";

pub(super) const TURN: &str = "SELECT t.body FROM turns AS t WHERE t.namespace = $1 AND t.turn_id = $2";

macro_rules! turns {
    ($condition:literal, $sign:literal, $order:literal) => {
        concat!(
            "SELECT t.body FROM turns AS t WHERE t.namespace = $1 AND (t.created_at_ms, t.turn_id) ",
            $sign,
            " ($2, $3)
                AND ($4::text IS NULL OR t.conversation_id = $4)
                AND ($5::text IS NULL OR t.session_id = $5)
                AND ($6::text IS NULL OR t.status = $6)",
            $condition,
            " ORDER BY t.created_at_ms ",
            $order,
            ", t.turn_id ",
            $order,
            " LIMIT $7"
        )
    };
}
pub(super) const TURNS: [&str; 2] = [turns!("", ">", "ASC"), turns!("", "<", "DESC")];
pub(super) const TURNS_OF_CONVERSATION: [&str; 2] =
    [turns!(" AND t.conversation_id = $4", ">", "ASC"), turns!(" AND t.conversation_id = $4", "<", "DESC")];
pub(super) const TURNS_OPEN: [&str; 2] = [
    turns!(" AND t.conversation_id = $4 AND t.status = 'active'", ">", "ASC"),
    turns!(" AND t.conversation_id = $4 AND t.status = 'active'", "<", "DESC"),
];

/// By the indexes of what is pending and of what is active: however long the session has been talking.
pub(super) const IS_AT_WORK: &str = "
    SELECT coalesce(
        (SELECT true FROM sessions AS s CROSS JOIN LATERAL (
            SELECT 1 FROM actions AS a
            WHERE a.processed_at_ms IS NULL AND a.shard = s.shard AND a.namespace = s.namespace
                AND a.session_id = s.session_id AND a.lane = 'work' AND a.type = 'input' AND a.action_id <> $3
            LIMIT 1) AS w
            WHERE s.namespace = $1 AND s.session_id = $2),
        (SELECT true FROM turns AS t WHERE t.namespace = $1 AND t.session_id = $2 AND t.status = 'active' LIMIT 1),
        false) AS is_at_work";

/// Walks the index of active turns, over all namespaces.
pub(super) const ACTIVE_TURNS: &str = "
    SELECT t.namespace, t.conversation_id, t.created_at_ms, t.turn_id, t.body FROM turns AS t
    WHERE t.status = 'active' AND (t.namespace, t.conversation_id, t.created_at_ms, t.turn_id) > ($1, $2, $3, $4)
    ORDER BY t.namespace, t.conversation_id, t.created_at_ms, t.turn_id LIMIT $5";
pub(super) const OPEN_TURNS: &str = "
    SELECT t.body FROM unnest($2::text[]) AS j (conversation_id)
    CROSS JOIN LATERAL (SELECT * FROM turns AS k
        WHERE k.namespace = $1 AND k.conversation_id = j.conversation_id AND k.status = 'active' OFFSET 0) AS t
    LIMIT $3";
pub(super) const SPENT: &str = "
    SELECT coalesce(sum(least(tokens, $2::int8)), 0)::int8 AS tokens,
        coalesce(sum(least(cost_nanos, $2::int8)), 0)::int8 AS cost_nanos,
        coalesce(sum(calls), 0)::int8 AS calls
    FROM spending WHERE namespace = $1";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("conversations::open_turns", OPEN_TURNS),
    ("conversations::is_at_work", IS_AT_WORK),
    ("conversations::active_turns", ACTIVE_TURNS),
    ("conversations::spent", SPENT),
    ("conversations::look", super::look::LOOK),
    ("conversations::one", ONE),
    ("conversations::lock_one", LOCK_ONE),
    ("conversations::list", LIST),
    ("conversations::list_of_tag", LIST_OF_TAG),
    ("conversations::list_of_agent", LIST_OF_AGENT),
    ("conversations::list_of_user", LIST_OF_USER),
    ("conversations::change", CHANGE),
    ("conversations::forget_tags", FORGET_TAGS),
    ("conversations::participants", PARTICIPANTS),
    ("conversations::same", SAME),
    ("conversations::seat", SEAT),
    ("conversations::leave", LEAVE),
    ("conversations::log", LOG[0]),
    ("conversations::log_back", LOG[1]),
    ("conversations::log_of_turn", LOG_OF_TURN[0]),
    ("conversations::log_of_turn_back", LOG_OF_TURN[1]),
    ("conversations::log_of_summaries", LOG_OF_SUMMARIES[0]),
    ("conversations::log_of_summaries_back", LOG_OF_SUMMARIES[1]),
    ("conversations::record", RECORD),
    ("conversations::turn", TURN),
    ("conversations::turns", TURNS[0]),
    ("conversations::turns_back", TURNS[1]),
    ("conversations::turns_of_conversation", TURNS_OF_CONVERSATION[0]),
    ("conversations::turns_of_conversation_back", TURNS_OF_CONVERSATION[1]),
    ("conversations::turns_open", TURNS_OPEN[0]),
    ("conversations::turns_open_back", TURNS_OPEN[1]),
];
