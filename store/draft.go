package store

import (
	"context"
	"fmt"
	"time"
)

// DraftStatus is what became of a draft.
type DraftStatus string

// The states of a draft. Nothing leads out of the last two.
const (
	DraftPending  DraftStatus = "pending"
	DraftSent     DraftStatus = "sent"
	DraftRejected DraftStatus = "rejected"
)

// DraftKind says what a draft is of.
type DraftKind string

// The kinds of drafts.
const (
	DraftNew     DraftKind = "new"
	DraftReply   DraftKind = "reply"
	DraftForward DraftKind = "forward"
)

// Draft is a mail that waits for somebody to approve it, or did. It holds all
// that the mail is made of, so that what becomes of the message that it answers
// or forwards changes nothing.
type Draft struct {
	Seq          int64            `db:"seq"`
	AccountID    int64            `db:"account_id"`
	InboxSeq     int64            `db:"inbox_seq"`
	InboxID      string           `db:"inbox_id"`
	ID           string           `db:"id"`
	Status       DraftStatus      `db:"status"`
	Kind         DraftKind        `db:"kind"`
	Version      int              `db:"version"`   // rises with each edit
	TestMode     bool             `db:"test_mode"` // made by a test key
	SourceID     *string          `db:"source_id"` // of the message that it answers or forwards
	ThreadSeq    *int64           `db:"thread_seq"`
	ThreadID     *string          `db:"thread_id"`  // that a reply joins, or that the sent message is in
	MessageID    *string          `db:"message_id"` // of the message that it became
	Addresses    JSON[Addresses]  `db:"addresses"`
	Subject      string           `db:"subject"`
	Refs         JSON[References] `db:"refs"`
	CreatedBy    string           `db:"created_by"` // id of a key or user
	DecidedBy    *string          `db:"decided_by"` // likewise
	DecidedAt    *Time            `db:"decided_at"`
	RejectReason *string          `db:"reject_reason"`
	ContentAt    Time             `db:"content_at"` // how old the content is; retention counts from here
	ExpiredAt    *Time            `db:"expired_at"` // when the content was deleted
	// RetentionDays is that of the inbox.
	RetentionDays int  `db:"retention_days"`
	CreatedAt     Time `db:"created_at"`
	UpdatedAt     Time `db:"updated_at"`

	// Content is filled in when drafts are read, and nil when it is deleted.
	Content *DraftContent `db:"-"`
}

// DraftContent is what retention deletes of a draft.
type DraftContent struct {
	DraftSeq    int64              `db:"draft_seq"`
	Text        string             `db:"text"` // text and html may be empty, but not both
	HTML        string             `db:"html"`
	Headers     JSON[[][2]string]  `db:"headers"`     // name and value, in their order
	Attachments JSON[[]Attachment] `db:"attachments"` // Part is not used
	Warnings    JSON[[]Warning]    `db:"warnings"`
	BlobKey     *string            `db:"blob_key"` // where the files lie that are too large for the row
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
	d.content_at, d.expired_at, d.created_at, d.updated_at`
	draftColumns        = draftStored + `, i.id AS inbox_id, i.retention_days`
	draftTables         = ` FROM drafts d JOIN inboxes i ON i.seq = d.inbox_seq`
	draftContentColumns = `draft_seq, text, html, headers, attachments, warnings, blob_key`
	listedDraftContent  = `draft_seq, text, headers, attachments, warnings, blob_key` // in a list html is not shown
)

// Draft returns the account's draft with its content, unless its inbox is
// deleted.
func (s *Store) Draft(ctx context.Context, accountID int64, id string) (Draft, error) {
	const q = `SELECT ` + draftColumns + draftTables + ` WHERE d.account_id = $1 AND d.id = $2 AND i.status <> 'deleted'`
	var d Draft
	if err := s.read.GetContext(ctx, &d, q, accountID, id); err != nil {
		return Draft{}, s.wrap(err, "draft")
	}
	one := []Draft{d}
	err := s.fillDrafts(ctx, one, draftContentColumns)
	return one[0], err
}

// DraftFilter says which drafts a list is about. Empty fields match all.
type DraftFilter struct {
	AccountID int64
	InboxSeq  int64    // one inbox, or 0
	InboxIDs  []string // not nil: the only inboxes that the caller may see
	Status    DraftStatus
}

// ListDrafts returns a page of drafts with their content but for its html,
// newest first. A page may hold fewer than the limit and yet not be the last:
// when the drafts say so much that more would be too much to hold.
func (s *Store) ListDrafts(ctx context.Context, f DraftFilter, p Page) (List[Draft], error) {
	scope := fmt.Sprintf("drafts/%d/%d/%t/%q/%q", f.AccountID, f.InboxSeq, f.InboxIDs != nil, f.InboxIDs, f.Status)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Draft]{}, err
	}
	var w where
	w.add("i.status <> 'deleted'")
	w.add("d.account_id = ?", f.AccountID)
	w.add("d.seq < ?", before)
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
	var rows []Draft
	if err := s.read.SelectContext(ctx, &rows, q, w.args...); err != nil {
		return List[Draft]{}, s.wrap(err, "list drafts")
	}
	most, err := s.draftsToHold(ctx, rows[:min(len(rows), p.Limit)])
	if err != nil {
		return List[Draft]{}, err
	}
	l := page(s, scope, most, rows, func(d Draft) position { return position{seq: d.Seq} })
	return l, s.fillDrafts(ctx, l.Rows, listedDraftContent)
}

// PendingDrafts counts the drafts of an account that wait for approval, in those
// of its inboxes alone that have these ids; nil means all.
func (s *Store) PendingDrafts(ctx context.Context, accountID int64, inboxIDs []string) (n int, err error) {
	var w where
	w.add("i.status <> 'deleted'")
	w.add("d.account_id = ?", accountID)
	w.add("d.status = 'pending'") // written out, so that the queue's own index is used
	if inboxIDs != nil {
		w.in("i.id", inboxIDs)
	}
	const q = `SELECT count(*) FROM drafts d JOIN inboxes i ON i.seq = d.inbox_seq`
	err = s.read.GetContext(ctx, &n, q+w.sql(), w.args...)
	return n, s.wrap(err, "count drafts")
}

// draftsToHold is how many of the first drafts go into one page, by what of
// them a list shows: one at least, when there are any.
func (s *Store) draftsToHold(ctx context.Context, ds []Draft) (int, error) {
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
	held := 0
	for i, d := range ds {
		if held += bySeq[d.Seq]; held > pageBytes && i > 0 {
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
