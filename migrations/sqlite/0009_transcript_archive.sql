-- The first record of a log that is not recorded as archived; null if all are. While some wait, commits find
-- it set and leave it alone.
ALTER TABLE conversations ADD COLUMN unarchived_from INTEGER;

UPDATE conversations SET unarchived_from = 1 WHERE last_offset > 0;

-- Unique, as the table's key is: so its order is known to be that of the logs.
CREATE UNIQUE INDEX conversations_unarchived ON conversations (namespace, conversation_id)
    WHERE unarchived_from IS NOT NULL;
