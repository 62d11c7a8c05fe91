-- Up to where a log's records are light: the archive alone has the bodies of what models and tools made.
ALTER TABLE conversations ADD COLUMN light_upto INTEGER NOT NULL DEFAULT 0;

-- Unique, as the table's key is: so its order is known to be that of the logs.
CREATE UNIQUE INDEX conversations_heavy ON conversations (namespace, conversation_id)
    WHERE light_upto < archived_upto;
