-- +goose Up
-- SQLite alone merges its full-text index.
SELECT 1;
