-- +goose Up
-- The schema, by subject. Times are microseconds since 1970, sizes bytes. seq is the
-- number of a row inside the database, id its name in the API. A table of an account
-- names it in account_id. JSON is TEXT. What differs between the engines stands in braces
-- (migrations.go).

-- ## The installation

-- One row, sealed: only the installation secret opens it.
CREATE TABLE install_secret (
    id    BIGINT PRIMARY KEY CHECK (id = 1),
    proof {{.Bytes}} NOT NULL
);

-- One value for the whole installation each.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row: when deletions last went on, and until when they wait because the
-- clock may be wrong (store/clock.go).
CREATE TABLE maintenance (
    one           INTEGER PRIMARY KEY CHECK (one = 1),
    last_round_at BIGINT,
    held_until    BIGINT
);

-- Certificates from ACME with their keys, the key of the ACME account, and the responses
-- to open challenges. Sealed.
CREATE TABLE certificates (
    name       TEXT PRIMARY KEY,
    sealed     {{.Bytes}} NOT NULL,
    updated_at BIGINT NOT NULL
);

-- The MTA-STS policies of other domains (RFC 8461).
CREATE TABLE mail_policies (
    domain     TEXT PRIMARY KEY,
    policy_id  TEXT NOT NULL,
    mode       TEXT NOT NULL CHECK (mode IN ('enforce', 'testing', 'none')),
    mx         TEXT NOT NULL,
    fetched_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
-- delete what expired
CREATE INDEX mail_policies_age ON mail_policies (expires_at);

-- ## Accounts, keys and people

-- A customer of the installation: it owns all else. notices counts the notices about
-- drafts since notices_from. resumed_at is when sending was resumed, until all mail that
-- waited for it is due.
CREATE TABLE accounts (
    seq          {{.Identity}},
    id           TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    plan         TEXT,
    inboxes      BIGINT NOT NULL DEFAULT 0 CHECK (inboxes >= 0),
    paused_at    BIGINT,
    pause_reason TEXT,
    created_at   BIGINT NOT NULL,
    notices      BIGINT NOT NULL DEFAULT 0,
    notices_from BIGINT,
    resumed_at   BIGINT
);
-- find accounts whose mail becomes due again
CREATE INDEX accounts_resumed ON accounts (seq) WHERE resumed_at IS NOT NULL;

-- An API key, by the SHA-256 of its secret. limits is an object of sending limits.
-- created_by is the id of the key that created it, null for a person, the command line,
-- OAuth and a key with the scope admin; revoking or stopping that key does the same to this one.
CREATE TABLE api_keys (
    seq          {{.Identity}},
    account_id   BIGINT NOT NULL REFERENCES accounts (seq),
    id           TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    hash         {{.Bytes}} NOT NULL UNIQUE,
    prefix       TEXT NOT NULL,
    hint         TEXT NOT NULL,
    mode         TEXT NOT NULL CHECK (mode IN ('live', 'test', 'restricted')),
    scopes       TEXT NOT NULL,
    allowed_ips  TEXT NOT NULL,
    inbox_ids    TEXT,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT,
    created_at   BIGINT NOT NULL,
    limits       TEXT,
    created_by   TEXT
);
-- list the keys of an account
CREATE INDEX api_keys_account ON api_keys (account_id, seq);
-- revoke or stop the keys that a key created
CREATE INDEX api_keys_created_by ON api_keys (created_by) WHERE created_by IS NOT NULL;

-- A person who uses the dashboard. A removed one keeps the row, because drafts name who
-- decided them. Messages received before read_to count as read.
CREATE TABLE users (
    seq        {{.Identity}},
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    -- Argon2id; null until the first one-time link was used, and after a reset.
    password   TEXT,
    role       TEXT NOT NULL DEFAULT 'admin' CHECK (role IN ('admin', 'approver', 'viewer')),
    read_to    BIGINT NOT NULL DEFAULT 0,
    removed_at BIGINT,
    created_at BIGINT NOT NULL
);
-- sign in by name
CREATE UNIQUE INDEX users_name ON users (name) WHERE removed_at IS NULL;
-- list the people of an account
CREATE INDEX users_account ON users (account_id, seq);

-- A one-time link to set a password, at most one for each user, by the hash of its token.
CREATE TABLE user_links (
    user_seq   BIGINT PRIMARY KEY REFERENCES users (seq),
    hash       {{.Bytes}} NOT NULL UNIQUE,
    expires_at BIGINT NOT NULL
);

-- A sign-in, by the hash of its token, with the address and the browser it began with.
CREATE TABLE user_sessions (
    hash         {{.Bytes}} PRIMARY KEY,
    user_seq     BIGINT NOT NULL REFERENCES users (seq),
    address      TEXT NOT NULL DEFAULT '',
    browser      TEXT NOT NULL DEFAULT '',
    expires_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    created_at   BIGINT NOT NULL
);
-- list and end the sessions of a user
CREATE INDEX user_sessions_user ON user_sessions (user_seq);
-- delete what expired
CREATE INDEX user_sessions_age ON user_sessions (expires_at);

-- A secret that the dashboard shows once, on the page after the form that made it. Sealed.
CREATE TABLE session_notes (
    session_hash {{.Bytes}} NOT NULL REFERENCES user_sessions (hash) ON DELETE CASCADE,
    subject      TEXT NOT NULL,
    sealed       {{.Bytes}} NOT NULL,
    expires_at   BIGINT NOT NULL,
    PRIMARY KEY (session_hash, subject)
);
-- delete what expired
CREATE INDEX session_notes_age ON session_notes (expires_at);

-- An application that registered itself to ask people for access (OAuth, RFC 7591).
-- approved_at is when a person last approved it.
CREATE TABLE oauth_clients (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    approved_at   BIGINT
);
-- delete those without an approval
CREATE INDEX oauth_clients_waiting ON oauth_clients (created_at) WHERE approved_at IS NULL;

-- A connection of an application. It begins as an authorization code with the rights
-- that a person chose. When the code is used, it gets an API key with these rights,
-- and tokens. All codes and tokens are kept as their SHA-256. A refresh token has two
-- parts: the first stays (family_hash), the second is new each time (refresh_hash).
CREATE TABLE oauth_grants (
    seq                {{.Identity}},
    account_id         BIGINT NOT NULL REFERENCES accounts (seq),
    client_id          TEXT NOT NULL REFERENCES oauth_clients (id),
    redirect_uri       TEXT NOT NULL,
    resource           TEXT NOT NULL,
    challenge          TEXT NOT NULL,
    rights             TEXT NOT NULL,
    code_hash          {{.Bytes}} NOT NULL UNIQUE,
    code_expires_at    BIGINT NOT NULL,
    key_seq            BIGINT UNIQUE REFERENCES api_keys (seq),
    family_hash        {{.Bytes}} UNIQUE,
    refresh_hash       {{.Bytes}},
    refresh_expires_at BIGINT,
    access_hash        {{.Bytes}} UNIQUE,
    access_expires_at  BIGINT
);
-- list the connections of an account
CREATE INDEX oauth_grants_account ON oauth_grants (account_id, seq);
-- delete an application without connections
CREATE INDEX oauth_grants_client ON oauth_grants (client_id);

-- ## Domains

-- A domain that an account asked for. Several accounts may ask for one, one has it.
CREATE TABLE domains (
    seq           {{.Identity}},
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
-- find the accounts of a domain
CREATE INDEX domains_name ON domains (domain);
-- list the domains of an account
CREATE INDEX domains_account ON domains (account_id, seq);
-- claim the domains whose records are to be checked
CREATE INDEX domains_due ON domains (next_check_at) WHERE next_check_at IS NOT NULL;
-- one account has a domain; find it
CREATE UNIQUE INDEX domains_verified ON domains (domain) WHERE status = 'verified';

-- A signing key. One without domain_seq is of the installation's own mail domain. A
-- key of an account's domain signs from when it was found published until a
-- newer one was; it is then shown for some days more.
CREATE TABLE dkim_keys (
    seq        {{.Identity}},
    domain_seq BIGINT REFERENCES domains (seq) ON DELETE CASCADE,
    domain     TEXT NOT NULL,
    selector   TEXT NOT NULL,
    algorithm  TEXT NOT NULL CHECK (algorithm IN ('rsa', 'ed25519')),
    public     TEXT NOT NULL,
    sealed     {{.Bytes}} NOT NULL,
    found_at   BIGINT,
    retired_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (domain, selector)
);
-- read the keys of a domain
CREATE INDEX dkim_keys_domain ON dkim_keys (domain_seq) WHERE domain_seq IS NOT NULL;

-- ## Inboxes

-- A mailbox. Retention: no message before expired_to has content; purged_at is when the
-- last remains of a deleted inbox went. limits is an object of sending limits.
CREATE TABLE inboxes (
    seq            {{.Identity}},
    account_id     BIGINT NOT NULL REFERENCES accounts (seq),
    id             TEXT NOT NULL UNIQUE,
    address        TEXT NOT NULL UNIQUE,
    name           TEXT NOT NULL,
    domain         TEXT NOT NULL,
    display_name   TEXT,
    send_policy    TEXT NOT NULL CHECK (send_policy IN ('open', 'reply_only', 'approval')),
    status         TEXT NOT NULL CHECK (status IN ('active', 'suspended', 'deleted')),
    retention_days BIGINT NOT NULL CHECK (retention_days BETWEEN 1 AND 3650),
    metadata       TEXT NOT NULL,
    limits         TEXT,
    aliases        TEXT NOT NULL DEFAULT '[]',
    catch_all      BOOLEAN NOT NULL DEFAULT false,
    -- The lowest level of safety whose messages are put into quarantine, or empty.
    quarantine     TEXT NOT NULL DEFAULT '' CHECK (quarantine IN ('', 'notice', 'warning')),
    expires_at     BIGINT,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    expired_to     BIGINT NOT NULL DEFAULT 0,
    purged_at      BIGINT
);
-- list the inboxes of an account
CREATE INDEX inboxes_account ON inboxes (account_id, seq);
-- go through all that retention may have to do with
CREATE INDEX inboxes_kept ON inboxes (seq) WHERE purged_at IS NULL;

-- A further address of an inbox: an alias, or "*@domain" of the catch-all inbox of a
-- domain. The owner is the account of the domain; 0 is the domain of the installation,
-- which all accounts share.
CREATE TABLE inbox_addresses (
    owner     BIGINT NOT NULL,
    address   TEXT NOT NULL,
    inbox_seq BIGINT NOT NULL REFERENCES inboxes (seq),
    PRIMARY KEY (owner, address)
);
-- change or remove the addresses of an inbox
CREATE INDEX inbox_addresses_inbox ON inbox_addresses (inbox_seq);

-- An alias on the shared domain that an inbox had: it stays with the account, so that
-- mail to it reaches no other one.
CREATE TABLE freed_addresses (
    address    TEXT PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES accounts (seq)
);

-- A rule on who may be written to, and who may write. inbox_seq 0 stands for all inboxes
-- of the account.
CREATE TABLE lists (
    seq        {{.Identity}},
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
-- list the rules of an account
CREATE INDEX lists_account ON lists (account_id, seq);

-- ## Messages

-- A conversation in an inbox.
CREATE TABLE threads (
    seq             {{.Identity}},
    account_id      BIGINT NOT NULL,
    inbox_seq       BIGINT NOT NULL REFERENCES inboxes (seq),
    id              TEXT NOT NULL UNIQUE,
    subject         TEXT NOT NULL,
    subject_hash    BIGINT NOT NULL,
    participants    TEXT NOT NULL,
    labels          TEXT NOT NULL DEFAULT '[]',
    message_count   BIGINT NOT NULL,
    last_message_at BIGINT NOT NULL,
    created_at      BIGINT NOT NULL
);
-- list the threads of an inbox; find that of a message without references among the latest
CREATE INDEX threads_latest ON threads (inbox_seq, last_message_at, seq, subject_hash);
-- list the threads of an inbox by label
CREATE INDEX threads_labelled ON threads (inbox_seq, last_message_at, seq) WHERE labels <> '[]';

-- A Message-ID that mail of a thread refers to, of mail that has not come: when
-- it does, it belongs to that thread.
CREATE TABLE thread_references (
    inbox_seq   BIGINT NOT NULL,
    header_hash BIGINT NOT NULL,
    header_id   TEXT NOT NULL,
    thread_seq  BIGINT NOT NULL REFERENCES threads (seq) ON DELETE CASCADE,
    PRIMARY KEY (inbox_seq, header_hash)
);
-- merge or delete a thread
CREATE INDEX thread_references_thread ON thread_references (thread_seq);

-- A message that was received or is to be sent. inbox_seq and thread_seq are null of an
-- email: it belongs to no inbox, and has a row in emails.
CREATE TABLE messages (
    seq            {{.Identity}},
    account_id     BIGINT NOT NULL,
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
    -- Whether a limit on reading the message was reached.
    truncated      BOOLEAN NOT NULL DEFAULT false,
    -- The key or person who sends it.
    sent_by        TEXT,
    -- The address that a received message was sent to.
    delivered_to   TEXT,
    -- A received message that waits for release. Its from_email begins with a space, so
    -- that no query for the address finds it.
    quarantined    BOOLEAN NOT NULL DEFAULT false,
    -- The level of the safety facts of a received message.
    safety_level   TEXT NOT NULL DEFAULT 'none' CHECK (safety_level IN ('none', 'notice', 'warning')),
    created_at     BIGINT NOT NULL,
    sent_at        BIGINT,
    delivered_at   BIGINT,
    -- When the delivery of an email to its last recipient ended, or the email was
    -- cancelled. The retention of its content begins then.
    settled_at     BIGINT,
    -- When the content was deleted.
    expired_at     BIGINT,
    -- A list of texts in order.
    labels         TEXT NOT NULL DEFAULT '[]',
    -- When a key marked it as read or a person opened it, whoever was first. What each
    -- person has opened is in message_reads: one mark for all would hide from one person
    -- what another has read.
    read_at        BIGINT,
    -- The claims of a received message (store/lease.go). It can be claimed from
    -- next_attempt_at on: from when it was received, while it is claimed from the end of
    -- the claim, and never again once it is done or expired.
    attempts       BIGINT NOT NULL DEFAULT 0,
    fence          BIGINT NOT NULL DEFAULT 0,
    next_attempt_at BIGINT,
    leased         BOOLEAN NOT NULL DEFAULT false,
    CHECK ((inbox_seq IS NULL) = (thread_seq IS NULL))
);
-- list the messages of an account
CREATE INDEX messages_account ON messages (account_id, created_at) WHERE inbox_seq IS NOT NULL;
-- list the messages of an inbox, and ask whether a correspondent has written
CREATE INDEX messages_inbox ON messages (inbox_seq, created_at, from_email, direction, test_mode) WHERE inbox_seq IS NOT NULL;
-- list the messages of a thread
CREATE INDEX messages_thread ON messages (thread_seq, created_at) WHERE thread_seq IS NOT NULL;
-- delete the content of emails by age
CREATE INDEX messages_email ON messages (coalesce(settled_at, created_at)) WHERE inbox_seq IS NULL AND expired_at IS NULL;
-- find the message that another one, a report or a complaint refers to
CREATE INDEX messages_header ON messages (inbox_seq, header_hash{{.ThenSeq}});
-- delete the remains of messages by age
CREATE INDEX messages_expired ON messages (expired_at) WHERE expired_at IS NOT NULL;
-- list messages in quarantine, few among those of an account
CREATE INDEX messages_quarantined ON messages (account_id, created_at) WHERE quarantined;
-- list sent messages, few among those of an account
CREATE INDEX messages_out ON messages (account_id, created_at) WHERE direction = 'out' AND inbox_seq IS NOT NULL;
-- list messages by label, few among those of an account
CREATE INDEX messages_labelled ON messages (account_id, created_at) WHERE labels <> '[]';
-- claim the next message of an inbox
CREATE INDEX messages_due ON messages (inbox_seq, next_attempt_at) WHERE next_attempt_at IS NOT NULL;

-- The content of a message: its bytes here or in the blob store, and what was read in them.
-- checksum is of the bytes as they were written (store/internal/checksum).
CREATE TABLE contents (
    message_seq {{.RowID}} PRIMARY KEY REFERENCES messages (seq),
    raw         {{.Bytes}},
    blob_key    TEXT,
    signature   TEXT,
    body        TEXT,
    snippet     TEXT NOT NULL,
    extracted   TEXT,
    auth        TEXT,
    safety      TEXT,
    attachments TEXT NOT NULL,
    checksum    BIGINT
);
-- ask whether a blob is in use
CREATE INDEX contents_blob ON contents (blob_key) WHERE blob_key IS NOT NULL;
{{- if .PostgreSQL}}
-- Raw mail hardly compresses and is read whole: skip the compressor.
ALTER TABLE contents ALTER COLUMN raw SET STORAGE EXTERNAL;
{{- end}}

-- An address that an account has received mail from, by its hash; of one domain of them
-- each, the hash of "@domain" with the domain. resembles is the domain that this one looks
-- like, which is then not compared with others. days counts the days on which authenticated
-- mail came from a domain, and used_at is the last of them; of an address, used_at is its first
-- mail. Rows older than 400 days are deleted, and the least of more than 20,000 of an account.
CREATE TABLE correspondents (
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    address    BIGINT NOT NULL,
    domain     TEXT NOT NULL,
    resembles  TEXT NOT NULL DEFAULT '',
    days       BIGINT NOT NULL DEFAULT 1,
    used_at    BIGINT NOT NULL,
    PRIMARY KEY (account_id, address)
);
-- delete by age
CREATE INDEX correspondents_age ON correspondents (used_at);
-- compare a new domain with those that write most
CREATE INDEX correspondents_domains ON correspondents (account_id, days, used_at) WHERE domain <> '' AND resembles = '';

-- Where a deleted message stood in its inbox, so that a client can still ask for
-- what came after it (store/message.go).
CREATE TABLE deleted_messages (
    id         TEXT PRIMARY KEY,
    inbox_seq  BIGINT NOT NULL,
    seq        BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT NOT NULL
);
-- delete by age
CREATE INDEX deleted_messages_old ON deleted_messages (deleted_at);

-- A received message that a person has opened in the dashboard, or marked as unread.
CREATE TABLE message_reads (
    message_seq BIGINT NOT NULL REFERENCES messages (seq) ON DELETE CASCADE,
    user_seq    BIGINT NOT NULL REFERENCES users (seq),
    unread      BOOLEAN NOT NULL DEFAULT false,
    PRIMARY KEY (message_seq, user_seq)
);
-- count and list what a person marked as unread
CREATE INDEX message_reads_unread ON message_reads (user_seq, message_seq) WHERE unread;

-- A message whose code a helper returned to a key or a person, so that it returns each
-- only once. Rows older than a day are deleted.
CREATE TABLE codes_taken (
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    caller     TEXT NOT NULL,
    message_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, caller, message_id)
);
-- delete by age
CREATE INDEX codes_taken_age ON codes_taken (created_at);

-- ## Sending

-- What an email has beside the message that it is: from_inbox is the inbox whose
-- address it is sent from, if there is one, and due_at is when it is to be queued,
-- as long as it is scheduled. created_by is the key or person who sent it, who is checked
-- again when it is due.
CREATE TABLE emails (
    message_seq  {{.RowID}} PRIMARY KEY REFERENCES messages (seq),
    account_id   BIGINT NOT NULL,
    from_inbox   BIGINT,
    batch_id     TEXT,
    category     TEXT NOT NULL CHECK (category IN ('transactional', 'marketing')),
    tags         TEXT NOT NULL,
    metadata     TEXT NOT NULL,
    created_by   TEXT,
    scheduled_at BIGINT,
    due_at       BIGINT,
    -- In place of due_at, of one that is held (store/backup.go).
    held_due     BIGINT,
    opened_at    BIGINT
){{.Busy}};
-- list the emails of an account
CREATE INDEX emails_account ON emails (account_id, message_seq);
-- list the emails of a batch
CREATE INDEX emails_batch ON emails (batch_id) WHERE batch_id IS NOT NULL;
-- queue what is due
CREATE INDEX emails_due ON emails (due_at) WHERE due_at IS NOT NULL;
-- release what is held
CREATE INDEX emails_held ON emails (held_due) WHERE held_due IS NOT NULL;

-- A tag of an email, to list emails by tag.
CREATE TABLE email_tags (
    account_id  BIGINT NOT NULL,
    name        TEXT NOT NULL,
    value       TEXT NOT NULL,
    message_seq BIGINT NOT NULL,
    PRIMARY KEY (account_id, name, value, message_seq)
){{.ByKey}};

-- A recipient of a sent message, with the state of its delivery. It is due at
-- next_attempt_at, which while an attempt runs is the end of its lease.
CREATE TABLE recipients (
    seq             {{.Identity}},
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
    -- In place of next_attempt_at, of one that is held (store/backup.go).
    held_due        BIGINT,
    -- In place of next_attempt_at, of one whose sender is stopped.
    stopped_due     BIGINT
){{.Busy}};
-- read the recipients of a message
CREATE INDEX recipients_message ON recipients (message_seq);
-- claim what is due, by domain
CREATE INDEX recipients_due ON recipients (next_attempt_at, domain) WHERE next_attempt_at IS NOT NULL;
-- release what is held
CREATE INDEX recipients_held ON recipients (held_due) WHERE held_due IS NOT NULL;
-- make due what waited for its sender
CREATE INDEX recipients_stopped ON recipients (account_id, seq) WHERE stopped_due IS NOT NULL;

-- A message that waits for approval, or did. category, tags and metadata are those of the
-- email that it was. send_after is when one is due that a person approved; until then
-- message_id is what its message will have. expires_at is when it stops waiting, on_expiry
-- what happens then, expiry_by who chose that it is sent. notice_version is the version
-- that approvers were told about, notice_due until when a node is telling them.
CREATE TABLE drafts (
    seq            {{.Identity}},
    account_id     BIGINT NOT NULL,
    inbox_seq      BIGINT NOT NULL REFERENCES inboxes (seq),
    id             TEXT NOT NULL UNIQUE,
    status         TEXT NOT NULL CHECK (status IN ('pending', 'scheduled', 'sent', 'rejected')),
    kind           TEXT NOT NULL CHECK (kind IN ('new', 'reply', 'forward')),
    version        BIGINT NOT NULL,
    test_mode      BOOLEAN NOT NULL,
    source_id      TEXT,
    thread_seq     BIGINT,
    thread_id      TEXT,
    message_id     TEXT,
    addresses      TEXT NOT NULL,
    subject        TEXT NOT NULL,
    refs           TEXT NOT NULL,
    category       TEXT,
    tags           TEXT,
    metadata       TEXT,
    created_by     TEXT NOT NULL,
    decided_by     TEXT,
    decided_at     BIGINT,
    send_after     BIGINT CHECK ((send_after IS NOT NULL) = (status = 'scheduled')),
    reject_reason  TEXT,
    expires_at     BIGINT,
    on_expiry      TEXT NOT NULL DEFAULT 'reject' CHECK (on_expiry IN ('reject', 'send')),
    expiry_by      TEXT,
    notice_version BIGINT NOT NULL DEFAULT 0,
    notice_due     BIGINT,
    content_at     BIGINT NOT NULL,
    expired_at     BIGINT,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
);
-- list the drafts of an account
CREATE INDEX drafts_account ON drafts (account_id, seq);
-- list the drafts of an inbox
CREATE INDEX drafts_inbox ON drafts (inbox_seq, seq);
-- list and count what waits for approval
CREATE INDEX drafts_pending ON drafts (account_id, seq) WHERE status = 'pending';
-- delete the forwards of a message with it
CREATE INDEX drafts_source ON drafts (source_id) WHERE source_id IS NOT NULL;
-- delete the draft of a message with it
CREATE INDEX drafts_message ON drafts (message_id) WHERE message_id IS NOT NULL;
-- delete the content of drafts by age
CREATE INDEX drafts_kept ON drafts (inbox_seq, content_at) WHERE expired_at IS NULL;
-- delete the remains of drafts by age
CREATE INDEX drafts_expired ON drafts (expired_at) WHERE expired_at IS NOT NULL;
-- send what is due, and end what waited too long
CREATE INDEX drafts_due ON drafts (coalesce(send_after, expires_at), seq) WHERE status IN ('pending', 'scheduled');
-- claim what approvers are to be told about
CREATE INDEX drafts_to_announce ON drafts (account_id, seq) WHERE status = 'pending' AND (notice_version < version OR notice_due IS NOT NULL);

-- The content of a draft. warnings is what its approver should know.
CREATE TABLE draft_contents (
    draft_seq   {{.RowID}} PRIMARY KEY REFERENCES drafts (seq),
    text        TEXT NOT NULL,
    html        TEXT NOT NULL,
    headers     TEXT NOT NULL,
    attachments TEXT NOT NULL,
    files       {{.Bytes}},
    blob_key    TEXT,
    warnings    TEXT NOT NULL DEFAULT '[]'
);
-- ask whether a blob is in use
CREATE INDEX draft_contents_blob ON draft_contents (blob_key) WHERE blob_key IS NOT NULL;

-- A recipient that a message was accepted for, in the scope of a key, an inbox or the
-- account that has limits. n rises by one with each row of a scope, and at never falls,
-- so the number of recipients since a time is the difference of two rows. recipient and
-- text are hashes. first says that nobody of the scope had written to the recipient
-- before, gone that the row does not count: the message was scheduled and counts again when
-- it leaves.
CREATE TABLE sends (
    account_id  BIGINT NOT NULL,
    scope       TEXT NOT NULL,
    n           BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    message_seq BIGINT NOT NULL,
    recipient   BIGINT NOT NULL,
    text        BIGINT,
    first       BOOLEAN NOT NULL,
    gone        BOOLEAN NOT NULL,
    PRIMARY KEY (account_id, scope, n)
){{.ByKey}};
-- count the sends of a time
CREATE INDEX sends_at ON sends (account_id, scope, at, n);
-- count the rows that do not count
CREATE INDEX sends_gone ON sends (account_id, scope, at) WHERE gone;
-- count new recipients
CREATE INDEX sends_first ON sends (account_id, scope, at) WHERE first;
-- count what one recipient got
CREATE INDEX sends_recipient ON sends (account_id, scope, recipient, at);
-- count who got one text
CREATE INDEX sends_text ON sends (account_id, scope, text, at) WHERE text IS NOT NULL;
-- take a message out of the count
CREATE INDEX sends_message ON sends (message_seq);
-- delete by age
CREATE INDEX sends_age ON sends (at) WHERE NOT first;

-- What a person stopped from sending: an account (scope account), an inbox or a key.
CREATE TABLE stops (
    account_id BIGINT NOT NULL,
    scope      TEXT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (account_id, scope)
);

-- An address that gets no more mail from an account. An address whose domain has no mail
-- server is suppressed for emails only. source is an email, a message or a key.
CREATE TABLE suppressions (
    seq        {{.Identity}},
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    id         TEXT NOT NULL UNIQUE,
    email      TEXT NOT NULL,
    email_fold TEXT NOT NULL,
    reason     TEXT NOT NULL CHECK (reason IN ('hard_bounce', 'complaint', 'unsubscribe', 'manual')),
    category   TEXT NOT NULL CHECK (category IN ('all', 'emails', 'marketing')),
    source     TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (account_id, email_fold)
);
-- list the suppressions of an account
CREATE INDEX suppressions_account ON suppressions (account_id, seq);

-- A template of emails.
CREATE TABLE templates (
    seq        {{.Identity}},
    account_id BIGINT NOT NULL REFERENCES accounts (seq),
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    html       TEXT NOT NULL,
    text       TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
-- list the templates of an account
CREATE INDEX templates_account ON templates (account_id, seq);

-- Someone whom an account writes emails to.
CREATE TABLE contacts (
    seq        {{.Identity}},
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
-- list the contacts of an account
CREATE INDEX contacts_account ON contacts (account_id, seq);

-- The response to a call with an Idempotency-Key.
CREATE TABLE idempotency (
    account_id  BIGINT NOT NULL,
    operation   TEXT NOT NULL,
    key         TEXT NOT NULL,
    body_hash   {{.Bytes}} NOT NULL,
    status      BIGINT NOT NULL,
    kind        TEXT NOT NULL,
    body        TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (account_id, operation, key)
);
-- empty or delete it with its message or draft
CREATE INDEX idempotency_resource ON idempotency (resource_id);
-- delete by age
CREATE INDEX idempotency_age ON idempotency (created_at);

-- ## Events and webhooks

-- What happened, in order: the log that webhooks and streams read.
CREATE TABLE events (
    seq         {{.Identity}},
    account_id  BIGINT NOT NULL,
    inbox_seq   BIGINT,
    id          TEXT NOT NULL UNIQUE,
    type        TEXT NOT NULL,
    message_seq BIGINT,
    test_mode   BOOLEAN NOT NULL,
    data        TEXT NOT NULL,
    created_at  BIGINT NOT NULL
);
-- read the log of an account in order
CREATE INDEX events_account ON events (account_id{{.ThenSeq}});
-- empty those that name a recipient with their message (store/retention.go), and list those of an email
CREATE INDEX events_recipient ON events (message_seq) WHERE type NOT IN ('message.received', 'message.queued');

-- An address that events are posted to. Signing secrets are sealed. events and inboxes are
-- null for all of them. headers has the header fields that requests have in addition,
-- with sealed values. format is the vendor whose API made the endpoint, in whose form events
-- are sent; null for ours. owner_key is the key that created the endpoint and is still
-- responsible for it, url_by and secret_by the keys that last changed these; null for a
-- person, and once a key with the scope admin has changed the endpoint. Revoking one of
-- them turns the endpoint off.
CREATE TABLE webhook_endpoints (
    seq             {{.Identity}},
    account_id      BIGINT NOT NULL REFERENCES accounts (seq),
    id              TEXT NOT NULL UNIQUE,
    url             TEXT NOT NULL,
    events          TEXT,
    inboxes         TEXT,
    headers         TEXT,
    format          TEXT,
    active          BOOLEAN NOT NULL,
    disabled_reason TEXT CHECK (disabled_reason IS NULL OR NOT active),
    secret          {{.Bytes}} NOT NULL,
    old_secret      {{.Bytes}},
    old_until       BIGINT,
    owner_key       TEXT,
    url_by          TEXT,
    secret_by       TEXT,
    failing_since   BIGINT,
    created_at      BIGINT NOT NULL
);
-- list the endpoints of an account
CREATE INDEX webhook_endpoints_account ON webhook_endpoints (account_id, seq);

-- One event for one endpoint. What is pending is due at next_attempt_at, which
-- while an attempt runs is the end of its lease. The deliveries about one message to one
-- endpoint are a queue (store/webhook_delivery.go).
CREATE TABLE webhook_deliveries (
    seq              {{.Identity}},
    account_id       BIGINT NOT NULL,
    endpoint_seq     BIGINT NOT NULL,
    message_seq      BIGINT,
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
    -- In place of next_attempt_at, of one that is held (store/backup.go).
    held_due         BIGINT,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL OR held_due IS NOT NULL))
){{.Busy}};
-- list the deliveries of an endpoint
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_seq, seq);
-- claim what is due, by endpoint
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_attempt_at, endpoint_seq) WHERE next_attempt_at IS NOT NULL;
-- find the first delivery about a message
CREATE INDEX webhook_deliveries_message ON webhook_deliveries (endpoint_seq, message_seq, seq)
    WHERE next_attempt_at IS NOT NULL AND message_seq IS NOT NULL;
-- release what is held
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (held_due) WHERE held_due IS NOT NULL;

-- ## Search

-- Some thousand messages of one account that were indexed one after the other. Words are
-- indexed with the number of their bucket before them (store/internal/index).
CREATE TABLE search_buckets (
    seq        {{.Identity}},
    account_id BIGINT NOT NULL,
    oldest     BIGINT NOT NULL,
    newest     BIGINT NOT NULL,
    messages   BIGINT NOT NULL
);
-- search the buckets of an account, newest first
CREATE INDEX search_buckets_account ON search_buckets (account_id, newest);

{{if .PostgreSQL -}}
-- The full-text index. The words lie beside the rows, so that rows that were found are
-- read in few pages. Who fills the index also empties its pending list, so that no search
-- has to read a long one.
CREATE TABLE search_index (
    message_seq BIGINT PRIMARY KEY,
    words       TSVECTOR NOT NULL
) WITH (toast_tuple_target = 128);
CREATE INDEX search_index_words ON search_index USING gin (words) WITH (fastupdate = on, gin_pending_list_limit = 4096);

-- A search by the index, whatever the planner thinks of the words. They cannot be
-- found in order, so all that match are found first.
-- +goose StatementBegin
CREATE FUNCTION search_find(query tsquery, below bigint, most bigint) RETURNS SETOF bigint
    LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
        WITH found AS MATERIALIZED (SELECT message_seq FROM search_index WHERE words @@ query)
        SELECT message_seq FROM found WHERE message_seq < below ORDER BY message_seq DESC LIMIT most;
END $$;
-- +goose StatementEnd
{{- else -}}
-- The full-text index. FTS5 merges nothing inside the transactions that index or delete
-- messages, because one merge can take seconds. The store merges in short steps of its own
-- (store/search.go). crisismerge bounds the number of segments, should those steps
-- fail for a long time.
CREATE VIRTUAL TABLE search_index USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '.-'"
);
INSERT INTO search_index (search_index, rank) VALUES ('automerge', 0);
INSERT INTO search_index (search_index, rank) VALUES ('crisismerge', 256);
INSERT INTO search_index (search_index, rank) VALUES ('deletemerge', 5);
{{- end}}

-- ## Counts and logs

-- How many events of a kind a UTC day had, by its number since 1970: those up to the
-- position "counted". The rows of inbox_seq 0 are of the whole account.
CREATE TABLE daily_counts (
    account_id BIGINT NOT NULL,
    inbox_seq  BIGINT NOT NULL,
    day        BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    n          BIGINT NOT NULL,
    PRIMARY KEY (account_id, inbox_seq, day, kind)
){{.ByKey}};
-- delete by age
CREATE INDEX daily_counts_age ON daily_counts (day);

-- What limits sending, by UTC day: the recipients accepted, for the plan, and those tried,
-- refused and complaining, for the watch over an account. The transaction that accepts or
-- tries counts here, so that the limits are exact. Writers that work side by side have a
-- shard each.
CREATE TABLE send_counts (
    account_id BIGINT NOT NULL,
    day        BIGINT NOT NULL,
    kind       TEXT NOT NULL,
    shard      BIGINT NOT NULL,
    n          BIGINT NOT NULL,
    PRIMARY KEY (account_id, day, kind, shard)
){{.ByKey}}{{if .PostgreSQL}} WITH (fillfactor = 50){{end}};
-- delete by age
CREATE INDEX send_counts_age ON send_counts (day);

-- How far some work has come: "counted" is the number of the last event that daily_counts
-- has, "indexed" that of the last message that went into the full-text index.
CREATE TABLE positions (
    name TEXT PRIMARY KEY,
    seq  BIGINT NOT NULL
);

{{if .PostgreSQL -}}
-- Calls by caller. After a crash of the server every window starts again.
CREATE UNLOGGED TABLE rate_limits (
    who     TEXT PRIMARY KEY,
    n       BIGINT NOT NULL,
    ends_at BIGINT NOT NULL
) WITH (fillfactor = 50);
{{- end}}

-- A request to the API, without query and body. caller is a key or a user.
CREATE TABLE api_requests (
    seq        {{.Identity}},
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
-- list the requests of an account, of a key or user, and those that failed
CREATE INDEX api_requests_account ON api_requests (account_id, seq);
CREATE INDEX api_requests_caller ON api_requests (account_id, caller, seq);
CREATE INDEX api_requests_failed ON api_requests (account_id, seq) WHERE status >= 400;

-- An SMTP session in which the server refused something.
CREATE TABLE smtp_refusals (
    seq        {{.Identity}},
    ip         TEXT NOT NULL,
    helo       TEXT NOT NULL,
    mail_from  TEXT NOT NULL,
    rcpt_to    TEXT NOT NULL,
    reply      TEXT NOT NULL,
    refused    BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
