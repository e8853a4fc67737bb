-- +goose Up
-- Take all locks first, before any work is done under them.
LOCK TABLE api_keys, inboxes, drafts;
-- What a key or an inbox may send: an object of limits, or null for no limits.
ALTER TABLE api_keys ADD COLUMN limits TEXT;
ALTER TABLE inboxes ADD COLUMN limits TEXT;

-- One row for each key, inbox or account with limits. Its lock makes the counts
-- exact. total is the number of recipients that were ever counted.
CREATE TABLE budgets (
    scope TEXT PRIMARY KEY,
    total BIGINT NOT NULL,
    at    BIGINT NOT NULL
);

-- The sends of the last day. total is the total after the send, so the number of
-- recipients in a time is the difference of two rows.
CREATE TABLE budget_sends (
    scope TEXT NOT NULL,
    total BIGINT NOT NULL,
    n     BIGINT NOT NULL,
    at    BIGINT NOT NULL,
    PRIMARY KEY (scope, total)
);
CREATE INDEX budget_sends_at ON budget_sends (scope, at);

-- Everyone who was written to, by the hash of the address, since the limits on
-- recipients are there.
CREATE TABLE budget_recipients (
    scope    TEXT NOT NULL,
    hash     BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at  BIGINT NOT NULL,
    PRIMARY KEY (scope, hash)
);
CREATE INDEX budget_recipients_first ON budget_recipients (scope, first_at);
CREATE INDEX budget_recipients_last ON budget_recipients (scope, last_at);

-- The recipients of the last day, each with the hash of the normalized text.
CREATE TABLE budget_texts (
    scope TEXT NOT NULL,
    hash  BIGINT NOT NULL,
    text  BIGINT NOT NULL,
    at    BIGINT NOT NULL
);
CREATE INDEX budget_texts_hash ON budget_texts (scope, hash, at);
CREATE INDEX budget_texts_text ON budget_texts (scope, text, at);

-- The labels of an email that a draft holds.
ALTER TABLE drafts ADD COLUMN category TEXT;
ALTER TABLE drafts ADD COLUMN tags TEXT;
ALTER TABLE drafts ADD COLUMN metadata TEXT;
