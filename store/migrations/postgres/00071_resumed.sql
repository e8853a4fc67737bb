-- The mail of an account that sends again becomes due in many short transactions.

-- +goose Up
-- When sending was resumed, until all mail that waited for it is due.
ALTER TABLE accounts ADD COLUMN resumed_at BIGINT;
CREATE INDEX accounts_resumed ON accounts (seq) WHERE resumed_at IS NOT NULL;
