-- +goose Up
-- All locks at once, or the step fails soon and is retried.
SET LOCAL lock_timeout = '200ms';
LOCK TABLE api_keys, webhook_endpoints;

-- The id of the key that created the key. Null for a person, the command line, OAuth
-- and a key with the scope admin. Revoking or stopping the key does the same to the
-- keys that it created.
ALTER TABLE api_keys ADD COLUMN created_by TEXT;
CREATE INDEX api_keys_created_by ON api_keys (created_by) WHERE created_by IS NOT NULL;

-- The ids of the keys that last changed the URL and the secret. Null as long as no key
-- has changed them, and once a key with the scope admin has changed the endpoint.
-- Revoking one of them turns the endpoint off too.
ALTER TABLE webhook_endpoints ADD COLUMN url_by TEXT;
ALTER TABLE webhook_endpoints ADD COLUMN secret_by TEXT;
