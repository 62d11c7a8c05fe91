//! The statements on memories.

use super::super::rows::now;
use crate::remembering::{current_columns, memory_columns};

/// Held to the end of the transaction. No id holds a slash.
pub(super) const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('stepfleet memories ' || $1 || '/' || $2, 0))";
pub(super) const OF_ID: &str = concat!(current_columns!(), "WHERE m.namespace = $1 AND m.agent_id = $2 AND m.id = $3");
pub(super) const OF_LABEL: &str =
    concat!(current_columns!(), "WHERE m.namespace = $1 AND m.agent_id = $2 AND m.label = $3");
/// `$15` keeps the vector that is there, if it is.
pub(super) const PUT: &str = concat!(
    "INSERT INTO memories AS m (namespace, agent_id, id, version, label, tier, type, significance, metadata, content,
        content_ref, content_hash, body_hash, embedding, embedding_model, created_at_ms, updated_at_ms)
    SELECT $1::text, $2::text, $3::text, $4::int8, $5::text, $6::text, $7::text, $8::float8, $9::text, $10::text,
        $11::text, $12::bytea, $13::bytea, $14::bytea, $16::text, clock.now, clock.now
    FROM (SELECT ",
    now!(),
    " AS now) AS clock
    ON CONFLICT (namespace, agent_id, id) DO UPDATE SET version = excluded.version, label = excluded.label,
        tier = excluded.tier, type = excluded.type, significance = excluded.significance,
        metadata = excluded.metadata, content = excluded.content, content_ref = excluded.content_ref,
        content_hash = excluded.content_hash, body_hash = excluded.body_hash,
        embedding = CASE WHEN $15::bool THEN m.embedding ELSE excluded.embedding END,
        embedding_model = CASE WHEN NOT $15::bool THEN excluded.embedding_model
            WHEN m.embedding IS NOT NULL THEN m.embedding_model END,
        updated_at_ms = excluded.updated_at_ms, revision = m.revision + 1, kept_at_ms = NULL, is_light = FALSE"
);
pub(super) const EMBED: &str = "
    UPDATE memories SET embedding_model = $5, embedding = $6, revision = revision + 1, kept_at_ms = NULL,
        is_light = FALSE
    WHERE namespace = $1 AND agent_id = $2 AND id = $3 AND version = $4 AND deleted_at_ms IS NULL";
pub(super) const FORGET: &str = concat!(
    "UPDATE memories SET version = version + 1, label = NULL, metadata = '{}', content = '', content_ref = NULL,
        content_hash = decode(repeat('00', 32), 'hex'), body_hash = decode(repeat('00', 32), 'hex'),
        embedding = NULL, embedding_model = NULL, updated_at_ms = clock.now, deleted_at_ms = clock.now,
        revision = revision + 1, kept_at_ms = NULL, is_light = FALSE
    FROM (SELECT ",
    now!(),
    " AS now) AS clock
    WHERE namespace = $1 AND agent_id = $2 AND id = $3"
);
pub(super) const PUT_BLOB: &str = concat!(
    "INSERT INTO blobs (namespace, blob_id, content, created_at_ms) VALUES ($1, $2, $3, ",
    now!(),
    ") ON CONFLICT (namespace, blob_id)
        DO UPDATE SET content = excluded.content, created_at_ms = excluded.created_at_ms"
);
pub(super) const FORGET_BLOB: &str = "DELETE FROM blobs WHERE namespace = $1 AND blob_id = $2";

/// Changes of writers, and the move to the archive.
macro_rules! stamp {
    () => {
        "2 * revision + is_light::int4"
    };
}

macro_rules! whole {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            memory_columns!(),
            ", b.content AS overflow FROM memories AS m
            LEFT JOIN blobs AS b ON b.namespace = m.namespace AND b.blob_id = m.content_ref
            WHERE m.namespace = $1 AND m.agent_id = $2 AND m.deleted_at_ms IS NULL AND ",
            $condition
        )
    };
}

pub(super) const READ_ID: &str = whole!("m.id = $3");
pub(super) const READ_LABEL: &str = whole!("m.label = $3");
pub(super) const UNEMBEDDED: &str = whole!("m.id > $3 AND coalesce(m.embedding_model, '') = $4 ORDER BY m.id LIMIT $5");
pub(super) const FLOOR: &str = "
    SELECT updated_at_ms FROM memories WHERE namespace = $1 AND agent_id = $2 AND deleted_at_ms IS NULL
    ORDER BY updated_at_ms DESC, id DESC LIMIT 1 OFFSET $3";
pub(super) const SCAN: &str = "
    SELECT id, label, tier, type, significance, metadata, content, embedding, embedding_model, updated_at_ms
    FROM memories
    WHERE namespace = $1 AND agent_id = $2 AND id > $3 AND deleted_at_ms IS NULL AND updated_at_ms > $4
    ORDER BY id LIMIT $5";
/// Which memories there are. A stamp changes with everything that a search sees. In the order of `memories_recent`, so
/// that this index serves it and not one of all agents.
pub(super) const STAMPS: &str = concat!(
    "SELECT id, ",
    stamp!(),
    " AS stamp FROM memories WHERE namespace = $1 AND agent_id = $2 AND deleted_at_ms IS NULL
    ORDER BY updated_at_ms DESC, id DESC LIMIT $3"
);
/// Those of the given ids, by their key: every other index has the living alone.
macro_rules! given {
    () => {
        " FROM unnest($3::text[]) AS given (id)
    CROSS JOIN LATERAL (SELECT * FROM memories AS k
        WHERE k.namespace = $1 AND k.agent_id = $2 AND k.id = given.id OFFSET 0) AS m
    WHERE m.deleted_at_ms IS NULL"
    };
}
/// As [`SCAN`], of the given memories alone, with their stamps.
pub(super) const SCAN_SOME: &str = concat!(
    "SELECT m.id, m.label, m.tier, m.type, m.significance, m.metadata, m.content, m.embedding, m.embedding_model,
        m.updated_at_ms, ",
    stamp!(),
    " AS stamp",
    given!()
);
pub(super) const SOME: &str = concat!("SELECT ", memory_columns!(), given!());

macro_rules! recent {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            memory_columns!(),
            " FROM memories AS m
            WHERE m.namespace = $1 AND m.agent_id = $2 AND m.deleted_at_ms IS NULL
                AND (m.updated_at_ms, m.id) < ($3, $4)",
            $condition,
            " ORDER BY m.updated_at_ms DESC, m.id DESC LIMIT $5"
        )
    };
}

pub(super) const RECENT: &str = recent!("");
pub(super) const RECENT_OF_TIER: &str = recent!(" AND m.tier = $6");
pub(super) const RECENT_OF_TYPE: &str = recent!(" AND m.type = $6");

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("memories::lock", LOCK),
    ("memories::of_id", OF_ID),
    ("memories::of_label", OF_LABEL),
    ("memories::put", PUT),
    ("memories::embed", EMBED),
    ("memories::forget", FORGET),
    ("memories::put_blob", PUT_BLOB),
    ("memories::forget_blob", FORGET_BLOB),
    ("memories::read_id", READ_ID),
    ("memories::read_label", READ_LABEL),
    ("memories::unembedded", UNEMBEDDED),
    ("memories::floor", FLOOR),
    ("memories::scan", SCAN),
    ("memories::stamps", STAMPS),
    ("memories::scan_some", SCAN_SOME),
    ("memories::some", SOME),
    ("memories::recent", RECENT),
    ("memories::recent_of_tier", RECENT_OF_TIER),
    ("memories::recent_of_type", RECENT_OF_TYPE),
];
