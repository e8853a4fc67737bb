package store

import (
	"bytes"
	"cmp"
	"context"
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

// The states of a draft, which steps says more about.
const (
	DraftPending   DraftStatus = "pending"   // held
	DraftScheduled DraftStatus = "scheduled" // approved by a person, who can undo that until SendAfter
	DraftSent      DraftStatus = "sent"      // queued, or further on
	DraftRejected  DraftStatus = "rejected"  // refused
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
	MessageID    *string              `db:"message_id"` // of the message that it became, or will be while it is scheduled
	Addresses    JSON[mail.Addresses] `db:"addresses"`
	Subject      string               `db:"subject"`
	Refs         JSON[References]     `db:"refs"`
	CreatedBy    string               `db:"created_by"` // id of a key or user
	DecidedBy    *string              `db:"decided_by"` // likewise
	DecidedAt    *Time                `db:"decided_at"`
	SendAfter    *Time                `db:"send_after"` // when it is due, while it is scheduled
	RejectReason *string              `db:"reject_reason"`
	ContentAt    Time                 `db:"content_at"` // how old the content is; retention counts from here
	ExpiredAt    *Time                `db:"expired_at"` // when the content was deleted
	// RetentionDays is the inbox's retention.
	RetentionDays int `db:"retention_days"`
	// Category, Tags and Metadata are those of the email that the draft was, or nil.
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
	Content    *DraftContent `db:"-"`
	messageSeq int64         // of the message that it has just become
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
	d.thread_id, d.message_id, d.addresses, d.subject, d.refs, d.created_by, d.decided_by, d.decided_at, d.send_after, d.reject_reason,
	d.content_at, d.expired_at, d.expires_at, d.on_expiry, d.expiry_by, d.created_at, d.updated_at, d.category, d.tags, d.metadata`
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
	_, err = s.fillDrafts(ctx, one, draftContentColumns)
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
	w := conditions("i.status <> 'deleted' AND d.account_id = ?", f.AccountID)
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
	at := func(d Draft) int64 { return d.Seq }
	l, err := listBySeq(ctx, s, p, scope, "list drafts", `SELECT `+draftColumns+draftTables, w, "d.seq", at)
	if err != nil {
		return l, err
	}
	n, err := s.fillDrafts(ctx, l.Rows, listedDraftContent)
	if err == nil && n < len(l.Rows) {
		l = page(s, scope, n, l.Rows, func(d Draft) position { return position{Seq: d.Seq} })
	}
	return l, err
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

// draftsAtOnce is how many drafts are read with their content at once: half a page, if their
// texts are the largest.
const draftsAtOnce = 4

// fillDrafts reads these columns of the content of drafts, up to pageBytes of text, and
// returns of how many.
func (s *Store) fillDrafts(ctx context.Context, ds []Draft, columns string) (filled int, err error) {
	for size := 0; filled < len(ds) && size <= pageBytes/2; {
		bySeq := map[int64]*Draft{}
		var seqs []int64
		for ; filled < len(ds) && len(seqs) < draftsAtOnce; filled++ {
			d := &ds[filled]
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
			break
		}
		var rows []DraftContent
		if err := selectIn(ctx, s.read, &rows, `SELECT `+columns+` FROM draft_contents WHERE draft_seq IN (?)`, seqs); err != nil {
			return 0, s.wrap(err, "read the contents of drafts")
		}
		for i := range rows {
			bySeq[rows[i].DraftSeq].Content = &rows[i]
			size += len(rows[i].Text) + len(rows[i].HTML)
		}
	}
	return filled, nil
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
func (s *Store) keepDraftFiles(ctx context.Context, files []DraftFile) (kept draftFiles, err error) {
	const what = "keep the attachments of a draft"
	var total int64
	for _, f := range files {
		total += f.Size
	}
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(copyFiles(w, files)) }() // it never fails
	defer func() { _ = r.Close() }()                          // ends the copy
	if total > RawInRow {
		key, err := s.blobs.Put(ctx, r, total)
		return draftFiles{blob: &key}, errIn(what, err)
	}
	kept.row = make([]byte, total)
	_, err = io.ReadFull(r, kept.row)
	return kept, errIn(what, err)
}

// copyFiles writes files one after the other, and holds one open at a time.
func copyFiles(w io.Writer, files []DraftFile) error {
	for _, f := range files {
		r, err := f.Open()
		if err != nil {
			return err
		}
		_, err = io.Copy(w, r)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// OpenDraftFile opens the attachment of a draft that has the number i. It returns
// ErrNotFound if the content is deleted, and ErrDamaged if it is lost. The caller closes it.
func (s *Store) OpenDraftFile(ctx context.Context, d Draft, i int) (io.ReadCloser, error) {
	const what = "attachment of a draft"
	if d.Content == nil {
		return nil, fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	all, err := s.openDraftFiles(ctx, d)
	if err != nil {
		return nil, errIn(what, err)
	}
	var before, total int64
	for n, at := range d.Content.Attachments.V {
		if n < i {
			before += at.Size
		}
		total += at.Size
	}
	size, err := all.Seek(0, io.SeekEnd)
	if err == nil && size != total {
		err = ErrDamaged
	}
	if err == nil {
		_, err = all.Seek(before, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(errIn(what, err), all.Close())
	}
	return limitedFile{io.LimitReader(all, d.Content.Attachments.V[i].Size), all}, nil
}

// openDraftFiles opens all attachments of a draft as one.
func (s *Store) openDraftFiles(ctx context.Context, d Draft) (io.ReadSeekCloser, error) {
	if key := d.Content.BlobKey; key != nil {
		f, err := s.blobs.Open(ctx, *key)
		if errors.Is(err, ErrNotFound) {
			err = ErrDamaged // a row names it
		}
		return f, err
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
	kept  draftFiles
}

// CreateDraft stores a pending draft and returns it as stored. With once, the
// response is cached too. It returns ErrNotFound if the inbox is deleted.
func (s *Store) CreateDraft(ctx context.Context, n NewDraft, once *Once) (d Draft, err error) {
	if n.kept, err = s.keepDraftFiles(ctx, n.Files); err != nil {
		return Draft{}, err
	}
	d, err = transact(ctx, s, "create draft", func(tx *sqlx.Tx) (Draft, error) {
		in, err := s.lockInbox(ctx, tx, n.AccountID, n.InboxID)
		if err != nil {
			return Draft{}, err
		}
		joins := n
		joins.InboxSeq = in.Seq
		if joins.ThreadSeq, joins.ThreadID, err = threadOfDraft(ctx, tx, in.Seq, n.Draft); err != nil {
			return Draft{}, err
		}
		d, err := s.insertDraft(ctx, tx, &joins, NewTime(s.now()))
		if err == nil {
			err = s.insertEvents(ctx, tx, newDraftEvents(d))
		}
		if err == nil {
			err = s.cacheResponse(ctx, tx, once, d.ID, d)
		}
		return d, err
	})
	s.told(err)
	return d, err
}

// insertDraft writes a draft, whose files are stored, with its content.
func (s *Store) insertDraft(ctx context.Context, tx *sqlx.Tx, n *NewDraft, now Time) (Draft, error) {
	const (
		written = `account_id, inbox_seq, id, status, kind, version, test_mode, source_id, thread_seq, thread_id, addresses, subject, refs, ` +
			`created_by, content_at, created_at, updated_at, category, tags, metadata, expires_at, on_expiry, expiry_by`
		keep = `
		INSERT INTO draft_contents (draft_seq, text, html, headers, attachments, warnings, files, blob_key)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	)
	d, c := n.Draft, *n.Content
	c.Text, c.HTML, c.BlobKey = storable(c.Text), storable(c.HTML), n.kept.blob
	if c.Warnings.V == nil {
		c.Warnings.V = []Warning{}
	}
	if err := checkBlobs(now.Time, c.BlobKey); err != nil {
		return d, err
	}
	d.ID, d.Status, d.Version = NewID("drf_", now.Time), DraftPending, 1
	d.Subject, d.CreatedAt, d.UpdatedAt, d.Content = storable(d.Subject), now, now, &c
	if d.ContentAt.IsZero() {
		d.ContentAt = now
	}
	d.OnExpiry = cmp.Or(d.OnExpiry, ExpiryRejects)
	var err error
	if d.Seq, err = insertRow(ctx, tx, "drafts", written, d); err != nil {
		return d, errIn("insert a draft", err)
	}
	c.DraftSeq = d.Seq
	_, err = tx.ExecContext(ctx, keep, c.DraftSeq, c.Text, c.HTML, c.Headers, c.Attachments, c.Warnings, orNullBytes(n.kept.row), c.BlobKey)
	return d, errIn("insert the content of a draft", err)
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
	var found []thread
	if d.SourceID != nil {
		found, err = getAll[thread](ctx, tx, ofSource, *d.SourceID, inboxSeq)
	}
	if err == nil && len(found) == 0 {
		found, err = getAll[thread](ctx, tx, named, *d.ThreadSeq, inboxSeq)
	}
	if err != nil || len(found) == 0 {
		return nil, nil, errIn("thread of the draft", err)
	}
	return &found[0].Seq, &found[0].ID, nil
}

// UpdateDraft lets edit change subject, text, html, expiry and warnings of a pending
// draft, and raises its version if that changes any but the last. It
// returns ErrState if it is not pending any more. An error of edit changes
// nothing; edit may find the content deleted.
func (s *Store) UpdateDraft(ctx context.Context, accountID int64, id string, edit func(*Draft) error) (Draft, error) {
	return s.changeDraft(ctx, Draft{AccountID: accountID, ID: id}, stepEdit, nil, func(d *Draft) error {
		before, said := *d, DraftContent{}
		if d.Content != nil {
			said = *d.Content
		}
		if err := edit(d); err != nil {
			return err
		}
		if d.Content == nil || d.Subject == before.Subject && d.Content.Text == said.Text && d.Content.HTML == said.HTML &&
			d.OnExpiry == before.OnExpiry && deref(d.ExpiryBy) == deref(before.ExpiryBy) && sameTime(d.ExpiresAt, before.ExpiresAt) {
			return errSameDraft
		}
		d.Version++
		return nil
	})
}

func sameTime(a, b *Time) bool { return a == b || a != nil && b != nil && a.Equal(b.Time) }

// RejectDraft rejects a pending draft; it is never sent. by is the user or key
// that decided. It returns ErrState if the draft is not pending any more.
func (s *Store) RejectDraft(ctx context.Context, accountID int64, id, by string, reason *string, once *Once) (Draft, error) {
	return s.changeDraft(ctx, Draft{AccountID: accountID, ID: id}, stepReject, once, func(d *Draft) error {
		return d.refuse(&by, reason)
	})
}

// ExpireDraft rejects a draft of DueDrafts: a pending one whose time is over, or a scheduled
// one that can never be sent. It returns ErrState if the draft has been decided or edited
// since it was read.
func (s *Store) ExpireDraft(ctx context.Context, was Draft, reason string) error {
	on := stepReject
	if was.Status == DraftScheduled {
		on = stepFail
	}
	_, err := s.changeDraft(ctx, was, on, nil, func(d *Draft) error {
		if at := d.DueAt(); d.Version != was.Version || at == nil || at.After(d.UpdatedAt.Time) {
			return fmt.Errorf("draft %s has changed: %w", d.ID, ErrState)
		}
		return d.refuse(nil, &reason)
	})
	return err
}

func (d *Draft) refuse(by, reason *string) error {
	d.DecidedBy, d.DecidedAt, d.RejectReason, d.SendAfter, d.MessageID = by, &d.UpdatedAt, reason, nil, nil
	return nil
}

// draftDue is when a draft is due, or NULL. An index has it for draftWaits.
const (
	draftDue   = `coalesce(d.send_after, d.expires_at)`
	draftWaits = `d.status IN ('pending', 'scheduled')`
)

// draftsDue are the drafts that are due at $1, after the one that was due at $2.
const draftsDue = `SELECT ` + draftColumns + draftTables + ` WHERE ` + draftWaits + ` AND i.status <> 'deleted' AND ` + draftDue + ` <= $1
	AND (` + draftDue + ` > $2 OR ` + draftDue + ` = $2 AND d.seq > $3) ORDER BY ` + draftDue + `, d.seq LIMIT $4`

// DueAt is when the draft is to be sent, or stops waiting; nil for never.
func (d Draft) DueAt() *Time { return cmp.Or(d.SendAfter, d.ExpiresAt) }

// DueDrafts returns pending and scheduled drafts whose time has come, without their
// content: at most limit after the draft after, in their order. The zero draft begins.
func (s *Store) DueDrafts(ctx context.Context, after Draft, limit int) ([]Draft, error) {
	var from Time
	if at := after.DueAt(); at != nil {
		from = *at
	}
	return readAll[Draft](ctx, s, "due drafts", draftsDue, NewTime(s.now()), from, after.Seq, limit)
}

// UndoDraft takes the approval of a scheduled draft back: it is pending again, and waits
// without expiry. It returns ErrState if the draft is not scheduled or is due.
func (s *Store) UndoDraft(ctx context.Context, d Draft) (Draft, error) {
	return s.changeDraft(ctx, d, stepUndo, nil, (*Draft).reopen)
}

// ReturnDraft makes a draft pending again that was approved and that a rule refuses now
// that it is due. why becomes a warning and so a new version, which approvers are told
// about.
func (s *Store) ReturnDraft(ctx context.Context, d Draft, why string) error {
	_, err := s.changeDraft(ctx, d, stepHold, nil, func(d *Draft) error {
		if d.Content != nil {
			d.Version++
			warnings := slices.DeleteFunc(d.Content.Warnings.V, func(w Warning) bool { return w.Code == WarnNotSent })
			d.Content.Warnings.V = append(warnings, Warning{Code: WarnNotSent, Value: storable(why)})
		}
		return d.reopen()
	})
	return err
}

// WarnNotSent is the code of the warning that an approved draft was not sent, and why.
const WarnNotSent = "not_sent"

func (d *Draft) reopen() error {
	d.MessageID, d.SendAfter, d.DecidedBy, d.DecidedAt, d.ExpiresAt = nil, nil, nil, nil, nil
	return nil
}

// DelayDraft puts a scheduled draft off that does not fit under a limit yet.
func (s *Store) DelayDraft(ctx context.Context, d Draft, until Time) error {
	_, err := s.changeDraft(ctx, d, stepDelay, nil, func(d *Draft) error {
		d.SendAfter = &until
		return nil
	})
	return err
}

// changeDraft is moveDraft in a transaction of its own. With once, the response is cached too.
func (s *Store) changeDraft(ctx context.Context, d Draft, on step, once *Once, edit func(*Draft) error) (Draft, error) {
	d, err := transact(ctx, s, string(on)+" draft", func(tx *sqlx.Tx) (Draft, error) {
		moved, err := s.moveDraft(ctx, tx, d.AccountID, d.ID, on, edit)
		if err == nil {
			err = s.cacheResponse(ctx, tx, once, d.ID, moved)
		}
		return moved, err
	})
	s.told(err)
	return d, err
}

// errSameDraft is the result of an edit that changes nothing.
var errSameDraft = errors.New("the draft stays as it is")

// draftEvents are the events of drafts that have come into a state.
var draftEvents = map[outgoing]EventType{outHeld: EventDraftPending, outQueued: EventDraftSent, outRefused: EventDraftRejected}

// moveDraft takes a step with a draft: it keeps others from changing it until the end of
// the transaction, lets edit change the copy that it returns, and saves that with the event
// of the state that the draft comes into. The error is ErrState if the state of the draft
// has no such step.
func (s *Store) moveDraft(ctx context.Context, tx *sqlx.Tx, accountID int64, id string, on step, edit func(*Draft) error) (Draft, error) {
	const (
		lock  = `SELECT ` + draftStored + ` FROM drafts d WHERE d.account_id = $1 AND d.id = $2`
		inbox = `SELECT id FROM inboxes WHERE seq = $1 AND status <> 'deleted'`
		read  = `SELECT ` + draftContentColumns + ` FROM draft_contents WHERE draft_seq = $1`
		save  = `UPDATE drafts SET status = :status, version = :version, subject = :subject, thread_seq = :thread_seq, thread_id = :thread_id,
			message_id = :message_id, decided_by = :decided_by, decided_at = :decided_at, send_after = :send_after,
			reject_reason = :reject_reason, expires_at = :expires_at, on_expiry = :on_expiry, expiry_by = :expiry_by,
			updated_at = :updated_at WHERE seq = :seq`
		keep = `UPDATE draft_contents SET text = :text, html = :html, warnings = :warnings WHERE draft_seq = :draft_seq`
	)
	var d Draft
	if err := tx.GetContext(ctx, &d, lock+s.engine.LockRow(), accountID, id); err != nil {
		return d, s.wrap(err, "draft")
	}
	if err := tx.GetContext(ctx, &d.InboxID, inbox, d.InboxSeq); err != nil {
		return d, s.wrap(err, "inbox of the draft")
	}
	to, err := next(draftStates[d.Status], on)
	if early := on != stepUndo; err == nil && d.Status == DraftScheduled && d.SendAfter.After(s.now()) == early {
		err = ErrState // it is not due yet, or too late for an undo
	}
	if err != nil {
		return d, fmt.Errorf("draft is %s: %w", d.Status, err)
	}
	if d.ExpiredAt == nil {
		d.Content = &DraftContent{}
		if err := tx.GetContext(ctx, d.Content, read, d.Seq); err != nil {
			return d, s.wrap(err, "content of the draft")
		}
	}
	before := d
	d.UpdatedAt = NewTime(s.now())
	for status, state := range draftStates {
		if state == to {
			d.Status = status
		}
	}
	if err := edit(&d); errors.Is(err, errSameDraft) {
		return before, nil
	} else if err != nil {
		return d, err
	}
	d.Subject = storable(d.Subject)
	if _, err := tx.NamedExecContext(ctx, save, d); err != nil {
		return d, errIn("save the draft", err)
	}
	if d.Content != nil && d.Version != before.Version {
		d.Content.Text, d.Content.HTML = storable(d.Content.Text), storable(d.Content.HTML)
		if _, err := tx.NamedExecContext(ctx, keep, d.Content); err != nil {
			return d, errIn("save the content of the draft", err)
		}
	}
	if typ := draftEvents[to]; typ != "" && on != stepDelay {
		return d, s.insertEvents(ctx, tx, []newEvent{draftEvent(d, typ)})
	}
	return d, nil
}

func draftEvent(d Draft, typ EventType) newEvent {
	about := notice{account: d.AccountID, inbox: d.InboxSeq, message: d.messageSeq, typ: typ}
	return newEvent{about, d.TestMode, DraftEventData{DraftID: d.ID, Status: d.Status}}
}

// newDraftEvents are the events of a draft that is created.
func newDraftEvents(d Draft) []newEvent {
	return []newEvent{draftEvent(d, EventDraftCreated), draftEvent(d, EventDraftPending)}
}

// Approval is the decision to send a draft.
type Approval struct {
	DraftID string
	// Version is the approved version.
	Version int
	// By is the id of the key or user who decided, CreatedBy of the one who made the
	// draft.
	By, CreatedBy string
	// MessageID is the id that the message of a scheduled draft will have. Without it, the
	// draft is pending.
	MessageID string
}

// approve takes a step with the draft of an approval. It returns ErrState if the draft is
// not the one that was approved, or its content is deleted.
func (s *Store) approve(ctx context.Context, tx *sqlx.Tx, account int64, a *Approval, on step, edit func(*Draft)) (Draft, error) {
	return s.moveDraft(ctx, tx, account, a.DraftID, on, func(d *Draft) error {
		if d.Version != a.Version || d.ExpiredAt != nil {
			return fmt.Errorf("draft %s has changed: %w", d.ID, ErrState)
		}
		if d.DecidedBy == nil {
			d.DecidedBy, d.DecidedAt = &a.By, &d.UpdatedAt
		}
		edit(d)
		return nil
	})
}

// sendApproved notes that an approved draft has become the message m.
func (s *Store) sendApproved(ctx context.Context, tx *sqlx.Tx, a *Approval, m *Message) error {
	// The message gets the category, tags and metadata of the email that the draft was.
	const keepLabels = `INSERT INTO emails (message_seq, account_id, from_inbox, category, tags, metadata, created_by)
		SELECT cast($2 AS bigint), account_id, inbox_seq, category, tags, metadata, created_by FROM drafts WHERE seq = $1 AND category IS NOT NULL`
	on := stepApprove
	if a.MessageID != "" {
		on = stepDue
	}
	d, err := s.approve(ctx, tx, m.AccountID, a, on, func(d *Draft) {
		d.MessageID, d.ThreadSeq, d.ThreadID, d.SendAfter, d.messageSeq = &m.ID, &m.ThreadSeq, &m.ThreadID, nil, m.Seq
	})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, keepLabels, d.Seq, m.Seq)
	return errIn("keep the labels of the email", err)
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
	return transact(ctx, s, "claim notices of drafts", func(tx *sqlx.Tx) (n DraftNotices, err error) {
		now := NewTime(s.now())
		sent, err := getOne[int](ctx, tx, count, accountID, NewTime(now.Add(-noticeWindow)), now)
		if err != nil || sent > noticesPerMinute {
			return n, err
		}
		ds, err := getAll[Draft](ctx, tx, due, now, accountID, noticesPerMinute-sent+maxDigest)
		if err != nil || len(ds) == 0 {
			return n, err
		}
		each := min(len(ds), noticesPerMinute-sent)
		n.Each, n.Digest = ds[:each], ds[each:]
		if sent += each; len(n.Digest) > 0 {
			sent++
		}
		lease := NewTime(now.Add(noticeLease))
		if err := execIn(ctx, tx, claim, lease, rising(ds, func(d Draft) int64 { return d.Seq })); err != nil {
			return n, err
		}
		_, err = tx.ExecContext(ctx, save, accountID, sent)
		return n, err
	})
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
