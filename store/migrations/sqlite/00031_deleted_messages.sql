-- +goose Up

-- Where a deleted message stood in its inbox, so that a client can still ask for
-- what came after it (store/deleted.go).
CREATE TABLE deleted_messages (
    id         TEXT PRIMARY KEY,
    inbox_seq  BIGINT NOT NULL,
    seq        BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT NOT NULL
);
CREATE INDEX deleted_messages_old ON deleted_messages (deleted_at);
