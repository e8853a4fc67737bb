-- +goose Up
-- The address and the browser that a session began with, for its user to recognise it.
ALTER TABLE user_sessions ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE user_sessions ADD COLUMN browser TEXT NOT NULL DEFAULT '';
