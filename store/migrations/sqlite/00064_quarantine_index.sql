-- +goose Up
CREATE INDEX messages_quarantined ON messages (account_id) WHERE quarantined;
