package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	emailColumns = `m.seq, m.account_id, m.id, m.direction, m.status, m.test_mode, m.from_email, m.addresses, m.subject, m.header_id, m.refs,
		m.automated, m.size, m.created_at, m.sent_at, m.delivered_at, m.expired_at, m.settled_at, e.from_inbox, e.batch_id, e.category, e.tags, e.metadata,
		e.scheduled_at, e.opened_at`
	emailTables = ` FROM emails e JOIN messages m ON m.seq = e.message_seq`
)

// EmailFilter says which emails are wanted. All that is set must match.
type EmailFilter struct {
	AccountID int64
	// InboxIDs are the only inboxes that emails may be sent from; nil means that
	// any sender will do.
	InboxIDs []string
	Status   MessageStatus
	// Tags are names and values of which the email has one; nil means any.
	Tags    [][2]string
	BatchID string
}

func (f *EmailFilter) scope() string {
	return fmt.Sprintf("emails/%d/%t/%q/%q/%q/%q", f.AccountID, f.InboxIDs != nil, f.InboxIDs, f.Status, f.Tags, f.BatchID)
}

// Email returns the account's email with its content, unless it is sent from
// another inbox than those of a list that is not nil.
func (s *Store) Email(ctx context.Context, accountID int64, inboxIDs []string, id string) (Email, error) {
	w := &where{}
	w.add("m.account_id = ?", accountID)
	w.add("m.id = ?", id)
	f := EmailFilter{AccountID: accountID, InboxIDs: inboxIDs}
	f.senders(w, "e.message_seq")
	var e Email
	if err := s.reads.One(ctx, &e, `SELECT `+emailColumns+emailTables+w.sql(), w.args...); err != nil {
		return Email{}, s.wrap(err, "email")
	}
	s.expireRead(&e.Message)
	one := []Message{e.Message}
	if err := s.fill(ctx, one); err != nil {
		return Email{}, err
	}
	e.Message = one[0]
	e.show()
	return e, nil
}

// ListEmails returns a page of emails with their content, newest first. As of
// messages, a page may hold fewer than the limit and yet not be the last.
func (s *Store) ListEmails(ctx context.Context, f EmailFilter, p Page) (List[Email], error) {
	scope := f.scope()
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Email]{}, err
	}
	seqs, end, err := s.scanEmails(ctx, &f, before, p.Limit)
	if err != nil {
		return List[Email]{}, err
	}
	rows, err := s.emailsBySeq(ctx, seqs)
	if err != nil {
		return List[Email]{}, err
	}
	ms := make([]Message, len(rows))
	for i := range rows {
		ms[i] = rows[i].Message
	}
	n, err := s.fillPage(ctx, ms)
	if err != nil {
		return List[Email]{}, err
	}
	if n < len(rows) {
		end = rows[n-1].Seq
	}
	l := List[Email]{Rows: rows[:n]}
	for i := range l.Rows {
		l.Rows[i].Message = ms[i]
		l.Rows[i].show()
	}
	if end != 0 {
		l.Cursor = s.cursors.make(scope, position{seq: end})
	}
	return l, nil
}

// stream are the emails that the filter may let pass, in the order of an index.
func (f *EmailFilter) stream(w *where, before int64) string {
	w.add("account_id = ?", f.AccountID)
	w.add("message_seq < ?", before)
	seq, table := "message_seq", "emails"
	switch {
	case f.BatchID != "":
		w.add("batch_id = ?", f.BatchID)
	case f.Tags != nil:
		table = "email_tags"
		pairs, args := f.tagged()
		w.add(pairs, args...)
		if len(f.Tags) > 1 {
			seq = "DISTINCT message_seq"
		}
	}
	return `SELECT ` + seq + ` FROM ` + table + w.sql() + ` ORDER BY message_seq DESC`
}

// add adds the conditions that the stream leaves open, of the email whose number
// is seq, and says whether there are any.
func (f *EmailFilter) add(w *where, seq string) bool {
	n := len(w.conds)
	tried := "EXISTS (SELECT 1 FROM recipients r WHERE r.message_seq = " + seq + " AND r.status = 'queued' AND r.attempts > 0)"
	stored := "(SELECT m.status FROM messages m WHERE m.seq = " + seq + ") = ?"
	switch f.Status {
	case "":
	case MessageQueued:
		w.add(stored, MessageQueued)
		w.add("NOT " + tried)
	case EmailSending:
		w.add(stored, MessageQueued)
		w.add(tried)
	default:
		w.add(stored, f.Status)
	}
	if f.BatchID != "" && f.Tags != nil {
		pairs, args := f.tagged()
		w.add("EXISTS (SELECT 1 FROM email_tags WHERE account_id = ? AND message_seq = "+seq+" AND "+pairs+")",
			append([]any{f.AccountID}, args...)...)
	}
	f.senders(w, seq)
	return len(w.conds) > n
}

// tagged is the condition that a row of email_tags holds one of the tags.
func (f *EmailFilter) tagged() (cond string, args []any) {
	ors := make([]string, len(f.Tags))
	for i, tag := range f.Tags {
		ors[i] = "name = ? AND value = ?"
		args = append(args, tag[0], tag[1])
	}
	return "(" + strings.Join(ors, " OR ") + ")", args
}

// senders adds the condition that the email is sent from one of the inboxes.
func (f *EmailFilter) senders(w *where, seq string) {
	if f.InboxIDs == nil {
		return
	}
	inner := &where{args: w.args}
	inner.add("x.message_seq = " + seq)
	inner.add("i.status <> 'deleted'")
	inner.in("i.id", f.InboxIDs)
	w.args = inner.args
	w.add("EXISTS (SELECT 1 FROM emails x JOIN inboxes i ON i.seq = x.from_inbox" + inner.sql() + ")")
}

// scanEmails returns the numbers of the newest emails that match, at most limit,
// and where the next page goes on, 0 for the end of the list.
func (s *Store) scanEmails(ctx context.Context, f *EmailFilter, before int64, limit int) (seqs []int64, end int64, err error) {
	inner := &where{}
	stream := f.stream(inner, before)
	outer := &where{args: inner.args}
	most := limit + 1
	if f.add(outer, "s.message_seq") {
		most = max(most, s.bounds.listScan)
	}
	// Both databases go through the inner rows in their order and stop when they
	// have enough.
	q := `SELECT s.message_seq FROM (` + stream + ` LIMIT ` + strconv.Itoa(most) + `) s` + outer.sql() + ` LIMIT ` + outer.arg(limit+1)
	if err := s.reads.All(ctx, &seqs, q, outer.args...); err != nil {
		return nil, 0, s.wrap(err, "list emails")
	}
	if len(seqs) > limit {
		return seqs[:limit], seqs[limit-1], nil
	}
	var last []int64
	if err := s.reads.All(ctx, &last, stream+` LIMIT 1 OFFSET `+strconv.Itoa(most-1), inner.args...); err != nil {
		return nil, 0, s.wrap(err, "list emails")
	}
	if len(last) == 1 {
		end = last[0]
	}
	return seqs, end, nil
}

// emailsBySeq reads emails by their numbers, newest first, without content.
func (s *Store) emailsBySeq(ctx context.Context, seqs []int64) ([]Email, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	var es []Email
	q := `SELECT ` + emailColumns + emailTables + ` WHERE ` + s.engine.OneOf("e.message_seq", "$1")
	if err := s.reads.All(ctx, &es, q, s.engine.List(seqs)); err != nil {
		return nil, s.wrap(err, "list emails")
	}
	for i := range es {
		s.expireRead(&es[i].Message)
	}
	slices.SortFunc(es, func(a, b Email) int { return cmp.Compare(b.Seq, a.Seq) })
	return es, nil
}
