//! The statements of the registry.

use super::super::rows::now;

macro_rules! row {
    () => {
        "SELECT v.kind, v.id, v.version, v.content_hash, v.content, d.created_at_ms, v.created_at_ms AS updated_at_ms "
    };
}

/// Held to the end of the transaction.
pub(super) const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('stepfleet definitions ' || $1, 0))";
pub(super) const KNOWN: &str = "
    SELECT d.kind, d.id, d.name, d.version, d.library_id, v.content_hash
    FROM unnest($2::text[], $3::text[]) AS given (kind, id)
    JOIN definitions AS d ON d.namespace = $1 AND d.kind = given.kind AND d.id = given.id
    JOIN definition_versions AS v
        ON v.namespace = d.namespace AND v.kind = d.kind AND v.id = d.id AND v.version = d.version";
pub(super) const PUT_HEADS: &str = concat!(
    "INSERT INTO definitions AS d
        (namespace, kind, id, version, name, library_id, project_ids, bytes, created_at_ms)
    SELECT $1, given.kind, given.id, given.version, given.name, given.library_id, given.project_ids::jsonb,
        given.bytes, ",
    now!(),
    " FROM unnest($2::text[], $3::text[], $4::int8[], $5::text[], $6::text[], $7::text[], $8::int8[])
        AS given (kind, id, version, name, library_id, project_ids, bytes)
    ON CONFLICT (namespace, kind, id) DO UPDATE SET version = excluded.version, name = excluded.name,
        library_id = excluded.library_id, project_ids = excluded.project_ids, bytes = excluded.bytes"
);
pub(super) const FORGET_VERSIONS: &str = "
    DELETE FROM definition_versions AS v USING unnest($2::text[], $3::text[]) AS given (kind, id)
    WHERE v.namespace = $1 AND v.kind = given.kind AND v.id = given.id";
pub(super) const PUT_VERSIONS: &str = concat!(
    "INSERT INTO definition_versions (namespace, kind, id, version, content_hash, content, created_at_ms)
    SELECT $1, given.kind, given.id, given.version, given.content_hash, given.content, ",
    now!(),
    " FROM unnest($2::text[], $3::text[], $4::int8[], $5::bytea[], $6::text[])
        AS given (kind, id, version, content_hash, content)"
);
pub(super) const NEWEST: &str = concat!(
    row!(),
    "FROM definitions AS d JOIN definition_versions AS v
        ON v.namespace = d.namespace AND v.kind = d.kind AND v.id = d.id AND v.version = d.version
    WHERE d.namespace = $1 AND d.kind = $2 AND d.id = $3"
);
pub(super) const AT: &str = concat!(
    row!(),
    "FROM definitions AS d JOIN definition_versions AS v
        ON v.namespace = d.namespace AND v.kind = d.kind AND v.id = d.id AND v.version = $4
    WHERE d.namespace = $1 AND d.kind = $2 AND d.id = $3"
);
pub(super) const VERSIONS: &str = "
    SELECT version, content_hash, created_at_ms FROM definition_versions
    WHERE namespace = $1 AND kind = $2 AND id = $3 AND version < $4 ORDER BY version DESC LIMIT $5";
/// The small rows first, with how much content lies before each; then the contents that fit.
pub(super) const LIST: &str = concat!(
    row!(),
    ", d.found FROM (
        SELECT p.*, sum(p.bytes) OVER (ORDER BY p.id) - p.bytes AS before, count(*) OVER () AS found FROM (
            SELECT * FROM definitions
            WHERE namespace = $1 AND kind = $2 AND id > $3
                AND ($4::text IS NULL OR name = $4)
                AND ($5::text IS NULL OR library_id = $5)
                AND ($6::text IS NULL OR project_ids @> to_jsonb($6::text))
            ORDER BY id LIMIT $7) AS p) AS d
    JOIN definition_versions AS v
        ON v.namespace = d.namespace AND v.kind = d.kind AND v.id = d.id AND v.version = d.version
    WHERE d.before = 0 OR d.before + d.bytes <= $8 ORDER BY d.id"
);

#[cfg(test)]
pub(in super::super) const SQL: &[(&str, &str)] = &[
    ("definitions::lock", LOCK),
    ("definitions::known", KNOWN),
    ("definitions::put_heads", PUT_HEADS),
    ("definitions::forget_versions", FORGET_VERSIONS),
    ("definitions::put_versions", PUT_VERSIONS),
    ("definitions::newest", NEWEST),
    ("definitions::at", AT),
    ("definitions::versions", VERSIONS),
    ("definitions::list", LIST),
];
