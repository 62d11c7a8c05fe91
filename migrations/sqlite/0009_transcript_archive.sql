-- The first record of a log that is not recorded as archived; null if all are. While some wait, commits find
-- it set and leave it alone.
ALTER TABLE conversations ADD COLUMN unarchived_from INTEGER;
-- Up to where the archive has it. A release that knows of neither column adds records that none waits for: the
-- next one that does starts from here.
ALTER TABLE conversations ADD COLUMN archived_upto INTEGER NOT NULL DEFAULT 0;

UPDATE conversations SET unarchived_from = 1 WHERE last_offset > 0;

-- Unique, as the table's key is: so its order is known to be that of the logs.
CREATE UNIQUE INDEX conversations_unarchived ON conversations (namespace, conversation_id)
    WHERE unarchived_from IS NOT NULL;
