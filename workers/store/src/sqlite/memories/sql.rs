//! The statements on memories.

use crate::remembering::{current_columns, memory_columns};

pub(super) const OF_ID: &str =
    concat!(current_columns!(), "INDEXED BY memories_id WHERE m.namespace = ?1 AND m.agent_id = ?2 AND m.id = ?3");
pub(super) const OF_LABEL: &str = concat!(
    current_columns!(),
    "INDEXED BY memories_label WHERE m.namespace = ?1 AND m.agent_id = ?2 AND m.label = ?3 AND m.label IS NOT NULL"
);
/// `?15` keeps the vector that is there, if it is.
pub(super) const PUT: &str = "
    INSERT INTO memories (namespace, agent_id, id, version, label, tier, type, significance, metadata, content,
        content_ref, content_hash, body_hash, embedding, embedding_model, created_at_ms, updated_at_ms)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?16, ?17, ?17)
    ON CONFLICT (namespace, agent_id, id) DO UPDATE SET version = excluded.version, label = excluded.label,
        tier = excluded.tier, type = excluded.type, significance = excluded.significance,
        metadata = excluded.metadata, content = excluded.content, content_ref = excluded.content_ref,
        content_hash = excluded.content_hash, body_hash = excluded.body_hash,
        embedding = CASE WHEN ?15 THEN memories.embedding ELSE excluded.embedding END,
        embedding_model = CASE WHEN NOT ?15 THEN excluded.embedding_model
            WHEN memories.embedding IS NOT NULL THEN memories.embedding_model END,
        updated_at_ms = excluded.updated_at_ms, revision = memories.revision + 1, kept_at_ms = NULL, is_light = 0";
pub(super) const EMBED: &str = "
    UPDATE memories SET embedding_model = ?5, embedding = ?6, revision = revision + 1, kept_at_ms = NULL, is_light = 0
    WHERE namespace = ?1 AND agent_id = ?2 AND id = ?3 AND version = ?4 AND deleted_at_ms IS NULL";
pub(super) const FORGET: &str = "
    UPDATE memories SET version = version + 1, label = NULL, metadata = '{}', content = '', content_ref = NULL,
        content_hash = zeroblob(32), body_hash = zeroblob(32), embedding = NULL, embedding_model = NULL,
        updated_at_ms = ?4, deleted_at_ms = ?4, revision = revision + 1, kept_at_ms = NULL, is_light = 0
    WHERE namespace = ?1 AND agent_id = ?2 AND id = ?3";
pub(super) const PUT_BLOB: &str = "
    INSERT INTO blobs (namespace, blob_id, content, created_at_ms) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (namespace, blob_id) DO UPDATE SET content = excluded.content, created_at_ms = excluded.created_at_ms";
pub(super) const FORGET_BLOB: &str = "DELETE FROM blobs WHERE namespace = ?1 AND blob_id = ?2";

macro_rules! whole {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            memory_columns!(),
            ", b.content AS overflow FROM memories AS m INDEXED BY ",
            $index,
            " LEFT JOIN blobs AS b ON b.namespace = m.namespace AND b.blob_id = m.content_ref
            WHERE m.namespace = ?1 AND m.agent_id = ?2 AND m.deleted_at_ms IS NULL AND ",
            $condition
        )
    };
}

pub(super) const READ_ID: &str = whole!("memories_id", "m.id = ?3");
pub(super) const READ_LABEL: &str = whole!("memories_label", "m.label = ?3 AND m.label IS NOT NULL");
pub(super) const UNEMBEDDED: &str =
    whole!("memories_model", "m.id > ?3 AND coalesce(m.embedding_model, '') = ?4 ORDER BY m.id LIMIT ?5");
pub(super) const FLOOR: &str = "
    SELECT updated_at_ms FROM memories INDEXED BY memories_recent
    WHERE namespace = ?1 AND agent_id = ?2 AND deleted_at_ms IS NULL
    ORDER BY updated_at_ms DESC, id DESC LIMIT 1 OFFSET ?3";
pub(super) const SCAN: &str = "
    SELECT id, label, tier, type, significance, metadata, content, embedding, embedding_model, updated_at_ms
    FROM memories INDEXED BY memories_id
    WHERE namespace = ?1 AND agent_id = ?2 AND id > ?3 AND deleted_at_ms IS NULL AND updated_at_ms > ?4
    ORDER BY id LIMIT ?5";
/// As [`SCAN`], of the given memories alone.
pub(super) const SCAN_SOME: &str = "
    SELECT m.id, m.label, m.tier, m.type, m.significance, m.metadata, m.content, m.embedding, m.embedding_model,
        m.updated_at_ms
    FROM json_each(?3) AS j CROSS JOIN memories AS m INDEXED BY memories_id
        ON m.namespace = ?1 AND m.agent_id = ?2 AND m.id = j.value AND m.deleted_at_ms IS NULL";
pub(super) const SOME: &str = concat!(
    "SELECT ",
    memory_columns!(),
    " FROM json_each(?3) AS j CROSS JOIN memories AS m INDEXED BY memories_id
        ON m.namespace = ?1 AND m.agent_id = ?2 AND m.id = j.value AND m.deleted_at_ms IS NULL"
);

macro_rules! recent {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            memory_columns!(),
            " FROM memories AS m INDEXED BY ",
            $index,
            " WHERE m.namespace = ?1 AND m.agent_id = ?2 AND m.deleted_at_ms IS NULL
                AND (m.updated_at_ms, m.id) < (?3, ?4)",
            $condition,
            " ORDER BY m.updated_at_ms DESC, m.id DESC LIMIT ?5"
        )
    };
}

pub(super) const RECENT: &str = recent!("memories_recent", "");
pub(super) const RECENT_OF_TIER: &str = recent!("memories_tier", " AND m.tier = ?6");
pub(super) const RECENT_OF_TYPE: &str = recent!("memories_type", " AND m.type = ?6");

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
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
    ("memories::scan_some", SCAN_SOME),
    ("memories::some", SOME),
    ("memories::recent", RECENT),
    ("memories::recent_of_tier", RECENT_OF_TIER),
    ("memories::recent_of_type", RECENT_OF_TYPE),
];
