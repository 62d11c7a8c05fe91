-- What is heavy of a memory moves to the archive: content that overflowed, and the vectors of agents with
-- many memories. `revision` counts what changes in a row; `kept_at_ms` says since when the archive has this
-- revision; a row that every reader finds there is light. The vector's model stays with the row.
CREATE TABLE memories_new (
    namespace       TEXT    NOT NULL,
    agent_id        TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    version         INTEGER NOT NULL CHECK (version > 0),
    label           TEXT,
    tier            TEXT    NOT NULL,
    type            TEXT    NOT NULL,
    significance    REAL    NOT NULL,
    metadata        TEXT    NOT NULL,
    -- All of it, or the beginning of what lies in blobs or in the archive.
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
    revision        INTEGER NOT NULL DEFAULT 1,
    kept_at_ms      INTEGER,
    is_light        INTEGER NOT NULL DEFAULT 0,
    CHECK ((embedding IS NULL) = (embedding_model IS NULL) OR is_light AND embedding IS NULL)
) STRICT;

INSERT INTO memories_new (namespace, agent_id, id, version, label, tier, type, significance, metadata, content,
    content_ref, content_hash, body_hash, embedding, embedding_model, created_at_ms, updated_at_ms, deleted_at_ms)
SELECT namespace, agent_id, id, version, label, tier, type, significance, metadata, content, content_ref,
    content_hash, body_hash, embedding, embedding_model, created_at_ms, updated_at_ms, deleted_at_ms FROM memories;

DROP TABLE memories;
ALTER TABLE memories_new RENAME TO memories;

CREATE UNIQUE INDEX memories_id ON memories (namespace, agent_id, id);
CREATE UNIQUE INDEX memories_label ON memories (namespace, agent_id, label) WHERE label IS NOT NULL;
CREATE INDEX memories_recent ON memories (namespace, agent_id, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;
CREATE INDEX memories_tier ON memories (namespace, agent_id, tier, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;
CREATE INDEX memories_type ON memories (namespace, agent_id, type, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;
CREATE INDEX memories_tail ON memories (namespace, agent_id, id) WHERE is_light = 0;
CREATE INDEX memories_waiting ON memories (namespace, agent_id, id) WHERE kept_at_ms IS NULL;
CREATE INDEX memories_kept ON memories (kept_at_ms) WHERE is_light = 0 AND kept_at_ms IS NOT NULL;
CREATE INDEX memories_far ON memories (namespace, agent_id) WHERE embedding IS NULL AND embedding_model IS NOT NULL;
