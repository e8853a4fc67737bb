-- +goose Up
-- Messages that a person marked as unread, also those received before read_to.
ALTER TABLE message_reads ADD COLUMN unread BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX message_reads_unread ON message_reads (user_seq, message_seq) WHERE unread;
