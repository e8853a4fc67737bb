-- +goose Up

-- One row, sealed, that only the secret which the installation began with opens.
CREATE TABLE install_secret (
    id    BIGINT PRIMARY KEY CHECK (id = 1),
    proof BLOB NOT NULL
);

CREATE TABLE accounts (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    plan         TEXT,
    inboxes      BIGINT NOT NULL DEFAULT 0 CHECK (inboxes >= 0),
    paused_at    BIGINT,
    pause_reason TEXT,
    created_at   BIGINT NOT NULL
);

CREATE TABLE api_keys (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id   BIGINT NOT NULL REFERENCES accounts (seq),
    id           TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    hash         BLOB NOT NULL UNIQUE,
    prefix       TEXT NOT NULL,
    hint         TEXT NOT NULL,
    mode         TEXT NOT NULL CHECK (mode IN ('live', 'test', 'restricted')),
    scopes       TEXT NOT NULL,
    allowed_ips  TEXT NOT NULL,
    inbox_ids    TEXT,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT,
    created_at   BIGINT NOT NULL
);
CREATE INDEX api_keys_account ON api_keys (account_id, seq);

-- People who use the dashboard. One who was removed keeps the row, for drafts name
-- who decided them.
CREATE TABLE users (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    -- Argon2id; null until the first one-time link was used, and after a reset.
    password   TEXT,
    removed_at BIGINT,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_name ON users (name) WHERE removed_at IS NULL;
CREATE INDEX users_account ON users (account_id, seq);

-- One-time links to set a password, at most one each, by the hash of their token.
CREATE TABLE user_links (
    user_seq   BIGINT PRIMARY KEY REFERENCES users (seq),
    hash       BLOB NOT NULL UNIQUE,
    expires_at BIGINT NOT NULL
);

-- Sign-ins, by the hash of their token.
CREATE TABLE user_sessions (
    hash         BLOB PRIMARY KEY,
    user_seq     BIGINT NOT NULL REFERENCES users (seq),
    expires_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    created_at   BIGINT NOT NULL
);
CREATE INDEX user_sessions_user ON user_sessions (user_seq);
CREATE INDEX user_sessions_age ON user_sessions (expires_at);

CREATE TABLE domains (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id    BIGINT NOT NULL REFERENCES accounts (seq),
    id            TEXT NOT NULL UNIQUE,
    domain        TEXT NOT NULL,
    token         TEXT NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('pending', 'verified', 'failed')),
    -- What the last look-up found, by record.
    records       TEXT NOT NULL,
    -- Since when it waits for its records, and since when a required one is gone.
    pending_since BIGINT NOT NULL,
    degraded_at   BIGINT,
    next_check_at BIGINT,
    verified_at   BIGINT,
    created_at    BIGINT NOT NULL,
    UNIQUE (account_id, domain)
);
CREATE INDEX domains_name ON domains (domain);
CREATE INDEX domains_account ON domains (account_id, seq);
CREATE INDEX domains_due ON domains (next_check_at) WHERE next_check_at IS NOT NULL;
-- Several accounts may ask for a domain, one has it.
CREATE UNIQUE INDEX domains_verified ON domains (domain) WHERE status = 'verified';

-- Signing keys. Those without domain_seq are of the installation's own mail domain. A
-- key of an account's domain signs from when it was found published until a
-- newer one was; it is then shown for some days more.
CREATE TABLE dkim_keys (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    domain_seq BIGINT REFERENCES domains (seq) ON DELETE CASCADE,
    domain     TEXT NOT NULL,
    selector   TEXT NOT NULL,
    algorithm  TEXT NOT NULL CHECK (algorithm IN ('rsa', 'ed25519')),
    public     TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    found_at   BIGINT,
    retired_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (domain, selector)
);
CREATE INDEX dkim_keys_domain ON dkim_keys (domain_seq) WHERE domain_seq IS NOT NULL;

CREATE TABLE inboxes (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id     BIGINT NOT NULL REFERENCES accounts (seq),
    id             TEXT NOT NULL UNIQUE,
    address        TEXT NOT NULL UNIQUE,
    name           TEXT NOT NULL,
    domain         TEXT NOT NULL,
    display_name   TEXT,
    send_policy    TEXT NOT NULL CHECK (send_policy IN ('open', 'reply_only', 'approval')),
    status         TEXT NOT NULL CHECK (status IN ('active', 'suspended', 'deleted')),
    retention_days BIGINT NOT NULL CHECK (retention_days BETWEEN 1 AND 30),
    metadata       TEXT NOT NULL,
    expires_at     BIGINT,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    -- Of retention: no message before this time has content, and when the last
    -- remains of a deleted inbox went.
    expired_to     BIGINT NOT NULL DEFAULT 0,
    purged_at      BIGINT
);
CREATE INDEX inboxes_account ON inboxes (account_id, seq);
CREATE INDEX inboxes_kept ON inboxes (seq) WHERE purged_at IS NULL;

CREATE TABLE threads (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id      BIGINT NOT NULL,
    inbox_seq       BIGINT NOT NULL REFERENCES inboxes (seq),
    id              TEXT NOT NULL UNIQUE,
    subject         TEXT NOT NULL,
    subject_hash    BIGINT NOT NULL,
    participants    TEXT NOT NULL,
    message_count   BIGINT NOT NULL,
    last_message_at BIGINT NOT NULL,
    created_at      BIGINT NOT NULL
);
CREATE INDEX threads_subject ON threads (inbox_seq, subject_hash, last_message_at);
CREATE INDEX threads_latest ON threads (inbox_seq, last_message_at);

-- Message-IDs that mail of a thread refers to, of mail that has not come: when
-- it does, it belongs to that thread.
CREATE TABLE thread_references (
    inbox_seq   BIGINT NOT NULL,
    header_hash BIGINT NOT NULL,
    header_id   TEXT NOT NULL,
    thread_seq  BIGINT NOT NULL REFERENCES threads (seq) ON DELETE CASCADE,
    PRIMARY KEY (inbox_seq, header_hash)
);
CREATE INDEX thread_references_thread ON thread_references (thread_seq);

CREATE TABLE messages (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id     BIGINT NOT NULL,
    -- Both are null of an email: it belongs to no inbox, and has a row in emails.
    inbox_seq      BIGINT REFERENCES inboxes (seq),
    thread_seq     BIGINT REFERENCES threads (seq),
    id             TEXT NOT NULL UNIQUE,
    direction      TEXT NOT NULL CHECK (direction IN ('in', 'out')),
    status         TEXT NOT NULL CHECK (status IN ('received', 'queued', 'sent', 'delivered', 'bounced', 'complained', 'failed')
        OR inbox_seq IS NULL AND status IN ('scheduled', 'cancelled', 'opened', 'clicked')),
    test_mode      BOOLEAN NOT NULL,
    from_email     TEXT NOT NULL,
    addresses      TEXT NOT NULL,
    subject        TEXT NOT NULL,
    subject_fold   TEXT NOT NULL,
    header_id      TEXT NOT NULL,
    header_hash    BIGINT NOT NULL,
    refs           TEXT NOT NULL,
    automated      BOOLEAN NOT NULL,
    has_code       BOOLEAN NOT NULL,
    has_link       BOOLEAN NOT NULL,
    tag            TEXT,
    size           BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    sent_at        BIGINT,
    delivered_at   BIGINT,
    expired_at     BIGINT,
    CHECK ((inbox_seq IS NULL) = (thread_seq IS NULL))
);
CREATE INDEX messages_account ON messages (account_id, created_at) WHERE inbox_seq IS NOT NULL;
CREATE INDEX messages_inbox ON messages (inbox_seq, created_at, from_email, direction, test_mode) WHERE inbox_seq IS NOT NULL;
CREATE INDEX messages_thread ON messages (thread_seq, created_at) WHERE thread_seq IS NOT NULL;
CREATE INDEX messages_email ON messages (created_at) WHERE inbox_seq IS NULL AND expired_at IS NULL;
CREATE INDEX messages_header ON messages (inbox_seq, header_hash);
CREATE INDEX messages_expired ON messages (expired_at) WHERE expired_at IS NOT NULL;

-- What an email has beside the message that it is: from_inbox is the inbox whose
-- address it is sent from, if there is one, and due_at is when it is to be queued,
-- as long as it is scheduled.
CREATE TABLE emails (
    message_seq  INTEGER PRIMARY KEY REFERENCES messages (seq),
    account_id   BIGINT NOT NULL,
    from_inbox   BIGINT,
    batch_id     TEXT,
    category     TEXT NOT NULL CHECK (category IN ('transactional', 'marketing')),
    tags         TEXT NOT NULL,
    metadata     TEXT NOT NULL,
    scheduled_at BIGINT,
    due_at       BIGINT,
    -- In place of due_at, of one that is held (store/hold.go).
    held_due     BIGINT,
    opened_at    BIGINT
);
CREATE INDEX emails_account ON emails (account_id, message_seq);
CREATE INDEX emails_batch ON emails (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX emails_due ON emails (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX emails_held ON emails (held_due) WHERE held_due IS NOT NULL;

CREATE TABLE email_tags (
    account_id  BIGINT NOT NULL,
    name        TEXT NOT NULL,
    value       TEXT NOT NULL,
    message_seq BIGINT NOT NULL,
    PRIMARY KEY (account_id, name, value, message_seq)
) WITHOUT ROWID;

CREATE TABLE contents (
    message_seq INTEGER PRIMARY KEY REFERENCES messages (seq),
    raw         BLOB,
    blob_key    TEXT,
    signature   TEXT,
    body        TEXT,
    snippet     TEXT NOT NULL,
    extracted   TEXT,
    auth        TEXT,
    attachments TEXT NOT NULL
);
CREATE INDEX contents_blob ON contents (blob_key) WHERE blob_key IS NOT NULL;

CREATE TABLE recipients (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id      BIGINT NOT NULL,
    message_seq     BIGINT NOT NULL REFERENCES messages (seq),
    email           TEXT NOT NULL,
    domain          TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('to', 'cc', 'bcc')),
    status          TEXT NOT NULL CHECK (status IN ('queued', 'sent', 'delivered', 'opened', 'clicked', 'bounced', 'complained', 'failed',
        'suppressed')),
    attempts        BIGINT NOT NULL,
    fence           BIGINT NOT NULL,
    next_attempt_at BIGINT,
    leased          BOOLEAN NOT NULL DEFAULT false,
    last_response   TEXT,
    created_at      BIGINT NOT NULL,
    sent_at         BIGINT,
    delivered_at    BIGINT,
    bounced_at      BIGINT,
    -- How many opens and clicks were recorded.
    engagements     BIGINT NOT NULL DEFAULT 0,
    -- In place of next_attempt_at, of one that is held (store/hold.go).
    held_due        BIGINT
);
CREATE INDEX recipients_message ON recipients (message_seq);
CREATE INDEX recipients_due ON recipients (next_attempt_at, domain) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX recipients_held ON recipients (held_due) WHERE held_due IS NOT NULL;

CREATE TABLE drafts (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id    BIGINT NOT NULL,
    inbox_seq     BIGINT NOT NULL REFERENCES inboxes (seq),
    id            TEXT NOT NULL UNIQUE,
    status        TEXT NOT NULL CHECK (status IN ('pending', 'sent', 'rejected')),
    kind          TEXT NOT NULL CHECK (kind IN ('new', 'reply', 'forward')),
    version       BIGINT NOT NULL,
    test_mode     BOOLEAN NOT NULL,
    source_id     TEXT,
    thread_seq    BIGINT,
    thread_id     TEXT,
    message_id    TEXT,
    addresses     TEXT NOT NULL,
    subject       TEXT NOT NULL,
    refs          TEXT NOT NULL,
    created_by    TEXT NOT NULL,
    decided_by    TEXT,
    decided_at    BIGINT,
    reject_reason TEXT,
    content_at    BIGINT NOT NULL,
    expired_at    BIGINT,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL
);
CREATE INDEX drafts_account ON drafts (account_id, seq);
CREATE INDEX drafts_inbox ON drafts (inbox_seq, seq);
CREATE INDEX drafts_pending ON drafts (account_id, seq) WHERE status = 'pending';
CREATE INDEX drafts_source ON drafts (source_id) WHERE source_id IS NOT NULL;
CREATE INDEX drafts_message ON drafts (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX drafts_kept ON drafts (inbox_seq, content_at) WHERE expired_at IS NULL;
CREATE INDEX drafts_expired ON drafts (expired_at) WHERE expired_at IS NOT NULL;

CREATE TABLE draft_contents (
    draft_seq   INTEGER PRIMARY KEY REFERENCES drafts (seq),
    text        TEXT NOT NULL,
    html        TEXT NOT NULL,
    headers     TEXT NOT NULL,
    attachments TEXT NOT NULL,
    files       BLOB,
    blob_key    TEXT
);
CREATE INDEX draft_contents_blob ON draft_contents (blob_key) WHERE blob_key IS NOT NULL;

CREATE TABLE templates (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    html       TEXT NOT NULL,
    text       TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX templates_account ON templates (account_id, seq);

CREATE TABLE contacts (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    id         TEXT NOT NULL UNIQUE,
    email      TEXT NOT NULL,
    email_fold TEXT NOT NULL,
    first_name TEXT,
    last_name  TEXT,
    metadata   TEXT NOT NULL,
    tags       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (account_id, email_fold)
);
CREATE INDEX contacts_account ON contacts (account_id, seq);

CREATE TABLE suppressions (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    id         TEXT NOT NULL UNIQUE,
    email      TEXT NOT NULL,
    email_fold TEXT NOT NULL,
    reason     TEXT NOT NULL CHECK (reason IN ('hard_bounce', 'complaint', 'unsubscribe', 'manual')),
    category   TEXT NOT NULL CHECK (category IN ('all', 'marketing')),
    -- What put it there: an email, a message or a key.
    source     TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (account_id, email_fold)
);
CREATE INDEX suppressions_account ON suppressions (account_id, seq);

CREATE TABLE events (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id  BIGINT NOT NULL,
    inbox_seq   BIGINT,
    id          TEXT NOT NULL UNIQUE,
    type        TEXT NOT NULL,
    message_seq BIGINT,
    test_mode   BOOLEAN NOT NULL,
    data        TEXT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX events_account ON events (account_id); -- and seq, the row's own number
-- Those that name a recipient, to be emptied with their message (store/remove.go).
CREATE INDEX events_recipient ON events (message_seq) WHERE type NOT IN ('message.received', 'message.queued');

-- Signing secrets are sealed. events and inboxes are null for all of them.
CREATE TABLE webhook_endpoints (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id      BIGINT NOT NULL REFERENCES accounts (seq),
    id              TEXT NOT NULL UNIQUE,
    url             TEXT NOT NULL,
    events          TEXT,
    inboxes         TEXT,
    active          BOOLEAN NOT NULL,
    disabled_reason TEXT CHECK (disabled_reason IS NULL OR NOT active),
    secret          BLOB NOT NULL,
    old_secret      BLOB,
    old_until       BIGINT,
    failing_since   BIGINT,
    created_at      BIGINT NOT NULL
);
CREATE INDEX webhook_endpoints_account ON webhook_endpoints (account_id, seq);

-- One event for one endpoint. What is pending is due at next_attempt_at, which
-- while an attempt runs is the end of its lease.
CREATE TABLE webhook_deliveries (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id       BIGINT NOT NULL,
    endpoint_seq     BIGINT NOT NULL,
    id               TEXT NOT NULL UNIQUE,
    event_id         TEXT NOT NULL,
    event_type       TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
    attempts         BIGINT NOT NULL,
    fence            BIGINT NOT NULL DEFAULT 0,
    leased           BOOLEAN NOT NULL DEFAULT false,
    last_status_code BIGINT,
    last_error       TEXT,
    last_body        TEXT,
    last_duration_ms BIGINT,
    next_attempt_at  BIGINT,
    -- In place of next_attempt_at, of one that is held (store/hold.go).
    held_due         BIGINT,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL OR held_due IS NOT NULL))
);
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_seq, seq);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_seq, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (held_due) WHERE held_due IS NOT NULL;

-- The full-text index. What it does not hold yet is in search_tail. Words are
-- indexed with the number of a bucket before them: some thousand messages of one
-- account that were indexed one after the other (store/search_index.go).
CREATE TABLE search_tail (
    message_seq INTEGER PRIMARY KEY,
    account_id  BIGINT NOT NULL
);
CREATE INDEX search_tail_account ON search_tail (account_id, message_seq);

CREATE TABLE search_buckets (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id BIGINT NOT NULL,
    oldest     BIGINT NOT NULL,
    newest     BIGINT NOT NULL,
    messages   BIGINT NOT NULL
);
CREATE INDEX search_buckets_account ON search_buckets (account_id, newest);

-- Who fills the index, and until when without renewing.
CREATE TABLE search_lease (
    holder TEXT NOT NULL,
    until  BIGINT NOT NULL
);
INSERT INTO search_lease (holder, until) VALUES ('', 0);

CREATE VIRTUAL TABLE search_index USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '.-'"
);

CREATE TABLE idempotency (
    account_id  BIGINT NOT NULL,
    operation   TEXT NOT NULL,
    key         TEXT NOT NULL,
    body_hash   BLOB NOT NULL,
    status      BIGINT NOT NULL,
    kind        TEXT NOT NULL,
    body        TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (account_id, operation, key)
);
CREATE INDEX idempotency_resource ON idempotency (resource_id);
CREATE INDEX idempotency_age ON idempotency (created_at);

-- What happened on a UTC day, by its number since 1970. The rows of inbox_seq 0
-- are of the whole account. Writers that work side by side have a shard each.
CREATE TABLE daily_counts (
    account_id BIGINT NOT NULL,
    inbox_seq  BIGINT NOT NULL,
    day        BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    shard      BIGINT NOT NULL,
    n          BIGINT NOT NULL,
    PRIMARY KEY (account_id, inbox_seq, day, kind, shard)
) WITHOUT ROWID;
CREATE INDEX daily_counts_age ON daily_counts (day);

-- One value for the whole installation each.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Certificates that were got by ACME, with their keys, the key of the ACME account,
-- and the responses to challenges that are under way. All of it is sealed.
CREATE TABLE certificates (
    name       TEXT PRIMARY KEY,
    sealed     BLOB NOT NULL,
    updated_at BIGINT NOT NULL
);

-- What other domains ask of those who send to them (MTA-STS).
CREATE TABLE mail_policies (
    domain     TEXT PRIMARY KEY,
    policy_id  TEXT NOT NULL,
    mode       TEXT NOT NULL CHECK (mode IN ('enforce', 'testing', 'none')),
    mx         TEXT NOT NULL,
    fetched_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX mail_policies_age ON mail_policies (expires_at);
