-- +goose Up

-- The id of the key or user who sent an email. It is checked again when the email was
-- scheduled; null of what is older.
ALTER TABLE emails ADD COLUMN created_by TEXT;
