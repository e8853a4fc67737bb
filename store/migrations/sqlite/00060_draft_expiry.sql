-- +goose Up
-- When a draft stops waiting for approval, what happens then, and who chose that it is
-- sent.
ALTER TABLE drafts ADD COLUMN expires_at BIGINT;
ALTER TABLE drafts ADD COLUMN on_expiry TEXT NOT NULL DEFAULT 'reject' CHECK (on_expiry IN ('reject', 'send'));
ALTER TABLE drafts ADD COLUMN expiry_by TEXT;
CREATE INDEX drafts_due ON drafts (expires_at, seq) WHERE status = 'pending' AND expires_at IS NOT NULL;
