-- What agents remember. One row for each memory; a deleted one keeps its id and version alone, so that
-- a late repeat of its write does not bring it back.
CREATE TABLE memories (
    namespace       TEXT COLLATE "C" NOT NULL,
    agent_id        TEXT COLLATE "C" NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    version         BIGINT NOT NULL CHECK (version > 0),
    label           TEXT COLLATE "C",
    tier            TEXT COLLATE "C" NOT NULL,
    type            TEXT COLLATE "C" NOT NULL,
    significance    DOUBLE PRECISION NOT NULL,
    metadata        TEXT   NOT NULL,
    -- All of it, or the beginning of what lies in blobs.
    content         TEXT   NOT NULL,
    content_ref     TEXT COLLATE "C",
    content_hash    BYTEA  NOT NULL CHECK (length(content_hash) = 32),
    body_hash       BYTEA  NOT NULL CHECK (length(body_hash) = 32),
    -- Numbers of four bytes, little-endian.
    embedding       BYTEA,
    embedding_model TEXT COLLATE "C",
    created_at_ms   BIGINT NOT NULL,
    updated_at_ms   BIGINT NOT NULL,
    deleted_at_ms   BIGINT,
    PRIMARY KEY (namespace, agent_id, id),
    CHECK ((embedding IS NULL) = (embedding_model IS NULL))
);

CREATE UNIQUE INDEX memories_label ON memories (namespace, agent_id, label) WHERE label IS NOT NULL;
CREATE INDEX memories_recent ON memories (namespace, agent_id, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;
CREATE INDEX memories_tier ON memories (namespace, agent_id, tier, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;
CREATE INDEX memories_type ON memories (namespace, agent_id, type, updated_at_ms DESC, id DESC)
    WHERE deleted_at_ms IS NULL;

-- Content that is too large for its row.
CREATE TABLE blobs (
    namespace     TEXT COLLATE "C" NOT NULL,
    blob_id       TEXT COLLATE "C" NOT NULL,
    content       TEXT   NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (namespace, blob_id)
);
