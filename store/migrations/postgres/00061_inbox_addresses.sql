-- +goose Up
-- Take all locks first, before any work is done under them.
LOCK TABLE inboxes, messages;

-- Further addresses of inboxes: aliases, and "*@domain" for the catch-all inbox of a
-- domain. The owner is the account that the domain belongs to; 0 is the domain of the
-- installation, which all accounts share.
CREATE TABLE inbox_addresses (
    owner     BIGINT NOT NULL,
    address   TEXT NOT NULL,
    inbox_seq BIGINT NOT NULL REFERENCES inboxes (seq),
    PRIMARY KEY (owner, address)
);
CREATE INDEX inbox_addresses_inbox ON inbox_addresses (inbox_seq);
ALTER TABLE inboxes ADD COLUMN aliases TEXT NOT NULL DEFAULT '[]';
ALTER TABLE inboxes ADD COLUMN catch_all BOOLEAN NOT NULL DEFAULT false;

-- The address that a received message was sent to.
ALTER TABLE messages ADD COLUMN delivered_to TEXT;
