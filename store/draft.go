package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
)

// DraftStatus is the state of a draft.
type DraftStatus string

// The states of a draft. Only UndoDraft leads out of DraftSent, and nothing out of
// DraftRejected.
const (
	DraftPending  DraftStatus = "pending"
	DraftSent     DraftStatus = "sent"
	DraftRejected DraftStatus = "rejected"
)

// DraftKind is the kind of message in a draft.
type DraftKind string

// The kinds of drafts.
const (
	DraftNew     DraftKind = "new"
	DraftReply   DraftKind = "reply"
	DraftForward DraftKind = "forward"
)

// DraftExpiry is what happens to a draft that no one has decided in time.
type DraftExpiry string

// What happens to a draft that no one has decided in time.
const (
	ExpiryRejects DraftExpiry = "reject"
	ExpirySends   DraftExpiry = "send"
)

// Draft is a message that waits for approval, or has waited. It holds the
// complete content, independent of the message that it replies to or forwards.
type Draft struct {
	Seq          int64                `db:"seq"`
	AccountID    int64                `db:"account_id"`
	InboxSeq     int64                `db:"inbox_seq"`
	InboxID      string               `db:"inbox_id"`
	ID           string               `db:"id"`
	Status       DraftStatus          `db:"status"`
	Kind         DraftKind            `db:"kind"`
	Version      int                  `db:"version"`   // rises with each edit
	TestMode     bool                 `db:"test_mode"` // made by a test key
	SourceID     *string              `db:"source_id"` // of the message that it replies to or forwards
	ThreadSeq    *int64               `db:"thread_seq"`
	ThreadID     *string              `db:"thread_id"`  // that a reply joins, or that the sent message is in
	MessageID    *string              `db:"message_id"` // of the message that it became
	Addresses    JSON[mail.Addresses] `db:"addresses"`
	Subject      string               `db:"subject"`
	Refs         JSON[References]     `db:"refs"`
	CreatedBy    string               `db:"created_by"` // id of a key or user
	DecidedBy    *string              `db:"decided_by"` // likewise
	DecidedAt    *Time                `db:"decided_at"`
	RejectReason *string              `db:"reject_reason"`
	ContentAt    Time                 `db:"content_at"` // how old the content is; retention counts from here
	ExpiredAt    *Time                `db:"expired_at"` // when the content was deleted
	// RetentionDays is the inbox's retention.
	RetentionDays int `db:"retention_days"`
	// EmailSeq is the scheduled email that the draft replaces, or nil. Category, Tags
	// and Metadata are that email's, or those of an email that became a draft at once.
	EmailSeq *int64                 `db:"email_seq"`
	Category *Category              `db:"category"`
	Tags     *JSON[Labels]          `db:"tags"`
	Metadata *JSON[json.RawMessage] `db:"metadata"`
	// ExpiresAt is when the draft stops waiting, or nil, and OnExpiry what happens then.
	// ExpiryBy is the user or key that chose ExpirySends.
	ExpiresAt *Time       `db:"expires_at"`
	OnExpiry  DraftExpiry `db:"on_expiry"`
	ExpiryBy  *string     `db:"expiry_by"`
	CreatedAt Time        `db:"created_at"`
	UpdatedAt Time        `db:"updated_at"`

	// Content is filled in when drafts are read, and nil when it is deleted.
	Content *DraftContent `db:"-"`
}

// DraftContent is the part of a draft that retention deletes.
type DraftContent struct {
	DraftSeq    int64                   `db:"draft_seq"`
	Text        string                  `db:"text"` // text and html may be empty, but not both
	HTML        string                  `db:"html"`
	Headers     JSON[[][2]string]       `db:"headers"`     // name and value, in their order
	Attachments JSON[[]mail.Attachment] `db:"attachments"` // Part is not used
	Warnings    JSON[[]Warning]         `db:"warnings"`
	BlobKey     *string                 `db:"blob_key"` // where the files lie that are too large for the row
}

// Warning is something that the person who approves a draft should know.
type Warning struct {
	Code  string `json:"code"`
	Value string `json:"value"`          // what it is about, by its code
	Text  string `json:"text,omitempty"` // that was removed or is hidden
	Count int    `json:"count,omitempty"`
}

const (
	draftStored = `d.seq, d.account_id, d.inbox_seq, d.id, d.status, d.kind, d.version, d.test_mode, d.source_id, d.thread_seq,
	d.thread_id, d.message_id, d.addresses, d.subject, d.refs, d.created_by, d.decided_by, d.decided_at, d.reject_reason,
	d.content_at, d.expired_at, d.expires_at, d.on_expiry, d.expiry_by, d.created_at, d.updated_at, d.email_seq,
	coalesce(d.category, (SELECT category FROM emails WHERE message_seq = d.email_seq)) AS category,
	coalesce(d.tags, (SELECT tags FROM emails WHERE message_seq = d.email_seq)) AS tags,
	coalesce(d.metadata, (SELECT metadata FROM emails WHERE message_seq = d.email_seq)) AS metadata`
	draftColumns        = draftStored + `, i.id AS inbox_id, i.retention_days`
	draftTables         = ` FROM drafts d JOIN inboxes i ON i.seq = d.inbox_seq`
	draftContentColumns = `draft_seq, text, html, headers, attachments, warnings, blob_key`
	listedDraftContent  = `draft_seq, text, headers, attachments, warnings, blob_key` // in a list html is not shown
)

// Draft returns the account's draft with its content, unless its inbox is
// deleted.
func (s *Store) Draft(ctx context.Context, accountID int64, id string) (Draft, error) {
	const q = `SELECT ` + draftColumns + draftTables + ` WHERE d.account_id = $1 AND d.id = $2 AND i.status <> 'deleted'`
	d, err := readOne[Draft](ctx, s, "draft", q, accountID, id)
	if err != nil {
		return Draft{}, err
	}
	one := []Draft{d}
	err = s.fillDrafts(ctx, one, draftContentColumns)
	return one[0], err
}

// DraftFilter selects drafts. Empty fields match all.
type DraftFilter struct {
	AccountID int64
	InboxSeq  int64    // one inbox, or 0
	InboxIDs  []string // not nil: the only inboxes that the caller may see
	Status    DraftStatus
}

// ListDrafts returns a page of drafts with their content except its html, newest
// first. A page may have fewer drafts than the limit without being the last, to
// bound memory.
func (s *Store) ListDrafts(ctx context.Context, f DraftFilter, p Page) (List[Draft], error) {
	scope := fmt.Sprintf("drafts/%d/%d/%t/%q/%q", f.AccountID, f.InboxSeq, f.InboxIDs != nil, f.InboxIDs, f.Status)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Draft]{}, err
	}
	w := conditions("i.status <> 'deleted' AND d.account_id = ? AND d.seq < ?", f.AccountID, before)
	if f.InboxSeq != 0 {
		w.add("d.inbox_seq = ?", f.InboxSeq)
	}
	if f.InboxIDs != nil {
		w.in("i.id", f.InboxIDs)
	}
	switch f.Status {
	case "":
	case DraftPending:
		w.add("d.status = 'pending'") // written out, so that the queue's own index is used
	default:
		w.add("d.status = ?", f.Status)
	}
	q := `SELECT ` + draftColumns + draftTables + w.sql() + ` ORDER BY d.seq DESC LIMIT ` + w.arg(p.Limit+1)
	rows, err := readAll[Draft](ctx, s, "list drafts", q, w.args...)
	if err != nil {
		return List[Draft]{}, err
	}
	most, err := s.draftsInPage(ctx, rows[:min(len(rows), p.Limit)])
	if err != nil {
		return List[Draft]{}, err
	}
	l := page(s, scope, most, rows, func(d Draft) position { return position{Seq: d.Seq} })
	return l, s.fillDrafts(ctx, l.Rows, listedDraftContent)
}

// PendingDrafts counts the drafts of an account that wait for approval, in those
// of its inboxes alone that have these ids; nil means all.
func (s *Store) PendingDrafts(ctx context.Context, accountID int64, inboxIDs []string) (int, error) {
	// The status is written out, so that the queue's own index is used.
	w := conditions("i.status <> 'deleted' AND d.account_id = ? AND d.status = 'pending'", accountID)
	if inboxIDs != nil {
		w.in("i.id", inboxIDs)
	}
	return readOne[int](ctx, s, "count drafts", `SELECT count(*)`+draftTables+w.sql(), w.args...)
}

// Waiting returns how many drafts of the account wait for approval, and whether sending
// is stopped, with one query.
func (s *Store) Waiting(ctx context.Context, accountID int64) (drafts int, stopped bool, err error) {
	const q = `SELECT (SELECT count(*) FROM drafts d JOIN inboxes i ON i.seq = d.inbox_seq
			WHERE i.status <> 'deleted' AND d.account_id = $1 AND d.status = 'pending') AS drafts,
		EXISTS (SELECT 1 FROM stops WHERE account_id = $1 AND scope = $2) AS stopped`
	var row struct {
		Drafts  int  `db:"drafts"`
		Stopped bool `db:"stopped"`
	}
	err = s.read.GetContext(ctx, &row, q, accountID, StopAccount)
	return row.Drafts, row.Stopped, s.wrap(err, "what waits")
}

// draftsInPage returns how many of the first drafts go into one page, by the size of
// them a list shows: one at least, when there are any.
func (s *Store) draftsInPage(ctx context.Context, ds []Draft) (int, error) {
	const q = `SELECT draft_seq, octet_length(text) + octet_length(headers) + octet_length(attachments) + octet_length(warnings) AS bytes
		FROM draft_contents WHERE draft_seq IN (?)`
	var sizes []struct {
		DraftSeq int64 `db:"draft_seq"`
		Bytes    int   `db:"bytes"`
	}
	if len(ds) > 0 {
		if err := selectIn(ctx, s.read, &sizes, q, rising(ds, func(d Draft) int64 { return d.Seq })); err != nil {
			return 0, s.wrap(err, "sizes of drafts")
		}
	}
	bySeq := make(map[int64]int, len(sizes))
	for _, size := range sizes {
		bySeq[size.DraftSeq] = size.Bytes
	}
	size := 0
	for i, d := range ds {
		if size += bySeq[d.Seq]; size > pageBytes && i > 0 {
			return i, nil
		}
	}
	return len(ds), nil
}

// fillDrafts reads these columns of the content of drafts.
func (s *Store) fillDrafts(ctx context.Context, ds []Draft, columns string) error {
	bySeq := make(map[int64]*Draft, len(ds))
	var seqs []int64
	for i := range ds {
		d := &ds[i]
		end := NewTime(d.ContentAt.Add(time.Duration(d.RetentionDays) * 24 * time.Hour))
		if d.ExpiredAt == nil && d.RetentionDays > 0 && !s.now().Before(end.Time) { // and is about to be deleted
			d.ExpiredAt = &end
		}
		if d.ExpiredAt == nil {
			bySeq[d.Seq] = d
			seqs = append(seqs, d.Seq)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	var rows []DraftContent
	if err := selectIn(ctx, s.read, &rows, `SELECT `+columns+` FROM draft_contents WHERE draft_seq IN (?)`, seqs); err != nil {
		return s.wrap(err, "read the contents of drafts")
	}
	for i := range rows {
		bySeq[rows[i].DraftSeq].Content = &rows[i]
	}
	return nil
}

// DraftFile is an attachment of a new draft.
type DraftFile struct {
	Size int64
	Open func() (io.ReadCloser, error)
}

// draftFiles are the attachments of a new draft, one after the other: small ones
// together in the row, large ones in a blob.
type draftFiles struct {
	row  []byte
	blob *string
}

// keepDraftFiles stores the attachments of a draft that is about to be created.
// A blob is durable when it returns; one that no row comes to name is swept away
// later.
func (s *Store) keepDraftFiles(ctx context.Context, files []DraftFile) (_ draftFiles, err error) {
	const what = "keep the attachments of a draft"
	all := &fileSequence{files: files}
	defer func() { err = errors.Join(err, all.Close()) }()
	var total int64
	for _, f := range files {
		total += f.Size
	}
	if total > RawInRow {
		key, err := s.blobs.Put(ctx, all, total)
		return draftFiles{blob: &key}, errIn(what, err)
	}
	row := make([]byte, total)
	_, err = io.ReadFull(all, row)
	return draftFiles{row: row}, errIn(what, err)
}

// fileSequence reads files one after the other, and holds one open at a time.
type fileSequence struct {
	files []DraftFile // that are still to be opened
	open  io.ReadCloser
}

func (q *fileSequence) Read(p []byte) (int, error) {
	for {
		if q.open == nil {
			if len(q.files) == 0 {
				return 0, io.EOF
			}
			var err error
			if q.open, err = q.files[0].Open(); err != nil {
				q.open = nil
				return 0, err
			}
			q.files = q.files[1:]
		}
		n, err := q.open.Read(p)
		if errors.Is(err, io.EOF) {
			err = q.Close()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (q *fileSequence) Close() error {
	if q.open == nil {
		return nil
	}
	open := q.open
	q.open = nil
	return open.Close()
}

// OpenDraftFile opens the attachment of a draft that has the number i. It returns
// ErrNotFound if the content is deleted. The caller closes it.
func (s *Store) OpenDraftFile(ctx context.Context, d Draft, i int) (io.ReadCloser, error) {
	const what = "attachment of a draft"
	if d.Content == nil {
		return nil, fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	all, err := s.openDraftFiles(ctx, d)
	if err != nil {
		return nil, errIn(what, err)
	}
	var before int64
	for _, at := range d.Content.Attachments.V[:i] {
		before += at.Size
	}
	if _, err := all.Seek(before, io.SeekStart); err != nil {
		return nil, errors.Join(errIn(what, err), all.Close())
	}
	return limitedFile{io.LimitReader(all, d.Content.Attachments.V[i].Size), all}, nil
}

// openDraftFiles opens all attachments of a draft as one.
func (s *Store) openDraftFiles(ctx context.Context, d Draft) (io.ReadSeekCloser, error) {
	if key := d.Content.BlobKey; key != nil {
		return s.blobs.Open(ctx, *key)
	}
	var all []byte
	err := s.read.GetContext(ctx, &all, `SELECT files FROM draft_contents WHERE draft_seq = $1`, d.Seq)
	return nopCloser{bytes.NewReader(all)}, s.wrap(err, "files")
}

type limitedFile struct {
	io.Reader
	io.Closer
}

// NewDraft is a draft to be stored.
type NewDraft struct {
	// Draft holds AccountID, InboxID, Kind, TestMode, SourceID, ThreadSeq,
	// ThreadID, Addresses, Subject, Refs, CreatedBy and Content, and ContentAt
	// when the content is older than the draft, and may hold ExpiresAt, OnExpiry and
	// ExpiryBy. Of an email, it also holds Category,
	// Tags and Metadata. The thread is that of the source
	// when the draft is stored. Everything else is the store's to
	// fill in, in the copy that it returns.
	Draft
	// Files are the bytes of Content.Attachments, in their order.
	Files []DraftFile
}

// CreateDraft stores a pending draft and returns it as stored. With once, the
// response is cached too. It returns ErrNotFound if the inbox is deleted.
func (s *Store) CreateDraft(ctx context.Context, n NewDraft, once *Once) (Draft, error) {
	files, err := s.keepDraftFiles(ctx, n.Files)
	if err != nil {
		return Draft{}, err
	}
	d := (&preparedDraft{NewDraft: n, files: files}).row(NewTime(s.now()))
	err = s.inTx(ctx, "create draft", func(tx *sqlx.Tx) error {
		in, err := s.lockInbox(ctx, tx, d.AccountID, d.InboxID)
		if err != nil {
			return err
		}
		d.InboxSeq = in.Seq
		if err := checkBlobs(s.now(), d.Content.BlobKey); err != nil {
			return err
		}
		if d.ThreadSeq, d.ThreadID, err = threadOfDraft(ctx, tx, in.Seq, n.Draft); err != nil {
			return err
		}
		if err := insertDraft(ctx, tx, &d, files.row); err != nil {
			return err
		}
		if err := s.draftEvents(ctx, tx, d, EventDraftCreated, EventDraftPending); err != nil {
			return err
		}
		return s.cacheResponse(ctx, tx, once, d.ID, d)
	})
	return s.announced(d, err)
}

func (p *preparedDraft) row(now Time) Draft {
	d, c := p.Draft, *p.Content
	c.Text, c.HTML, c.BlobKey = storable(c.Text), storable(c.HTML), p.files.blob
	if c.Warnings.V == nil {
		c.Warnings.V = []Warning{}
	}
	d.ID, d.Status, d.Version = NewID("drf_", now.Time), DraftPending, 1
	d.Subject, d.CreatedAt, d.UpdatedAt, d.Content = storable(d.Subject), now, now, &c
	if d.ContentAt.IsZero() {
		d.ContentAt = now
	}
	if d.OnExpiry == "" {
		d.OnExpiry = ExpiryRejects
	}
	return d
}

// insertDraft writes a draft, which gets its number, with its content and the
// files that lie in the row.
func insertDraft(ctx context.Context, tx *sqlx.Tx, d *Draft, files []byte) error {
	const q = `
		INSERT INTO drafts (account_id, inbox_seq, id, status, kind, version, test_mode, source_id, thread_seq, thread_id, addresses,
			subject, refs, created_by, content_at, created_at, updated_at, email_seq, category, tags, metadata, expires_at, on_expiry, expiry_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16, $17, $18, $19, $20, $21, $22, $23)
		RETURNING seq`
	const keep = `
		INSERT INTO draft_contents (draft_seq, text, html, headers, attachments, warnings, files, blob_key)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	err := tx.GetContext(ctx, &d.Seq, q, d.AccountID, d.InboxSeq, d.ID, d.Status, d.Kind, d.Version, d.TestMode, d.SourceID, d.ThreadSeq,
		d.ThreadID, d.Addresses, d.Subject, d.Refs, d.CreatedBy, d.ContentAt, d.CreatedAt, d.EmailSeq, d.Category, d.Tags, d.Metadata,
		d.ExpiresAt, d.OnExpiry, d.ExpiryBy)
	if err != nil {
		return err
	}
	c := d.Content
	c.DraftSeq = d.Seq
	_, err = tx.ExecContext(ctx, keep, c.DraftSeq, c.Text, c.HTML, c.Headers, c.Attachments, c.Warnings, orNullBytes(files), c.BlobKey)
	return err
}

// announced is the result of a call that has written an event about d. It wakes
// waiting goroutines.
func (s *Store) announced(d Draft, err error) (Draft, error) {
	if err != nil {
		return Draft{}, err
	}
	s.changed([]topic{{kind: topicEvents}, {kind: topicWebhooks}}, 1)
	return d, nil
}

// threadOfDraft reads again which thread a draft that names one is to join: since
// its message was checked, that thread may have become part of another. There
// is none any more when the thread is deleted. The inbox is locked.
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

// UpdateDraft lets edit change subject, text, html, expiry and warnings of a pending
// draft, and raises its version if that changes any but the last. It
// returns ErrState if it is not pending any more. An error of edit changes
// nothing and is returned unchanged; edit may find the content deleted.
func (s *Store) UpdateDraft(ctx context.Context, accountID int64, id string, edit func(*Draft) error) (Draft, error) {
	const save = `UPDATE drafts SET subject = $2, version = $3, updated_at = $4, expires_at = $5, on_expiry = $6, expiry_by = $7 WHERE seq = $1`
	const keep = `UPDATE draft_contents SET text = $2, html = $3, warnings = $4 WHERE draft_seq = $1`
	var d Draft
	var refused error
	err := s.inTx(ctx, "update draft", func(tx *sqlx.Tx) error {
		var err error
		if d, err = s.lockPendingDraft(ctx, tx, accountID, id); err != nil {
			return err
		}
		before, said := d, DraftContent{}
		if d.Content != nil {
			said = *d.Content
		}
		if refused = edit(&d); refused != nil {
			return refused
		}
		if d.Content == nil || d.Subject == before.Subject && d.Content.Text == said.Text && d.Content.HTML == said.HTML &&
			d.OnExpiry == before.OnExpiry && deref(d.ExpiryBy) == deref(before.ExpiryBy) && sameTime(d.ExpiresAt, before.ExpiresAt) {
			return nil
		}
		d.Version, d.UpdatedAt, d.Subject = d.Version+1, NewTime(s.now()), storable(d.Subject)
		if _, err := tx.ExecContext(ctx, save, d.Seq, d.Subject, d.Version, d.UpdatedAt, d.ExpiresAt, d.OnExpiry, d.ExpiryBy); err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx, keep, d.Seq, storable(d.Content.Text), storable(d.Content.HTML), d.Content.Warnings); err != nil {
			return err
		}
		return s.draftEvents(ctx, tx, d, EventDraftPending)
	})
	if refused != nil {
		return Draft{}, refused
	}
	return s.announced(d, err)
}

// RejectDraft rejects a pending draft; it is never sent. by is the user or key
// that decided. It returns ErrState if the draft is not pending any more.
func (s *Store) RejectDraft(ctx context.Context, accountID int64, id, by string, reason *string, once *Once) (Draft, error) {
	return s.rejectDraft(ctx, accountID, id, &by, reason, once, func(Draft) error { return nil })
}

// ExpireDraft rejects a draft of DueDrafts. It returns ErrState if the draft has been
// decided or edited since it was read.
func (s *Store) ExpireDraft(ctx context.Context, d Draft, reason string) error {
	_, err := s.rejectDraft(ctx, d.AccountID, d.ID, nil, &reason, nil, func(now Draft) error {
		if now.Version != d.Version || now.ExpiresAt == nil || now.ExpiresAt.After(s.now()) {
			return fmt.Errorf("draft %s: %w", d.ID, ErrState)
		}
		return nil
	})
	return err
}

// DueDrafts returns pending drafts whose time has come, without their content: at most
// limit after the draft after, in their order. The zero draft begins.
func (s *Store) DueDrafts(ctx context.Context, after Draft, limit int) ([]Draft, error) {
	const q = `SELECT ` + draftColumns + draftTables + ` WHERE d.status = 'pending' AND i.status <> 'deleted' AND d.expires_at <= $1
		AND (d.expires_at > $2 OR d.expires_at = $2 AND d.seq > $3) ORDER BY d.expires_at, d.seq LIMIT $4`
	var from Time
	if after.ExpiresAt != nil {
		from = *after.ExpiresAt
	}
	return readAll[Draft](ctx, s, "due drafts", q, NewTime(s.now()), from, after.Seq, limit)
}

func sameTime(a, b *Time) bool { return a == b || a != nil && b != nil && a.Equal(b.Time) }

// rejectDraft rejects a pending draft unless check refuses that.
func (s *Store) rejectDraft(ctx context.Context, accountID int64, id string, by, reason *string, once *Once, check func(Draft) error) (Draft, error) {
	const q = `UPDATE drafts SET status = $2, decided_by = $3, decided_at = $4, reject_reason = $5, updated_at = $4 WHERE seq = $1`
	var d Draft
	err := s.inTx(ctx, "reject draft", func(tx *sqlx.Tx) error {
		var err error
		if d, err = s.lockPendingDraft(ctx, tx, accountID, id); err != nil {
			return err
		}
		if err := check(d); err != nil {
			return err
		}
		now := NewTime(s.now())
		d.Status, d.DecidedBy, d.DecidedAt, d.RejectReason, d.UpdatedAt = DraftRejected, by, &now, reason, now
		if _, err := tx.ExecContext(ctx, q, d.Seq, d.Status, d.DecidedBy, d.DecidedAt, d.RejectReason); err != nil {
			return err
		}
		if err := s.draftEvents(ctx, tx, d, EventDraftRejected); err != nil {
			return err
		}
		return s.cacheResponse(ctx, tx, once, d.ID, d)
	})
	return s.announced(d, err)
}

// UndoMargin is how much longer a message waits than its approval can be undone, so
// that no node has claimed it by then.
const UndoMargin = time.Second

// UndoDraft makes a draft pending again that was approved less than within ago, and
// deletes its message, which then counts against no budget. The draft then waits
// without expiry. It returns ErrState if the draft is not approved, if that was
// earlier, or if a node has claimed the message.
func (s *Store) UndoDraft(ctx context.Context, d Draft, within time.Duration) (Draft, error) {
	const (
		undo = `UPDATE drafts SET status = 'pending', message_id = NULL, decided_by = NULL, decided_at = NULL, updated_at = $4, expires_at = NULL,
			thread_seq = CASE WHEN kind = 'new' THEN NULL ELSE thread_seq END, thread_id = CASE WHEN kind = 'new' THEN NULL ELSE thread_id END
			WHERE seq = $1 AND status = 'sent' AND message_id = $2 AND decided_at > $3 AND expired_at IS NULL`
		keep = `UPDATE idempotency SET resource_id = $2 WHERE resource_id = $1`
	)
	if d.Status != DraftSent || d.MessageID == nil {
		return Draft{}, fmt.Errorf("draft is %s: %w", d.Status, ErrState)
	}
	var blobs []string
	err := s.inTx(ctx, "undo approval", func(tx *sqlx.Tx) error {
		m, err := s.lockApprovedMessage(ctx, tx, d)
		if err != nil {
			return err
		}
		// A retry of the approval gets its response, and does not approve again.
		if _, err := tx.ExecContext(ctx, keep, m.ID, d.ID); err != nil {
			return errIn("keep the cached response", err)
		}
		now := s.now()
		if err := oneRow("draft "+d.ID, ErrState)(tx.ExecContext(ctx, undo, d.Seq, m.ID, NewTime(now.Add(-within)), NewTime(now))); err != nil {
			return err
		}
		if blobs, err = s.deleteMessage(ctx, tx, m); err != nil {
			return err
		}
		if err := uncount(ctx, tx, m.Seq); err != nil {
			return err
		}
		d.Status = DraftPending
		return s.draftEvents(ctx, tx, d, EventDraftPending)
	})
	if _, err := s.announced(d, err); err != nil {
		return Draft{}, err
	}
	s.sweeps.unscrubbed.Store(true)
	if _, err := s.removeUnnamed(ctx, blobs); err != nil {
		s.log.WarnContext(ctx, "blob left to be swept", "draft_id", d.ID, "error", err)
	}
	return s.Draft(ctx, d.AccountID, d.ID)
}

// lockApprovedMessage locks the message of an approved draft, its recipients and its
// inbox, in the order in which a result is recorded, so that no node can claim the message. It returns
// ErrState if one has, or if the message is deleted.
func (s *Store) lockApprovedMessage(ctx context.Context, tx *sqlx.Tx, d Draft) (Message, error) {
	const (
		account    = `SELECT seq FROM accounts WHERE seq = $1` // as decide does, so that limits are exact
		message    = `SELECT seq, inbox_seq FROM messages WHERE account_id = $1 AND id = $2`
		recipients = `SELECT fence FROM recipients WHERE message_seq = $1 ORDER BY seq`
	)
	m := Message{AccountID: d.AccountID, ID: *d.MessageID, InboxID: d.InboxID}
	var seq int64
	if err := tx.GetContext(ctx, &seq, account+s.engine.LockRow(), d.AccountID); err != nil {
		return m, errIn("lock the account", err)
	}
	err := tx.GetContext(ctx, &m, message+s.engine.LockRow(), d.AccountID, m.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return m, fmt.Errorf("message %s is deleted: %w", m.ID, ErrState)
	}
	if err != nil {
		return m, errIn("lock the message", err)
	}
	var fences []int64
	if err := tx.SelectContext(ctx, &fences, recipients+s.engine.LockRow(), m.Seq); err != nil {
		return m, errIn("lock the recipients", err)
	}
	if slices.ContainsFunc(fences, func(fence int64) bool { return fence > 0 }) {
		return m, fmt.Errorf("message %s is claimed: %w", m.ID, ErrState)
	}
	_, err = s.lockInbox(ctx, tx, d.AccountID, d.InboxID)
	return m, err
}

// lockPendingDraft reads a draft with its content and keeps others from changing
// it until the end of the transaction. It returns ErrState if it is not pending.
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

func (s *Store) draftEvents(ctx context.Context, tx *sqlx.Tx, d Draft, types ...EventType) error {
	return s.insertEvents(ctx, tx, each(types, func(typ EventType) newEvent { return draftEvent(d, typ) }))
}

func draftEvent(d Draft, typ EventType) newEvent {
	return newEvent{notice{account: d.AccountID, inbox: d.InboxSeq, typ: typ}, d.TestMode, DraftEventData{DraftID: d.ID, Status: d.Status}}
}

// Approval is the decision to send a draft.
type Approval struct {
	// DraftSeq and DraftID are the draft's.
	DraftSeq int64
	DraftID  string
	// Version is the approved version.
	Version int
	// By is the id of the key or user who decided, CreatedBy of the one who made the
	// draft.
	By, CreatedBy string
}

// keepLabels gives the message of an approved draft the category, tags and metadata
// of the email that the draft replaces.
const keepLabels = `
	INSERT INTO emails (message_seq, account_id, from_inbox, category, tags, metadata, created_by)
	SELECT cast($2 AS bigint), d.account_id, coalesce(e.from_inbox, d.inbox_seq), coalesce(e.category, d.category), coalesce(e.tags, d.tags),
	       coalesce(e.metadata, d.metadata), coalesce(e.created_by, d.created_by)
	  FROM drafts d LEFT JOIN emails e ON e.message_seq = d.email_seq WHERE d.seq = $1 AND coalesce(e.category, d.category) IS NOT NULL`

const approveDraft = `
	UPDATE drafts
	   SET status = 'sent', message_id = $3, thread_seq = $4, thread_id = $5, decided_by = $6, decided_at = $7, updated_at = $7
	 WHERE seq = $1 AND version = $2 AND status = 'pending' AND expired_at IS NULL`

// approve notes that a draft has become the message m.
func (s *Store) approve(ctx context.Context, tx *sqlx.Tx, a *Approval, m *Message, now Time) error {
	err := oneRow("draft "+a.DraftID, ErrState)(tx.ExecContext(ctx, approveDraft, a.DraftSeq, a.Version, m.ID, m.ThreadSeq, m.ThreadID, a.By, now))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, keepLabels, a.DraftSeq, m.Seq); err != nil {
		return errIn("keep the labels of the email", err)
	}
	about := notice{account: m.AccountID, inbox: m.InboxSeq, message: m.Seq, typ: EventDraftSent}
	return s.insertEvents(ctx, tx, []newEvent{{about, m.TestMode, DraftEventData{DraftID: a.DraftID, Status: DraftSent}}})
}

// Notices of an account within a minute: so many drafts get one each, then one notice
// has all others.
const (
	noticesPerMinute = 5
	noticeWindow     = time.Minute
	// noticeLease is how long a node has to send what it has claimed.
	noticeLease = 2 * time.Minute
	// maxDigest is how many drafts one notice has.
	maxDigest = 100
)

// DraftNotices are pending drafts, without their content, that an account's approvers
// do not know yet.
type DraftNotices struct {
	Each   []Draft // with one notice each
	Digest []Draft // with one notice for all
}

// toAnnounce selects the drafts whose notices are due at $1. Its first condition is that
// of the index.
const toAnnounce = draftTables + ` WHERE d.status = 'pending' AND (d.notice_version < d.version OR d.notice_due IS NOT NULL)
	AND (d.notice_version < d.version OR d.notice_due <= $1) AND NOT d.test_mode AND i.status <> 'deleted'`

// AccountsToNotify returns the accounts with drafts that their approvers do not know
// yet. A draft is announced once in each version, and not if a test key made it.
func (s *Store) AccountsToNotify(ctx context.Context) ([]int64, error) {
	const q = `SELECT DISTINCT d.account_id` + toAnnounce + ` ORDER BY d.account_id`
	return readAll[int64](ctx, s, "accounts with new drafts", q, NewTime(s.now()))
}

// ClaimDraftNotices returns the drafts to announce now. No other node gets the same
// ones, unless DraftsAnnounced does not report them within noticeLease.
func (s *Store) ClaimDraftNotices(ctx context.Context, accountID int64) (DraftNotices, error) {
	const (
		count = `UPDATE accounts SET notices = CASE WHEN notices_from > $2 THEN notices ELSE 0 END,
			notices_from = CASE WHEN notices_from > $2 THEN notices_from ELSE $3 END WHERE seq = $1 RETURNING notices`
		due   = `SELECT ` + draftColumns + toAnnounce + ` AND d.account_id = $2 ORDER BY d.seq LIMIT $3`
		claim = `UPDATE drafts SET notice_version = version, notice_due = ? WHERE seq IN (?)`
		save  = `UPDATE accounts SET notices = $2 WHERE seq = $1`
	)
	var n DraftNotices
	err := s.inTx(ctx, "claim notices of drafts", func(tx *sqlx.Tx) error {
		now := NewTime(s.now())
		var sent int
		if err := tx.GetContext(ctx, &sent, count, accountID, NewTime(now.Add(-noticeWindow)), now); err != nil {
			return s.wrap(err, "account")
		}
		if sent > noticesPerMinute {
			return nil
		}
		var ds []Draft
		if err := tx.SelectContext(ctx, &ds, due, now, accountID, noticesPerMinute-sent+maxDigest); err != nil || len(ds) == 0 {
			return err
		}
		each := min(len(ds), noticesPerMinute-sent)
		n.Each, n.Digest = ds[:each], ds[each:]
		if sent += each; len(n.Digest) > 0 {
			sent++
		}
		lease := NewTime(now.Add(noticeLease))
		if err := execIn(ctx, tx, claim, lease, rising(ds, func(d Draft) int64 { return d.Seq })); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, save, accountID, sent)
		return err
	})
	return n, err
}

// DraftsAnnounced records that the notices of claimed drafts are sent.
func (s *Store) DraftsAnnounced(ctx context.Context, ds ...Draft) error {
	const q = `UPDATE drafts SET notice_due = NULL WHERE seq = $1 AND notice_version = $2`
	return s.inTx(ctx, "record notices of drafts", func(tx *sqlx.Tx) error {
		for _, d := range ds {
			if _, err := tx.ExecContext(ctx, q, d.Seq, d.Version); err != nil {
				return err
			}
		}
		return nil
	})
}
