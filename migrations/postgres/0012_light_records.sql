-- Up to where a log's records are light: the archive alone has the bodies of what models and tools made.
ALTER TABLE conversations ADD COLUMN light_upto BIGINT NOT NULL DEFAULT 0;

CREATE INDEX conversations_heavy ON conversations (namespace, conversation_id) WHERE light_upto < archived_upto;

-- Records are rewritten without their bodies once: what those took is wanted again soon.
ALTER TABLE conversation_log SET (autovacuum_vacuum_scale_factor = 0.05);
