-- +goose Up
-- What a user may do: everything, decide drafts, or only read.
ALTER TABLE users ADD COLUMN role TEXT NOT NULL DEFAULT 'admin' CHECK (role IN ('admin', 'approver', 'viewer'));
