-- +goose Up
-- One row: when deletions last went on, and until when they wait because the
-- clock may be wrong (store/clock_guard.go).
CREATE TABLE maintenance (
    one           INTEGER PRIMARY KEY CHECK (one = 1),
    last_round_at BIGINT,
    held_until    BIGINT
);
