package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The states that an email can be in and a message of an inbox cannot. Sending
// is not stored: an email is it while it is queued and has been tried.
const (
	EmailScheduled MessageStatus = "scheduled"
	EmailSending   MessageStatus = "sending"
	EmailOpened    MessageStatus = "opened"
	EmailClicked   MessageStatus = "clicked"
	EmailCancelled MessageStatus = "cancelled"
)

// Category is the purpose of an email.
type Category string

// The categories.
const (
	CategoryTransactional Category = "transactional"
	CategoryMarketing     Category = "marketing"
)

// Email is a message without an inbox: an outbound message with the fields that
// only emails have. Its id starts with em_.
type Email struct {
	Message
	// FromInbox is the inbox whose address it is sent from, nil if the address is
	// not an inbox.
	FromInbox   *int64                `db:"from_inbox"`
	BatchID     *string               `db:"batch_id"`
	Category    Category              `db:"category"`
	Tags        JSON[Labels]          `db:"tags"`
	Metadata    JSON[json.RawMessage] `db:"metadata"` // an object
	ScheduledAt *Time                 `db:"scheduled_at"`
	OpenedAt    *Time                 `db:"opened_at"`
	CreatedBy   *string               `db:"created_by"` // id of the key or user
}

// Labels are values by name: strings, numbers, booleans or null, each as the JSON
// that it was written as.
type Labels map[string]json.RawMessage

// labelText is the text by which a label is found: that of a string, and a number
// or boolean as it was written.
func labelText(v json.RawMessage) string {
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		return string(v)
	}
	return s
}

// NewEmail is an email to be sent. The caller sets these fields of the message: ID,
// if it is already assigned, AccountID, TestMode, FromEmail, Addresses, Subject,
// HeaderID, Automated, Size, Content and Recipients (Email, Domain, Kind). It also
// sets FromInbox, Category, Tags, Metadata and, to send later, ScheduledAt. The
// store sets all other fields in the copy that it returns.
type NewEmail struct {
	Email
	// VerifiedDomain is that of NewMessage.
	VerifiedDomain string
	// CreatedBy is the key or person who sends it.
	CreatedBy Sender
	// Text is the plain text. Limits compare it.
	Text string
	// Draft makes what an email of a batch becomes when it needs approval.
	Draft func(context.Context) (NewDraft, error)
}

// Batch is the emails of one API call.
type Batch struct {
	ID      string
	Emails  []Email // that were accepted
	Refused []RefusedEmail
	Held    []HeldEmail
}

// RefusedEmail is an email of a batch that is not sent.
type RefusedEmail struct {
	Index int
	Err   error
}

// HeldEmail is an email of a batch that became a draft.
type HeldEmail struct {
	Index   int
	DraftID string
}

// preparedEmail is a new email on its way into the database.
type preparedEmail struct {
	*sending
	email          Email // without its Message
	tags, metadata string

	draft *NewDraft // that it may become
	held  string    // id of the draft that it became
}

// batchOf returns a batch as stored.
func batchOf(id string, hs []*preparedEmail) Batch {
	b := Batch{ID: id}
	for i, h := range hs {
		switch {
		case h.held != "":
			b.Held = append(b.Held, HeldEmail{i, h.held})
		case h.refused != nil:
			b.Refused = append(b.Refused, RefusedEmail{i, h.refused})
		default:
			b.Emails = append(b.Emails, emailsOf([]*preparedEmail{h})...)
		}
	}
	return b
}

func prepareEmail(n *NewEmail, now time.Time) (*preparedEmail, error) {
	m := n.Message
	m.Direction, m.Status = DirectionOut, MessageQueued
	if n.ScheduledAt != nil {
		m.Status = EmailScheduled
	}
	h, err := prepareMessage(&NewMessage{Message: m, VerifiedDomain: n.VerifiedDomain, Senders: []Sender{n.CreatedBy}, Text: n.Text}, now)
	if err != nil {
		return nil, err
	}
	if h.msg.ID = m.ID; m.ID == "" {
		h.msg.ID = NewID("em_", now)
	}
	e := &preparedEmail{sending: &sending{preparedMessage: h, isEmail: true, category: n.Category}, email: n.Email, tags: "{}", metadata: "{}"}
	if n.FromInbox != nil {
		e.inboxSeq = *n.FromInbox
	}
	if e.email.Tags.V == nil {
		e.email.Tags.V = Labels{}
	}
	if len(e.email.Metadata.V) == 0 {
		e.email.Metadata.V = json.RawMessage("{}")
	}
	tags, err := json.Marshal(e.email.Tags.V)
	e.tags, e.metadata = string(tags), string(e.email.Metadata.V)
	return e, errIn("write JSON columns", err)
}

// emailsOf are the emails as stored.
func emailsOf(hs []*preparedEmail) []Email {
	return each(hs, func(h *preparedEmail) Email {
		e := h.email
		e.Message = h.msg
		e.show()
		return e
	})
}

// show gives an email and its recipients the states that are not stored: what
// has been tried is being sent, and what is not queued yet, or never will be,
// waits with the whole.
func (e *Email) show() {
	waits := map[MessageStatus]RecipientStatus{EmailScheduled: RecipientScheduled, EmailCancelled: RecipientCancelled}[e.Status]
	for i := range e.Recipients {
		r := &e.Recipients[i]
		switch {
		case r.Status != RecipientQueued:
		case waits != "":
			r.Status = waits
		case r.Attempts > 0:
			r.Status = RecipientSending
			if e.Status == MessageQueued {
				e.Status = EmailSending
			}
		}
	}
}

const (
	emailColumns = `m.seq, m.account_id, m.id, m.direction, m.status, m.test_mode, m.from_email, m.addresses, m.subject, m.header_id, m.refs,
		m.automated, m.size, m.created_at, m.sent_at, m.delivered_at, m.expired_at, m.settled_at, e.from_inbox, e.batch_id, e.category, e.tags, e.metadata,
		e.scheduled_at, e.opened_at, e.created_by`
	// A message of an inbox has a row in emails, too, when its draft replaced an email.
	emailTables = ` FROM emails e JOIN messages m ON m.seq = e.message_seq AND m.inbox_seq IS NULL`
)

// EmailFilter selects emails. All fields that are set must match.
type EmailFilter struct {
	AccountID int64
	// InboxIDs are the only inboxes that emails may be sent from; nil means that
	// any sender will do.
	InboxIDs []string
	Status   MessageStatus
	// Tags are name and value pairs; the email has at least one of them. nil
	// means any.
	Tags    [][2]string
	BatchID string
	// ToLike is a LIKE pattern over the folded address of a recipient, escape \.
	ToLike string
	Since  *Time
	Until  *Time // exclusive

	after int64 // emails up to this seq are too old
}

func (f *EmailFilter) scope() string {
	scope := fmt.Sprintf("emails/%d/%t/%q/%q/%q/%q", f.AccountID, f.InboxIDs != nil, f.InboxIDs, f.Status, f.Tags, f.BatchID)
	for _, t := range []*Time{f.Since, f.Until} {
		if t != nil {
			scope += fmt.Sprintf("/%d", t.UnixMicro())
		} else {
			scope += "/"
		}
	}
	return scope + fmt.Sprintf("/%q", f.ToLike)
}

// Email returns the account's email with its content, unless it is sent from
// another inbox than those of a list that is not nil.
func (s *Store) Email(ctx context.Context, accountID int64, inboxIDs []string, id string) (Email, error) {
	w := conditions("m.account_id = ? AND m.id = ?", accountID, id)
	f := EmailFilter{AccountID: accountID, InboxIDs: inboxIDs}
	f.senders(w, "e.message_seq")
	e, err := readOne[Email](ctx, s, "email", `SELECT `+emailColumns+emailTables+w.sql(), w.args...)
	if err != nil {
		return Email{}, err
	}
	s.expireRead(&e.Message)
	one := []Email{e}
	_, err = s.fillEmails(ctx, one)
	return one[0], err
}

// ListEmails returns a page of emails with their content, newest first. As with
// messages, a page may have fewer emails than the limit without being the last.
func (s *Store) ListEmails(ctx context.Context, f EmailFilter, p Page) (List[Email], error) {
	scope := f.scope()
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Email]{}, err
	}
	after, bound, err := s.emailsBetween(ctx, f.Since, f.Until)
	if err != nil {
		return List[Email]{}, err
	}
	f.after, before = after, min(before, bound)
	seqs, end, err := s.scanEmails(ctx, &f, before, p.Limit)
	if err != nil {
		return List[Email]{}, err
	}
	rows, err := s.emailsBySeq(ctx, seqs)
	if err != nil {
		return List[Email]{}, err
	}
	n, err := s.fillEmails(ctx, rows)
	if err != nil {
		return List[Email]{}, err
	}
	if n < len(rows) {
		end = rows[n-1].Seq
	}
	l := List[Email]{Rows: rows[:n]}
	if end != 0 {
		l.Cursor = s.cursors.make(scope, position{Seq: end})
	}
	return l, nil
}

// fillEmails is fillPage for emails, and shows those that it has filled.
func (s *Store) fillEmails(ctx context.Context, es []Email) (int, error) {
	ms := each(es, func(e Email) Message { return e.Message })
	n, err := s.fillPage(ctx, ms)
	for i := range es[:n] {
		es[i].Message = ms[i]
		es[i].show()
	}
	return n, err
}

// emailsBetween returns bounds for the numbers of emails, of any account, that were
// accepted in a span of time; both are exclusive. Ids sort by time. Those of the same
// second are in no order, so the bounds may include others.
func (s *Store) emailsBetween(ctx context.Context, since, until *Time) (after, before int64, err error) {
	const (
		last  = `SELECT coalesce((SELECT seq FROM messages WHERE id >= 'em_' AND id < $1 ORDER BY id DESC LIMIT 1), 0)`
		first = `SELECT coalesce((SELECT seq FROM messages WHERE id >= $1 AND id < 'em_zz' ORDER BY id LIMIT 1), $2)`
	)
	before = maxPosition
	if since != nil && since.Unix() > 0 {
		err = s.read.GetContext(ctx, &after, last, firstShortID("em_", since.Add(-searchSkew)))
	}
	if err == nil && until != nil {
		err = s.read.GetContext(ctx, &before, first, firstShortID("em_", until.Add(searchSkew)), before)
	}
	return after, before, s.wrap(err, "emails between two times")
}

// countedEmails is how many of the latest emails or sent messages CountStatuses reads.
const countedEmails = 1000

// CountStatuses returns how many of the account's latest emails have each status,
// or of the latest messages that its inboxes sent. all is false if there are older
// ones that are not counted.
func (s *Store) CountStatuses(ctx context.Context, accountID int64, messages bool) (counts map[MessageStatus]int, all bool, err error) {
	const (
		ofEmails = `SELECT CASE WHEN m.status = 'queued' AND EXISTS (SELECT 1 FROM recipients r
				WHERE r.message_seq = m.seq AND r.status = 'queued' AND r.attempts > 0) THEN 'sending' ELSE m.status END AS status, COUNT(*) AS n
			FROM (SELECT message_seq FROM emails WHERE account_id = $1 ORDER BY message_seq DESC LIMIT $2) e
			JOIN messages m ON m.seq = e.message_seq AND m.inbox_seq IS NULL GROUP BY 1`
		ofMessages = `SELECT CASE WHEN i.status <> 'deleted' THEN m.status ELSE '' END AS status, COUNT(*) AS n
			FROM (SELECT inbox_seq, status FROM messages WHERE account_id = $1 AND direction = 'out' AND inbox_seq IS NOT NULL
				ORDER BY created_at DESC LIMIT $2) m
			JOIN inboxes i ON i.seq = m.inbox_seq GROUP BY 1`
	)
	q := ofEmails
	if messages {
		q = ofMessages
	}
	var rows []struct {
		Status MessageStatus `db:"status"`
		N      int           `db:"n"`
	}
	if err := s.read.SelectContext(ctx, &rows, q, accountID, countedEmails); err != nil {
		return nil, false, s.wrap(err, "count emails by status")
	}
	counts, read := map[MessageStatus]int{}, 0
	for _, r := range rows {
		read += r.N
		if r.Status != "" {
			counts[r.Status] = r.N
		}
	}
	return counts, read < countedEmails, nil
}

// stream are the emails that the filter may let pass, in the order of an index.
func (f *EmailFilter) stream(w *where, before int64) string {
	w.add("account_id = ?", f.AccountID)
	w.add("message_seq < ?", before)
	if f.after > 0 {
		w.add("message_seq > ?", f.after)
	}
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
// is seq, and reports whether there are any.
func (f *EmailFilter) add(w *where, seq string) bool {
	n := len(w.conds)
	tried := "EXISTS (SELECT 1 FROM recipients r WHERE r.message_seq = " + seq + " AND r.status = 'queued' AND r.attempts > 0)"
	stored := "(SELECT x.status FROM messages x WHERE x.seq = " + seq + ") = ?"
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
	created := "(SELECT x.created_at FROM messages x WHERE x.seq = " + seq + ")"
	if f.Since != nil {
		w.add(created+" >= ?", *f.Since)
	}
	if f.Until != nil {
		w.add(created+" < ?", *f.Until)
	}
	addRecipient(w, seq, f.ToLike)
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

// addRecipient adds the condition that the message whose number is seq has a recipient
// like a pattern, if that is not empty.
func addRecipient(w *where, seq, like string) {
	if like == "" {
		return
	}
	if storable(like) != like {
		w.add("1 = 0")
		return
	}
	is := `lower(r.email) LIKE ? ESCAPE '\'`
	if plain, ok := unescapeLike(like); ok {
		is, like = "lower(r.email) = ?", plain
	}
	// For EXISTS, PostgreSQL may choose a join that reads all recipients.
	w.add("(SELECT count(*) FROM recipients r WHERE r.message_seq = "+seq+" AND "+is+") > 0", like)
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
	filter := &where{args: slices.Clone(inner.args)}
	most := limit + 1
	if f.add(filter, "m.message_seq") {
		most = max(most, s.limits.listScan)
	}
	seqs, last, err := scan[int64](ctx, s, "list emails", "m.message_seq", stream, inner.args, filter, limit+1, most)
	switch {
	case err != nil:
		return nil, 0, err
	case len(seqs) > limit:
		return seqs[:limit], seqs[limit-1], nil
	case last != nil:
		end = *last
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
	if err := s.read.SelectContext(ctx, &es, q, s.engine.List(seqs)); err != nil {
		return nil, s.wrap(err, "list emails")
	}
	for i := range es {
		s.expireRead(&es[i].Message)
	}
	slices.SortFunc(es, func(a, b Email) int { return cmp.Compare(b.Seq, a.Seq) })
	return es, nil
}
