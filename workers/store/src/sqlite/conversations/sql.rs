//! The statements that read conversations and change their rows.

use crate::columns::talk::conversation_columns;

pub(super) const ONE: &str = concat!(
    "SELECT ",
    conversation_columns!(),
    " FROM conversations AS c WHERE c.namespace = ?1 AND c.conversation_id = ?2"
);

/// The pages of a list differ in the index that leads; all conditions are in each of them.
macro_rules! list {
    ($from:literal, $condition:literal, $at:literal, $id:literal) => {
        concat!(
            "SELECT ",
            conversation_columns!(),
            $from,
            " WHERE c.namespace = ?1 AND (",
            $at,
            ", ",
            $id,
            ") < (?2, ?3)
                AND (?4 IS NULL OR c.status = ?4)
                AND (?5 IS NULL OR c.created_by = ?5)
                AND (?6 IS NULL OR c.subject_id = ?6)
                AND (?7 IS NULL OR EXISTS (SELECT 1 FROM conversation_tags AS g
                    WHERE g.namespace = c.namespace AND g.tag = ?7 AND g.opened_at_ms = c.created_at_ms
                        AND g.conversation_id = c.conversation_id))
                AND (?8 IS NULL OR EXISTS (SELECT 1 FROM conversation_participants AS a
                    WHERE a.namespace = c.namespace AND a.conversation_id = c.conversation_id AND a.agent_id = ?8))
                AND (?9 IS NULL OR EXISTS (SELECT 1 FROM conversation_participants AS u
                    WHERE u.namespace = c.namespace AND u.conversation_id = c.conversation_id AND u.user_id = ?9))
                AND (?10 OR c.visibility = 'listed')",
            $condition,
            " ORDER BY ",
            $at,
            " DESC, ",
            $id,
            " DESC LIMIT ?11"
        )
    };
}

pub(super) const LIST: &str =
    list!(" FROM conversations AS c INDEXED BY conversations_newest", "", "c.created_at_ms", "c.conversation_id");
pub(super) const LIST_LISTED: &str = list!(
    " FROM conversations AS c INDEXED BY conversations_listed",
    " AND c.visibility = 'listed'",
    "c.created_at_ms",
    "c.conversation_id"
);
pub(super) const LIST_OF_SUBJECT: &str = list!(
    " FROM conversations AS c INDEXED BY conversations_of_subject",
    " AND c.subject_id = ?6",
    "c.created_at_ms",
    "c.conversation_id"
);
pub(super) const LIST_OF_TAG: &str = list!(
    " FROM conversation_tags AS t
    CROSS JOIN conversations AS c ON c.namespace = t.namespace AND c.conversation_id = t.conversation_id",
    " AND t.namespace = ?1 AND t.tag = ?7",
    "t.opened_at_ms",
    "t.conversation_id"
);
/// An agent may take part with several sessions: the first row stands for all.
pub(super) const LIST_OF_AGENT: &str = list!(
    " FROM conversation_participants AS p INDEXED BY participants_of_agent
    CROSS JOIN conversations AS c ON c.namespace = p.namespace AND c.conversation_id = p.conversation_id",
    " AND p.namespace = ?1 AND p.agent_id = ?8 AND NOT EXISTS (
        SELECT 1 FROM conversation_participants AS o WHERE o.namespace = p.namespace
            AND o.conversation_id = p.conversation_id AND o.agent_id = p.agent_id AND o.participant_id < p.participant_id)",
    "p.opened_at_ms",
    "p.conversation_id"
);
pub(super) const LIST_OF_USER: &str = list!(
    " FROM conversation_participants AS p INDEXED BY participants_of_user
    CROSS JOIN conversations AS c ON c.namespace = p.namespace AND c.conversation_id = p.conversation_id",
    " AND p.namespace = ?1 AND p.user_id = ?9 AND NOT EXISTS (
        SELECT 1 FROM conversation_participants AS o WHERE o.namespace = p.namespace
            AND o.conversation_id = p.conversation_id AND o.user_id = p.user_id AND o.participant_id < p.participant_id)",
    "p.opened_at_ms",
    "p.conversation_id"
);

pub(super) const CHANGE: &str = "
    UPDATE conversations SET status = ?3, updated_at_ms = ?4, body = ?5 WHERE namespace = ?1 AND conversation_id = ?2";
pub(super) const FORGET_TAGS: &str = "DELETE FROM conversation_tags WHERE namespace = ?1 AND conversation_id = ?2";

macro_rules! participants {
    () => {
        "SELECT p.joined_at_ms, p.left_at_ms, p.body FROM conversation_participants AS p
        WHERE p.namespace = ?1 AND p.conversation_id = ?2"
    };
}
pub(super) const PARTICIPANTS: &str =
    concat!(participants!(), " ORDER BY p.left_at_ms IS NOT NULL, p.joined_at_ms, p.participant_id LIMIT ?3");
/// The very row, else whoever takes part as the same now.
pub(super) const SAME: &str = concat!(
    participants!(),
    " AND (p.participant_id = ?3
        OR (p.left_at_ms IS NULL AND p.user_id IS ?4 AND p.agent_id IS ?5 AND p.session_id IS ?6))
    ORDER BY p.participant_id = ?3 DESC LIMIT 1"
);
pub(super) const SEAT: &str = concat!(participants!(), " AND p.participant_id = ?3");
pub(super) const LEAVE: &str = "
    UPDATE conversation_participants SET left_at_ms = ?4
    WHERE namespace = ?1 AND conversation_id = ?2 AND participant_id = ?3";

macro_rules! log {
    ($index:literal, $condition:literal, $order:literal) => {
        concat!(
            "SELECT l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id, l.session_id, l.at_ms, l.body
            FROM conversation_log AS l",
            $index,
            " WHERE l.namespace = ?1 AND l.conversation_id = ?2 AND l.log_offset > ?3 AND l.log_offset < ?4
                AND (?5 IS NULL OR l.at_ms >= ?5)
                AND (?6 IS NULL OR l.kind IN (SELECT value FROM json_each(?6)))",
            $condition,
            " ORDER BY l.log_offset ",
            $order,
            " LIMIT ?8"
        )
    };
}
pub(super) const LOG: &str = log!("", " AND ?7 IS NULL", "ASC");
pub(super) const LOG_BACK: &str = log!("", " AND ?7 IS NULL", "DESC");
/// Asked for nothing but summaries.
pub(super) const LOG_OF_SUMMARIES_BACK: &str =
    log!(" INDEXED BY log_summaries", " AND ?7 IS NULL AND l.kind = 'summary'", "DESC");
pub(super) const LOG_OF_TURN: &str = log!(" INDEXED BY log_of_turn", " AND l.turn_id = ?7", "ASC");
pub(super) const LOG_OF_TURN_BACK: &str = log!(" INDEXED BY log_of_turn", " AND l.turn_id = ?7", "DESC");
pub(super) const RECORD: &str = "
    SELECT l.log_offset, l.record_id, l.kind, l.turn_id, l.agent_id, l.session_id, l.at_ms, l.body
    FROM conversation_log AS l WHERE l.namespace = ?1 AND l.conversation_id = ?2 AND l.record_id = ?3";

pub(super) const TURN: &str = "SELECT t.body FROM turns AS t WHERE t.namespace = ?1 AND t.turn_id = ?2";

macro_rules! turns {
    ($index:literal, $condition:literal, $sign:literal, $order:literal) => {
        concat!(
            "SELECT t.body FROM turns AS t INDEXED BY ",
            $index,
            " WHERE t.namespace = ?1 AND (t.created_at_ms, t.turn_id) ",
            $sign,
            " (?2, ?3)
                AND (?4 IS NULL OR t.conversation_id = ?4)
                AND (?5 IS NULL OR t.session_id = ?5)
                AND (?6 IS NULL OR t.status = ?6)",
            $condition,
            " ORDER BY t.created_at_ms ",
            $order,
            ", t.turn_id ",
            $order,
            " LIMIT ?7"
        )
    };
}
pub(super) const TURNS: [&str; 2] = [turns!("turns_newest", "", ">", "ASC"), turns!("turns_newest", "", "<", "DESC")];
pub(super) const TURNS_OF_CONVERSATION: [&str; 2] = [
    turns!("turns_of_conversation", " AND t.conversation_id = ?4", ">", "ASC"),
    turns!("turns_of_conversation", " AND t.conversation_id = ?4", "<", "DESC"),
];
pub(super) const TURNS_OF_SESSION: [&str; 2] = [
    turns!("turns_of_session", " AND t.session_id = ?5", ">", "ASC"),
    turns!("turns_of_session", " AND t.session_id = ?5", "<", "DESC"),
];
pub(super) const TURNS_OPEN: [&str; 2] = [
    turns!("turns_open", " AND t.conversation_id = ?4 AND t.status = 'active'", ">", "ASC"),
    turns!("turns_open", " AND t.conversation_id = ?4 AND t.status = 'active'", "<", "DESC"),
];

/// However long the session has been talking.
pub(super) const IS_AT_WORK: &str = "
    SELECT EXISTS (
            SELECT 1 FROM sessions AS s CROSS JOIN actions AS a INDEXED BY actions_pending
                ON a.processed_at_ms IS NULL AND a.shard = s.shard AND a.namespace = s.namespace
                AND a.session_id = s.session_id AND a.lane = 'work' AND a.type = 'input' AND a.action_id <> ?3
            WHERE s.namespace = ?1 AND s.session_id = ?2)
        OR EXISTS (
            SELECT 1 FROM turns AS t INDEXED BY turns_active
            WHERE t.namespace = ?1 AND t.session_id = ?2 AND t.status = 'active') AS is_at_work";

/// Walks the index of active turns, over all namespaces.
pub(super) const ACTIVE_TURNS: &str = "
    SELECT t.namespace, t.conversation_id, t.created_at_ms, t.turn_id, t.body FROM turns AS t INDEXED BY turns_open
    WHERE t.status = 'active' AND (t.namespace, t.conversation_id, t.created_at_ms, t.turn_id) > (?1, ?2, ?3, ?4)
    ORDER BY t.namespace, t.conversation_id, t.created_at_ms, t.turn_id LIMIT ?5";
pub(super) const OPEN_TURNS: &str = "
    SELECT t.body FROM json_each(?2) AS j CROSS JOIN turns AS t INDEXED BY turns_open
        ON t.namespace = ?1 AND t.conversation_id = j.value AND t.status = 'active'
    LIMIT ?3";
pub(super) const SPENT: &str = "
    SELECT coalesce(sum(min(tokens, ?2)), 0) AS tokens, coalesce(sum(min(cost_nanos, ?2)), 0) AS cost_nanos,
        coalesce(sum(calls), 0) AS calls
    FROM spending WHERE namespace = ?1";

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("conversations::open_turns", OPEN_TURNS),
    ("conversations::is_at_work", IS_AT_WORK),
    ("conversations::active_turns", ACTIVE_TURNS),
    ("conversations::spent", SPENT),
    ("conversations::one", ONE),
    ("conversations::list", LIST),
    ("conversations::list_listed", LIST_LISTED),
    ("conversations::list_of_subject", LIST_OF_SUBJECT),
    ("conversations::list_of_tag", LIST_OF_TAG),
    ("conversations::list_of_agent", LIST_OF_AGENT),
    ("conversations::list_of_user", LIST_OF_USER),
    ("conversations::change", CHANGE),
    ("conversations::forget_tags", FORGET_TAGS),
    ("conversations::participants", PARTICIPANTS),
    ("conversations::same", SAME),
    ("conversations::seat", SEAT),
    ("conversations::leave", LEAVE),
    ("conversations::log", LOG),
    ("conversations::log_back", LOG_BACK),
    ("conversations::log_of_summaries_back", LOG_OF_SUMMARIES_BACK),
    ("conversations::log_of_turn", LOG_OF_TURN),
    ("conversations::log_of_turn_back", LOG_OF_TURN_BACK),
    ("conversations::record", RECORD),
    ("conversations::turn", TURN),
    ("conversations::turns", TURNS[0]),
    ("conversations::turns_back", TURNS[1]),
    ("conversations::turns_of_conversation", TURNS_OF_CONVERSATION[0]),
    ("conversations::turns_of_conversation_back", TURNS_OF_CONVERSATION[1]),
    ("conversations::turns_of_session", TURNS_OF_SESSION[0]),
    ("conversations::turns_of_session_back", TURNS_OF_SESSION[1]),
    ("conversations::turns_open", TURNS_OPEN[0]),
    ("conversations::turns_open_back", TURNS_OPEN[1]),
];
