-- Starts whose holder died or was stopped: they are no attempts, so a deploy costs no retry.
ALTER TABLE operations ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
