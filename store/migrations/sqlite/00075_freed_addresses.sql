-- +goose Up

-- Aliases on the domain that all accounts share that an inbox no longer has, or has again:
-- they stay with the account, so that mail to them reaches no other one.
CREATE TABLE freed_addresses (
    address    TEXT PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES accounts (seq)
);

-- Deleted inboxes have kept the list of their aliases. Those on other domains do no harm.
-- What another inbox has got since is its own.
INSERT INTO freed_addresses (address, account_id)
SELECT a.value || '@' || i.domain, i.account_id FROM inboxes i, json_each(i.aliases) a
 WHERE i.status = 'deleted'
   AND NOT EXISTS (SELECT 1 FROM inbox_addresses b WHERE b.owner = 0 AND b.address = a.value || '@' || i.domain)
 ORDER BY i.seq
ON CONFLICT DO NOTHING;
