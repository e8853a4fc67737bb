-- +goose Up

-- The ids of the keys that last changed the URL and the secret. Null as long as no key
-- has changed them, and once a key with the scope admin has changed the endpoint.
-- Revoking one of them turns the endpoint off too.
ALTER TABLE webhook_endpoints ADD COLUMN url_by TEXT;
ALTER TABLE webhook_endpoints ADD COLUMN secret_by TEXT;
