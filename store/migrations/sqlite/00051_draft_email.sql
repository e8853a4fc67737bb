-- +goose Up
-- The scheduled email that a draft replaces: its category, tags and metadata are
-- those of the message that is sent.
ALTER TABLE drafts ADD COLUMN email_seq BIGINT;
