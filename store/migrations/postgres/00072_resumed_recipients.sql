-- A step locks one table at most: with two, it could deadlock with nodes that work.

-- +goose Up
DROP INDEX recipients_stopped;
CREATE INDEX recipients_stopped ON recipients (account_id, seq) WHERE stopped_due IS NOT NULL;
