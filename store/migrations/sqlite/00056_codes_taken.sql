-- +goose Up

-- Codes that a helper returned to a key or a person, so that it returns each only
-- once. Rows older than a day are deleted.
CREATE TABLE codes_taken (
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    caller     TEXT NOT NULL,
    message_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, caller, message_id)
);
CREATE INDEX codes_taken_age ON codes_taken (created_at);
