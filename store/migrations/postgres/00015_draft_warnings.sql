-- +goose Up
-- Take all locks first, before any work is done under them.
LOCK TABLE draft_contents, drafts;

-- What the person who approves a draft should know about its content.
ALTER TABLE draft_contents ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';

-- The From of a draft belongs to it. Drafts had none until now.
UPDATE drafts SET addresses = jsonb_set(addresses::jsonb, '{from}',
    (SELECT jsonb_build_object('email', i.address, 'name', coalesce(i.display_name, '')) FROM inboxes i WHERE i.seq = drafts.inbox_seq))::text;
