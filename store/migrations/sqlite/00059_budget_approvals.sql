-- +goose Up
-- What approved drafts count as, so that an undo can return it: one row for each
-- budget, and one for each of its recipients that was written to before.
CREATE TABLE budget_approvals (
    draft_seq BIGINT NOT NULL,
    scope     TEXT NOT NULL,
    at        BIGINT NOT NULL,
    hash      BIGINT,
    last_at   BIGINT
);
CREATE INDEX budget_approvals_draft ON budget_approvals (draft_seq);
CREATE INDEX budget_approvals_at ON budget_approvals (at);
