-- +goose Up

-- The id of the key that created the endpoint and is still responsible for it.
-- Null for a person, and once a key with the scope admin has changed the endpoint.
-- Revoking the key turns the endpoint off.
ALTER TABLE webhook_endpoints ADD COLUMN owner_key TEXT;
