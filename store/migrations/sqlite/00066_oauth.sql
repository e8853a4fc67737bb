-- +goose Up
-- Applications that registered themselves to ask people for access (OAuth, RFC 7591).
-- approved_at is when a person last approved one.
CREATE TABLE oauth_clients (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    approved_at   BIGINT
);
CREATE INDEX oauth_clients_waiting ON oauth_clients (created_at) WHERE approved_at IS NULL;

-- Connections of applications. One begins as an authorization code with the rights
-- that a person chose. When the code is used, it gets an API key with these rights,
-- and tokens. All codes and tokens are kept as their SHA-256. A refresh token has two
-- parts: the first stays (family_hash), the second is new each time (refresh_hash).
CREATE TABLE oauth_grants (
    seq                INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id         BIGINT NOT NULL REFERENCES accounts (seq),
    client_id          TEXT NOT NULL REFERENCES oauth_clients (id),
    redirect_uri       TEXT NOT NULL,
    resource           TEXT NOT NULL,
    challenge          TEXT NOT NULL,
    rights             TEXT NOT NULL,
    code_hash          BLOB NOT NULL UNIQUE,
    code_expires_at    BIGINT NOT NULL,
    key_seq            BIGINT UNIQUE REFERENCES api_keys (seq),
    family_hash        BLOB UNIQUE,
    refresh_hash       BLOB,
    refresh_expires_at BIGINT,
    access_hash        BLOB UNIQUE,
    access_expires_at  BIGINT
);
CREATE INDEX oauth_grants_account ON oauth_grants (account_id, seq);
CREATE INDEX oauth_grants_client ON oauth_grants (client_id);
