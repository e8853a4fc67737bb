-- +goose Up
-- Whether a limit on reading the message was reached.
ALTER TABLE messages ADD COLUMN truncated BOOLEAN NOT NULL DEFAULT false;
