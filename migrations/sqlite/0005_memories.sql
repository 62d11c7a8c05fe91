-- What agents remember. One row for each memory; a deleted one keeps its id and version alone, so that
-- a late repeat of its write does not bring it back.
CREATE TABLE memories (
    namespace       TEXT    NOT NULL,
    agent_id        TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    version         INTEGER NOT NULL CHECK (version > 0),
    label           TEXT,
    tier            TEXT    NOT NULL,
    type            TEXT    NOT NULL,
    significance    REAL    NOT NULL,
    metadata        TEXT    NOT NULL,
    -- All of it, or the beginning of what lies in blobs.
    content         TEXT    NOT NULL,
    content_ref     TEXT,
    content_hash    BLOB    NOT NULL CHECK (length(content_hash) = 32),
    body_hash       BLOB    NOT NULL CHECK (length(body_hash) = 32),
    -- Numbers of four bytes, little-endian.
    embedding       BLOB,
    embedding_model TEXT,
    created_at_ms   INTEGER NOT NULL,
    updated_at_ms   INTEGER NOT NULL,
    deleted_at_ms   INTEGER,
    CHECK ((embedding IS NULL) = (embedding_model IS NULL))
) STRICT;

CREATE UNIQUE INDEX memories_id ON memories (namespace, agent_id, id);
CREATE UNIQUE INDEX memories_label ON memories (namespace, agent_id, label) WHERE label IS NOT NULL;
CREATE INDEX memories_recent ON memories (namespace, agent_id, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;
CREATE INDEX memories_tier ON memories (namespace, agent_id, tier, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;
CREATE INDEX memories_type ON memories (namespace, agent_id, type, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;

-- Content that is too large for its row.
CREATE TABLE blobs (
    namespace     TEXT    NOT NULL,
    blob_id       TEXT    NOT NULL,
    content       TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (namespace, blob_id)
) STRICT;
