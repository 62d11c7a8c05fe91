-- What is heavy of a memory moves to the archive: content that overflowed, and the vectors of agents with
-- many memories. `revision` counts what changes in a row; `kept_at_ms` says since when the archive has this
-- revision; a row that every reader finds there is light. The vector's model stays with the row.
ALTER TABLE memories
    ADD COLUMN revision BIGINT NOT NULL DEFAULT 1,
    ADD COLUMN kept_at_ms BIGINT,
    ADD COLUMN is_light BOOLEAN NOT NULL DEFAULT FALSE,
    DROP CONSTRAINT memories_check,
    ADD CONSTRAINT memories_check
        CHECK ((embedding IS NULL) = (embedding_model IS NULL) OR is_light AND embedding IS NULL);

CREATE INDEX memories_tail ON memories (namespace, agent_id, id) WHERE NOT is_light;
CREATE INDEX memories_waiting ON memories (namespace, agent_id, id) WHERE kept_at_ms IS NULL;
CREATE INDEX memories_kept ON memories (kept_at_ms) WHERE NOT is_light AND kept_at_ms IS NOT NULL;
CREATE INDEX memories_far ON memories (namespace, agent_id) WHERE embedding IS NULL AND embedding_model IS NOT NULL;
