-- +goose Up
-- Take all locks first, before any work is done under them.
LOCK TABLE drafts, accounts;
-- The version of a draft that approvers were told about, and until when a node is
-- telling them. An account counts its notices of the last minute.
ALTER TABLE drafts ADD COLUMN notice_version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE drafts ADD COLUMN notice_due BIGINT;
CREATE INDEX drafts_to_announce ON drafts (account_id, seq) WHERE status = 'pending' AND (notice_version < version OR notice_due IS NOT NULL);
ALTER TABLE accounts ADD COLUMN notices BIGINT NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN notices_from BIGINT;
