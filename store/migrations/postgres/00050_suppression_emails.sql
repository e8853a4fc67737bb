-- +goose Up
-- An address whose domain has no mail server is suppressed for emails only.
ALTER TABLE suppressions DROP CONSTRAINT suppressions_category_check;
ALTER TABLE suppressions ADD CONSTRAINT suppressions_category_check CHECK (category IN ('all', 'emails', 'marketing'));
