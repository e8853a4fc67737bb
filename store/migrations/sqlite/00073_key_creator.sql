-- +goose Up

-- The id of the key that created the key. Null for a person, the command line, OAuth
-- and a key with the scope admin. Revoking or stopping the key does the same to the
-- keys that it created.
ALTER TABLE api_keys ADD COLUMN created_by TEXT;
CREATE INDEX api_keys_created_by ON api_keys (created_by) WHERE created_by IS NOT NULL;
