-- +goose Up
-- Take all locks first, before any work is done under them.
LOCK TABLE messages, users;
-- Which received messages a person has opened in the dashboard. Messages that were
-- received before the person's account was made, or before read_to, are read.
CREATE TABLE message_reads (
    message_seq BIGINT NOT NULL REFERENCES messages (seq) ON DELETE CASCADE,
    user_seq    BIGINT NOT NULL REFERENCES users (seq),
    PRIMARY KEY (message_seq, user_seq)
);
ALTER TABLE users ADD COLUMN read_to BIGINT NOT NULL DEFAULT 0;
UPDATE users SET read_to = CAST(extract(epoch FROM now()) AS BIGINT) * 1000000;
