-- +goose Up

-- Of the content, as it was written (store/internal/checksum); null for messages of
-- older versions.
ALTER TABLE contents ADD COLUMN checksum BIGINT;
