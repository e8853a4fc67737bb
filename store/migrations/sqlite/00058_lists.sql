-- +goose Up
-- Who may be written to, and who may write. inbox_seq 0 stands for all inboxes of
-- the account.
CREATE TABLE lists (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    inbox_seq  BIGINT NOT NULL,
    id         TEXT NOT NULL UNIQUE,
    direction  TEXT NOT NULL CHECK (direction IN ('inbound', 'outbound')),
    action     TEXT NOT NULL CHECK (action IN ('allow', 'block', 'approve')),
    pattern    TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (account_id, inbox_seq, direction, pattern, action)
);
CREATE INDEX lists_account ON lists (account_id, seq);

-- A received message that waits for release. Its from_email begins with a space, so
-- that no query for the address finds it.
ALTER TABLE messages ADD COLUMN quarantined BOOLEAN NOT NULL DEFAULT FALSE;
