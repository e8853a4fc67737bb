-- +goose Up
-- Take all locks first, before any work is done under them.
LOCK TABLE messages, recipients;
-- What a person stopped from sending: an account (scope account), an inbox or a key.
CREATE TABLE stops (
    account_id BIGINT NOT NULL,
    scope      TEXT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (account_id, scope)
);

-- The key or person who sends a message.
ALTER TABLE messages ADD COLUMN sent_by TEXT;

-- In place of next_attempt_at, of a recipient whose sender is stopped.
ALTER TABLE recipients ADD COLUMN stopped_due BIGINT;
CREATE INDEX recipients_stopped ON recipients (account_id) WHERE stopped_due IS NOT NULL;
