-- The mail of an account that sends again becomes due in many short transactions.

-- +goose Up
-- All locks at once, or the step fails soon and is retried.
SET LOCAL lock_timeout = '200ms';
LOCK TABLE accounts, recipients;
-- When sending was resumed, until all mail that waited for it is due.
ALTER TABLE accounts ADD COLUMN resumed_at BIGINT;
CREATE INDEX accounts_resumed ON accounts (seq) WHERE resumed_at IS NOT NULL;
DROP INDEX recipients_stopped;
CREATE INDEX recipients_stopped ON recipients (account_id, seq) WHERE stopped_due IS NOT NULL;
