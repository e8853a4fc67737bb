-- Messages in quarantine, and sent ones, are few among those of an account.

-- +goose Up
DROP INDEX messages_quarantined;
CREATE INDEX messages_quarantined ON messages (account_id, created_at) WHERE quarantined;
CREATE INDEX messages_out ON messages (account_id, created_at) WHERE direction = 'out' AND inbox_seq IS NOT NULL;
