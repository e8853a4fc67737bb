package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
)

// ListMessages returns a page of messages, newest first, with their content if
// the filter asks for it, else with its summary. A page may have fewer messages
// than the limit, or none, without being the last: the search time and the memory
// of a page are bounded.
func (s *Store) ListMessages(ctx context.Context, f MessageFilter, p Page) (List[Message], error) {
	scope := f.scope()
	before, err := s.before(scope, p.Cursor)
	if err != nil {
		return List[Message]{}, err
	}
	streams, err := s.streams(ctx, &f)
	if err != nil || len(streams) == 0 {
		return List[Message]{}, err
	}
	var found found
	if f.Text != nil {
		found, err = s.search(ctx, &f, before.Seq, p.Limit)
	} else {
		found, err = s.scanStreams(ctx, &f, streams, before, p.Limit)
	}
	if err != nil {
		return List[Message]{}, err
	}
	n := len(found.messages)
	if f.WithText {
		n, err = s.fillPage(ctx, found.messages)
	} else {
		err = s.fill(ctx, found.messages, summaryColumns)
	}
	if err != nil {
		return List[Message]{}, err
	}
	l := List[Message]{Rows: found.messages[:n]}
	if n < len(found.messages) {
		last := l.Rows[n-1].position()
		found.end = &last
	}
	if found.end != nil {
		l.Cursor = s.cursors.make(scope, *found.end)
	}
	return l, nil
}

const maxPosition = 1<<63 - 1

// found is the result of one page, and where the next one continues, nil at the
// end of the list.
type found struct {
	messages []Message
	end      *position
}

// stream is messages in the order of an index: those of a thread, of an inbox,
// or of an account.
type stream struct {
	column string
	seq    int64
}

// streams are where the messages that the filter may let pass lie. There are
// none when it lets nothing pass.
func (s *Store) streams(ctx context.Context, f *MessageFilter) ([]stream, error) {
	if f.ThreadID != "" {
		if err := s.findThread(ctx, f); err != nil || f.threadSeq == 0 {
			return nil, err
		}
	}
	if f.InboxIDs != nil {
		var err error
		if f.inboxes, err = s.inboxSeqs(ctx, f.AccountID, f.InboxIDs); err != nil {
			return nil, err
		}
	}
	switch {
	case f.InboxSeq != 0 && f.InboxIDs != nil && !slices.Contains(f.inboxes, f.InboxSeq):
		return nil, nil
	case f.threadSeq != 0:
		return []stream{{"m.thread_seq", f.threadSeq}}, nil
	case f.InboxSeq != 0:
		return []stream{{"m.inbox_seq", f.InboxSeq}}, nil
	case f.InboxIDs == nil:
		return []stream{{"m.account_id", f.AccountID}}, nil
	}
	return each(f.inboxes, func(seq int64) stream { return stream{"m.inbox_seq", seq} }), nil
}

// findThread looks up the thread that the filter names, among what it may see.
func (s *Store) findThread(ctx context.Context, f *MessageFilter) error {
	if storable(f.ThreadID) != f.ThreadID {
		return nil
	}
	w := conditions("t.id = ? AND i.status <> 'deleted'", f.ThreadID)
	if f.InboxSeq != 0 {
		w.add("t.inbox_seq = ?", f.InboxSeq)
	} else {
		w.add("t.account_id = ?", f.AccountID)
	}
	if f.InboxIDs != nil {
		w.in("i.id", f.InboxIDs)
	}
	seqs, err := readAll[int64](ctx, s, "thread", `SELECT t.seq FROM threads t JOIN inboxes i ON i.seq = t.inbox_seq`+w.sql(), w.args...)
	if len(seqs) == 1 {
		f.threadSeq = seqs[0]
	}
	return err
}

func (s *Store) inboxSeqs(ctx context.Context, accountID int64, ids []string) ([]int64, error) {
	w := conditions("account_id = ? AND status <> 'deleted'", accountID)
	w.in("id", ids)
	return readAll[int64](ctx, s, "inboxes", `SELECT seq FROM inboxes`+w.sql()+` ORDER BY seq`, w.args...)
}

// scanStreams merges the streams, newest first. A message that is deleted
// meanwhile is missing from the page, and changes nothing about where it ends.
func (s *Store) scanStreams(ctx context.Context, f *MessageFilter, streams []stream, before position, limit int) (found, error) {
	var all []position
	var end *position
	for _, st := range streams {
		inner := &where{}
		order := st.limit(inner, f, before)
		filter := &where{args: slices.Clone(inner.args)}
		filter.add("(SELECT i.status FROM inboxes i WHERE i.seq = m.inbox_seq) <> 'deleted'")
		f.add(filter)
		ps, stopped, err := scan[position](ctx, s, "list messages", "m.created_at, m.seq", `SELECT `+scanColumns+` FROM messages m`+inner.sql()+order,
			inner.args, filter, limit+1, max(limit+1, s.limits.listScan/len(streams)))
		if err != nil {
			return found{}, err
		}
		all = append(all, ps...)
		if stopped != nil && (end == nil || stopped.compare(*end) > 0) {
			end = stopped
		}
	}
	slices.SortFunc(all, func(a, b position) int { return b.compare(a) })
	if end != nil { // what lies behind it is not known of all streams
		all = slices.DeleteFunc(all, func(p position) bool { return p.compare(*end) < 0 })
	}
	if len(all) > limit {
		all, end = all[:limit], &all[limit-1]
	}
	ms, err := s.messagesBySeq(ctx, each(all, func(p position) int64 { return p.Seq }), nil, !f.WithText)
	slices.SortFunc(ms, func(a, b Message) int { return b.position().compare(a.position()) })
	return found{ms, end}, err
}

func (m *Message) position() position { return position{m.CreatedAt.UnixMicro(), m.Seq} }

func (p position) compare(other position) int {
	return cmp.Or(cmp.Compare(p.At, other.At), cmp.Compare(p.Seq, other.Seq))
}

// scanColumns are those that filters ask for.
const scanColumns = `m.created_at, m.seq, m.inbox_seq, m.thread_seq, m.direction, m.status, m.from_email, m.subject_fold, m.has_code, m.has_link, m.quarantined, m.labels, m.safety_level`

// limit adds the conditions that narrow the stream by its index, and returns the
// order of the index.
func (st stream) limit(w *where, f *MessageFilter, before position) (order string) {
	w.add(st.column+" = ?", st.seq)
	w.add("m.inbox_seq IS NOT NULL") // the index of an account leaves emails out
	if st.column == "m.account_id" { // whose sent messages, and those in quarantine or with labels, have an index
		switch {
		case f.Status == MessageQuarantined:
			w.add("m.quarantined")
		case f.Label != "":
			w.add("m.labels <> '[]'")
		case f.Direction == DirectionOut:
			w.add("m.direction = 'out'")
		}
	}
	if before.At != maxPosition {
		w.add("(m.created_at, m.seq) < (?, ?)", before.At, before.Seq)
	}
	if f.Since != nil {
		w.add("m.created_at >= ?", *f.Since)
	}
	if f.Until != nil {
		w.add("m.created_at < ?", *f.Until)
	}
	return ` ORDER BY m.created_at DESC, m.seq DESC`
}

// messagesBySeq reads messages by their numbers, those that the filter lets
// pass, in no order. They come without content, or with its summary.
func (s *Store) messagesBySeq(ctx context.Context, seqs []int64, f *MessageFilter, withSummary bool) ([]Message, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	w := &where{}
	w.add(s.engine.OneOf("m.seq", w.arg(s.engine.List(seqs))))
	if f != nil {
		w.add("i.status <> 'deleted'")
		switch {
		case f.InboxSeq != 0:
			// The sign keeps SQLite from going through the whole inbox by its index.
			w.add("+m.inbox_seq = ?", f.InboxSeq)
		case f.InboxIDs != nil:
			w.add(s.engine.OneOf("m.inbox_seq", w.arg(s.engine.List(f.inboxes))))
		}
		f.add(w)
	}
	q := `SELECT ` + messageColumns + messageTables
	if withSummary {
		q = `SELECT ` + messageColumns + andSummary + messageTables + contentTable
	}
	ms, err := s.readMessages(ctx, q+w.sql(), w.args...)
	return ms, s.wrap(err, "list messages")
}

// MessageFilter selects messages of a list or a wait. Empty fields match all.
type MessageFilter struct {
	AccountID int64
	InboxSeq  int64    // one inbox, or 0
	InboxIDs  []string // not nil: the only inboxes that the caller may see
	Direction Direction
	Status    MessageStatus
	FromLike  string // LIKE pattern over FromEmail, escape \
	ToLike    string // of sent messages: LIKE pattern over the folded address of a recipient, escape \
	Subject   string // folded; a substring of the folded subject
	ThreadID  string
	Since     *Time
	Until     *Time // exclusive
	HasCode   bool
	HasLink   bool
	Label     string           // as NormalizeLabel returns it
	Safety    mail.SafetyLevel // at least this level, or empty
	After     *Place           // only messages that came after this one
	Text      *TextQuery
	WithText  bool `json:"-"` // a list reads the whole content, and not its summary alone

	threadSeq int64          // of ThreadID
	inboxes   []int64        // of InboxIDs, those that are there
	from      *regexp.Regexp // FromLike, of a filter that waits
}

// Place is where a message stands in its inbox.
type Place struct {
	CreatedAt Time  `db:"created_at"`
	Seq       int64 `db:"seq"`
}

// Before reports whether a message at p comes before one at other.
func (p Place) Before(other Place) bool {
	return cmp.Or(p.CreatedAt.Compare(other.CreatedAt.Time), cmp.Compare(p.Seq, other.Seq)) < 0
}

// Place is where the message stands in its inbox.
func (m *Message) Place() *Place { return &Place{m.CreatedAt, m.Seq} }

// add adds the conditions that are asked of each message for itself.
func (f *MessageFilter) add(w *where) {
	for _, text := range []string{f.FromLike, f.Subject} {
		if storable(text) != text { // PostgreSQL would not even look
			w.add("1 = 0")
			return
		}
	}
	if f.Direction != "" {
		w.add("m.direction = ?", f.Direction)
	}
	switch f.Status {
	case MessageQuarantined:
		w.add("m.quarantined")
	case "":
		w.add("NOT m.quarantined")
	default:
		w.add("NOT m.quarantined")
		w.add("m.status = ?", f.Status)
	}
	if f.FromLike != "" {
		from := f.FromLike
		if f.Status == MessageQuarantined {
			from = quarantineMark + from
		}
		if plain, ok := unescapeLike(from); ok {
			w.add("m.from_email = ?", plain)
		} else {
			w.add(`m.from_email LIKE ? ESCAPE '\'`, from)
		}
	}
	if f.Subject != "" {
		w.add(`m.subject_fold LIKE ? ESCAPE '\'`, "%"+escapeLike(f.Subject)+"%")
	}
	if f.threadSeq != 0 {
		w.add("m.thread_seq = ?", f.threadSeq)
	}
	if f.Since != nil {
		w.add("m.created_at >= ?", *f.Since)
	}
	if f.Until != nil {
		w.add("m.created_at < ?", *f.Until)
	}
	addRecipient(w, "m.seq", f.ToLike)
	addLabel(w, "m.labels", f.Label)
	if f.HasCode {
		w.add("m.has_code")
	}
	if f.HasLink {
		w.add("m.has_link")
	}
	switch f.Safety {
	case mail.SafetyNotice:
		w.add("m.safety_level <> 'none'")
	case mail.SafetyWarning:
		w.add("m.safety_level = 'warning'")
	}
	if f.After != nil {
		w.add("(m.created_at, m.seq) > (?, ?)", f.After.CreatedAt, f.After.Seq)
	}
}

// scope is what a cursor of this list holds for.
func (f *MessageFilter) scope() string {
	text, _ := json.Marshal(f) // texts, numbers and times can always be written
	return fmt.Sprintf("messages/%d/%s", f.AccountID, text)
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func escapeLike(s string) string { return likeEscaper.Replace(s) }

// unescapeLike returns the only text that a LIKE pattern matches, if there is
// but one.
func unescapeLike(pattern string) (plain string, ok bool) {
	var sb strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '%', '_':
			return "", false
		case '\\':
			if i++; i == len(pattern) {
				return "", false
			}
		}
		sb.WriteByte(pattern[i])
	}
	return sb.String(), true
}

const (
	// pageBytes is about how much of what messages say is in memory for one page of
	// them. What does not fit is of the next page.
	pageBytes = 16 << 20
	// largestText is about what the texts of one message may take.
	largestText = 4 << 20
)

// fillPage is fill for a page, which ends where its texts become too much to
// hold. It returns how many of the messages it has filled: one at least.
func (s *Store) fillPage(ctx context.Context, ms []Message) (int, error) {
	filled, size := 0, 0
	for filled < len(ms) && size < pageBytes {
		n := portion(ms[filled:])
		if err := s.fill(ctx, ms[filled:filled+n], contentColumns); err != nil {
			return 0, err
		}
		for _, m := range ms[filled : filled+n] {
			size += m.Content.textBytes()
		}
		filled += n
	}
	return filled, nil
}

// portion is how many of the first messages may be read at once, by what their
// texts take at most: one at least.
func portion(ms []Message) int {
	var bytes int64
	for i, m := range ms {
		if bytes += min(m.Size, largestText); bytes > pageBytes && i > 0 {
			return i
		}
	}
	return len(ms)
}

// textBytes returns the number of bytes of text in the content, which may be nil.
func (c *Content) textBytes() int {
	switch {
	case c == nil:
		return 0
	case c.Body == nil:
		return len(c.Raw)
	}
	n := len(c.Raw) + len(c.Body.V.Text) + len(c.Body.V.HTML)
	if c.Body.V.Reply != nil {
		n += len(*c.Body.V.Reply)
	}
	return n
}

// messageRow is a row of messageColumns and of what andSummary or andContent add.
type messageRow struct {
	Message
	Found Content `db:"content"`
}

// readMessages runs a query for messageColumns and what it has of the content.
func (s *Store) readMessages(ctx context.Context, q string, args ...any) ([]Message, error) {
	var rows []messageRow
	if err := s.read.SelectContext(ctx, &rows, q, args...); err != nil {
		return nil, err
	}
	ms := make([]Message, len(rows))
	for i := range rows {
		m := &rows[i].Message
		s.expireRead(m)
		if rows[i].Found.MessageSeq != 0 && m.ExpiredAt == nil {
			m.Content = &rows[i].Found
		}
		ms[i] = *m
	}
	return ms, nil
}

// encode returns the JSON of a body. Unlike json.Marshal it leaves <, > and & as they
// are, because escaping would make HTML longer.
func (b *Body) encode() string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(b) // text and booleans can always be encoded
	return strings.TrimSuffix(out.String(), "\n")
}
