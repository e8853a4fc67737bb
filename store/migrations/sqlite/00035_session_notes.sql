-- +goose Up

-- Secrets that the dashboard shows once, on the page after the form that made
-- them. Sealed; a note ends with its session.
CREATE TABLE session_notes (
    session_hash BLOB NOT NULL REFERENCES user_sessions (hash) ON DELETE CASCADE,
    subject      TEXT NOT NULL,
    sealed       BLOB NOT NULL,
    expires_at   BIGINT NOT NULL,
    PRIMARY KEY (session_hash, subject)
);
CREATE INDEX session_notes_age ON session_notes (expires_at);
