-- +goose Up
-- PostgreSQL alone cleans up tables in the background.
SELECT 1;
