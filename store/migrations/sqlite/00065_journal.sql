-- +goose Up
-- Requests to the API, without query and body. caller is a key or a user.
CREATE TABLE api_requests (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id BIGINT NOT NULL,
    id         TEXT NOT NULL,
    caller     TEXT NOT NULL,
    method     TEXT NOT NULL,
    path       TEXT NOT NULL,
    status     BIGINT NOT NULL,
    took_ms    BIGINT NOT NULL,
    ip         TEXT NOT NULL,
    one_of     BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX api_requests_account ON api_requests (account_id, seq);
CREATE INDEX api_requests_caller ON api_requests (account_id, caller, seq);
CREATE INDEX api_requests_failed ON api_requests (account_id, seq) WHERE status >= 400;

-- SMTP sessions in which the server refused something.
CREATE TABLE smtp_refusals (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    ip         TEXT NOT NULL,
    helo       TEXT NOT NULL,
    mail_from  TEXT NOT NULL,
    rcpt_to    TEXT NOT NULL,
    reply      TEXT NOT NULL,
    refused    BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
