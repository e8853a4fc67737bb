package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// NewDraft is a draft to be stored.
type NewDraft struct {
	// Draft holds AccountID, InboxID, Kind, TestMode, SourceID, ThreadSeq,
	// ThreadID, Addresses, Subject, Refs, CreatedBy and Content, and ContentAt
	// when the content is older than the draft. The thread is that of the source
	// when the draft is stored. Everything else is the store's to
	// fill in, in the copy that it returns.
	Draft
	// Files are the bytes of Content.Attachments, in their order.
	Files []DraftFile
}

// CreateDraft stores a pending draft and returns it as stored. With once, the
// answer is stored too. ErrNotFound when the inbox is deleted.
func (s *Store) CreateDraft(ctx context.Context, n NewDraft, once *Once) (Draft, error) {
	files, err := s.keepDraftFiles(ctx, n.Files)
	if err != nil {
		return Draft{}, err
	}
	d, now := n.Draft, NewTime(s.now())
	c := *n.Content
	c.Text, c.HTML, c.BlobKey = storable(c.Text), storable(c.HTML), files.blob
	if c.Warnings.V == nil {
		c.Warnings.V = []Warning{}
	}
	d.ID, d.Status, d.Version = NewID("drf_", now.Time), DraftPending, 1
	d.Subject, d.CreatedAt, d.UpdatedAt, d.Content = storable(d.Subject), now, now, &c
	if d.ContentAt.IsZero() {
		d.ContentAt = now
	}
	err = s.inTx(ctx, "create draft", func(tx *sqlx.Tx) error {
		in, err := s.lockInbox(ctx, tx, d.AccountID, d.InboxID)
		if err != nil {
			return err
		}
		d.InboxSeq = in.Seq
		if err := checkBlobs(s.now(), c.BlobKey); err != nil {
			return err
		}
		if d.ThreadSeq, d.ThreadID, err = threadOfDraft(ctx, tx, in.Seq, n.Draft); err != nil {
			return err
		}
		if err := insertDraft(ctx, tx, &d, files.row); err != nil {
			return err
		}
		if err := s.draftEvent(ctx, tx, EventDraftCreated, d); err != nil {
			return err
		}
		return s.saveAnswer(ctx, tx, once, d.ID, d)
	})
	return s.announced(d, err)
}

// insertDraft writes a draft, which gets its number, with its content and the
// files that lie in the row.
func insertDraft(ctx context.Context, tx *sqlx.Tx, d *Draft, files []byte) error {
	const q = `
		INSERT INTO drafts (account_id, inbox_seq, id, status, kind, version, test_mode, source_id, thread_seq, thread_id, addresses,
			subject, refs, created_by, content_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16)
		RETURNING seq`
	const keep = `
		INSERT INTO draft_contents (draft_seq, text, html, headers, attachments, warnings, files, blob_key)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	err := tx.GetContext(ctx, &d.Seq, q, d.AccountID, d.InboxSeq, d.ID, d.Status, d.Kind, d.Version, d.TestMode, d.SourceID, d.ThreadSeq,
		d.ThreadID, d.Addresses, d.Subject, d.Refs, d.CreatedBy, d.ContentAt, d.CreatedAt)
	if err != nil {
		return err
	}
	c := d.Content
	c.DraftSeq = d.Seq
	_, err = tx.ExecContext(ctx, keep, c.DraftSeq, c.Text, c.HTML, c.Headers, c.Attachments, c.Warnings, orNullBytes(files), c.BlobKey)
	return err
}

// announced is what a call returns that has written an event about d: those who
// wait for one look.
func (s *Store) announced(d Draft, err error) (Draft, error) {
	if err != nil {
		return Draft{}, err
	}
	s.changed([]topic{{kind: topicEvents}, {kind: topicWebhooks}}, 1)
	return d, nil
}

// threadOfDraft reads again which thread a draft that names one is to join: since
// its message was looked at, that thread may have become part of another. There
// is none any more when the thread is deleted. The inbox is held.
func threadOfDraft(ctx context.Context, tx *sqlx.Tx, inboxSeq int64, d Draft) (seq *int64, id *string, err error) {
	const (
		ofSource = `SELECT t.seq, t.id FROM messages m JOIN threads t ON t.seq = m.thread_seq WHERE m.id = $1 AND m.inbox_seq = $2`
		named    = `SELECT seq, id FROM threads WHERE seq = $1 AND inbox_seq = $2`
	)
	if d.ThreadSeq == nil {
		return nil, nil, nil
	}
	var found []struct {
		Seq int64  `db:"seq"`
		ID  string `db:"id"`
	}
	if d.SourceID != nil {
		err = tx.SelectContext(ctx, &found, ofSource, *d.SourceID, inboxSeq)
	}
	if err == nil && len(found) == 0 {
		err = tx.SelectContext(ctx, &found, named, *d.ThreadSeq, inboxSeq)
	}
	if err != nil || len(found) == 0 {
		return nil, nil, errIn("thread of the draft", err)
	}
	return &found[0].Seq, &found[0].ID, nil
}

// UpdateDraft lets edit change subject, text, html and warnings of a pending draft,
// and raises its version if that changes any of the first three. ErrState when it is not pending any more. An error of
// edit changes nothing and is returned as it is; edit may find the content
// deleted.
func (s *Store) UpdateDraft(ctx context.Context, accountID int64, id string, edit func(*Draft) error) (Draft, error) {
	const save = `UPDATE drafts SET subject = $2, version = $3, updated_at = $4 WHERE seq = $1`
	const keep = `UPDATE draft_contents SET text = $2, html = $3, warnings = $4 WHERE draft_seq = $1`
	var d Draft
	var refused error
	err := s.inTx(ctx, "update draft", func(tx *sqlx.Tx) error {
		var err error
		if d, err = s.lockPendingDraft(ctx, tx, accountID, id); err != nil {
			return err
		}
		before, said := d.Subject, DraftContent{}
		if d.Content != nil {
			said = *d.Content
		}
		if refused = edit(&d); refused != nil {
			return refused
		}
		if d.Content == nil || d.Subject == before && d.Content.Text == said.Text && d.Content.HTML == said.HTML {
			return nil
		}
		d.Version, d.UpdatedAt, d.Subject = d.Version+1, NewTime(s.now()), storable(d.Subject)
		if _, err := tx.ExecContext(ctx, save, d.Seq, d.Subject, d.Version, d.UpdatedAt); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, keep, d.Seq, storable(d.Content.Text), storable(d.Content.HTML), d.Content.Warnings)
		return err
	})
	switch {
	case refused != nil:
		return Draft{}, refused
	case err != nil:
		return Draft{}, err
	}
	return d, nil
}

// RejectDraft ends a pending draft: it is never sent. by is who decided.
// ErrState when it is not pending any more.
func (s *Store) RejectDraft(ctx context.Context, accountID int64, id, by string, reason *string, once *Once) (Draft, error) {
	const q = `UPDATE drafts SET status = $2, decided_by = $3, decided_at = $4, reject_reason = $5, updated_at = $4 WHERE seq = $1`
	var d Draft
	err := s.inTx(ctx, "reject draft", func(tx *sqlx.Tx) error {
		var err error
		if d, err = s.lockPendingDraft(ctx, tx, accountID, id); err != nil {
			return err
		}
		now := NewTime(s.now())
		d.Status, d.DecidedBy, d.DecidedAt, d.RejectReason, d.UpdatedAt = DraftRejected, &by, &now, reason, now
		if _, err := tx.ExecContext(ctx, q, d.Seq, d.Status, d.DecidedBy, d.DecidedAt, d.RejectReason); err != nil {
			return err
		}
		if err := s.draftEvent(ctx, tx, EventDraftRejected, d); err != nil {
			return err
		}
		return s.saveAnswer(ctx, tx, once, d.ID, d)
	})
	return s.announced(d, err)
}

// lockPendingDraft reads a draft with its content and keeps others from
// changing it until the end of the transaction. ErrState when it is not
// pending.
func (s *Store) lockPendingDraft(ctx context.Context, tx *sqlx.Tx, accountID int64, id string) (Draft, error) {
	const (
		lock  = `SELECT ` + draftStored + ` FROM drafts d WHERE d.account_id = $1 AND d.id = $2`
		inbox = `SELECT id FROM inboxes WHERE seq = $1 AND status <> 'deleted'`
		keep  = `SELECT ` + draftContentColumns + ` FROM draft_contents WHERE draft_seq = $1`
	)
	var d Draft
	if err := tx.GetContext(ctx, &d, lock+s.engine.LockRow(), accountID, id); err != nil {
		return d, s.wrap(err, "draft")
	}
	if err := tx.GetContext(ctx, &d.InboxID, inbox, d.InboxSeq); err != nil {
		return d, s.wrap(err, "inbox of the draft")
	}
	if d.Status != DraftPending {
		return d, fmt.Errorf("draft is %s: %w", d.Status, ErrState)
	}
	if d.ExpiredAt != nil {
		return d, nil
	}
	d.Content = &DraftContent{}
	return d, s.wrap(tx.GetContext(ctx, d.Content, keep, d.Seq), "content of the draft")
}

// draftEvent writes an event about a draft.
func (s *Store) draftEvent(ctx context.Context, tx *sqlx.Tx, typ EventType, d Draft) error {
	const q = `INSERT INTO events (account_id, inbox_seq, id, type, test_mode, data, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	data, err := json.Marshal(DraftEventData{DraftID: d.ID, Status: d.Status})
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	now := NewTime(s.now())
	id := NewID("evt_", now.Time)
	if _, err = tx.ExecContext(ctx, q, d.AccountID, d.InboxSeq, id, typ, d.TestMode, string(data), now); err != nil {
		return errIn("insert event", err)
	}
	_, err = s.tellWebhooks(ctx, tx, []told{{account: d.AccountID, inbox: d.InboxSeq, id: id, typ: typ}}, now)
	return err
}
