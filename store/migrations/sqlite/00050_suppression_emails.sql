-- +goose Up
-- An address whose domain has no mail server is suppressed for emails only.
-- SQLite cannot change a CHECK, so the table is copied.
CREATE TABLE suppressions_new (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    id         TEXT NOT NULL UNIQUE,
    email      TEXT NOT NULL,
    email_fold TEXT NOT NULL,
    reason     TEXT NOT NULL CHECK (reason IN ('hard_bounce', 'complaint', 'unsubscribe', 'manual')),
    category   TEXT NOT NULL CHECK (category IN ('all', 'emails', 'marketing')),
    -- What put it there: an email, a message or a key.
    source     TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (account_id, email_fold)
);
INSERT INTO suppressions_new SELECT seq, account_id, id, email, email_fold, reason, category, source, created_at FROM suppressions;
DROP TABLE suppressions;
ALTER TABLE suppressions_new RENAME TO suppressions;
CREATE INDEX suppressions_account ON suppressions (account_id, seq);
