-- +goose Up

-- When the delivery of an email to its last recipient ended, or the email was
-- cancelled. The retention of its content begins then.
ALTER TABLE messages ADD COLUMN settled_at BIGINT;
UPDATE messages SET settled_at = coalesce(sent_at, created_at)
 WHERE inbox_seq IS NULL AND expired_at IS NULL AND status NOT IN ('scheduled', 'queued');
DROP INDEX messages_email;
CREATE INDEX messages_email ON messages ((coalesce(settled_at, created_at))) WHERE inbox_seq IS NULL AND expired_at IS NULL;
