-- Memories that have no vector, or one of another model, are found without a look at all the others.
CREATE INDEX memories_model ON memories (coalesce(embedding_model, ''), namespace, agent_id, id)
    WHERE deleted_at_ms IS NULL;
