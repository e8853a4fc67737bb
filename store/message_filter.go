package store

import (
	"fmt"
	"strings"
)

// MessageFilter says which messages a list or a wait is about. Empty fields
// match all.
type MessageFilter struct {
	AccountID int64
	InboxSeq  int64    // one inbox, or 0
	InboxIDs  []string // not nil: the only inboxes that the caller may see
	Direction Direction
	Status    MessageStatus
	FromLike  string // LIKE pattern over FromEmail, escape \
	Subject   string // folded; a substring of the folded subject
	ThreadID  string
	Since     *Time
	HasCode   bool
	HasLink   bool
	After     *Place // only messages that came after this one
	Text      *TextQuery

	threadSeq int64   // of ThreadID
	inboxes   []int64 // of InboxIDs, those that are there
}

// Place is where a message stands in its inbox.
type Place struct {
	CreatedAt Time  `db:"created_at"`
	Seq       int64 `db:"seq"`
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
	if f.Status != "" {
		w.add("m.status = ?", f.Status)
	}
	if f.FromLike != "" {
		if plain, ok := unescapeLike(f.FromLike); ok {
			w.add("m.from_email = ?", plain)
		} else {
			w.add(`m.from_email LIKE ? ESCAPE '\'`, f.FromLike)
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
	if f.HasCode {
		w.add("m.has_code")
	}
	if f.HasLink {
		w.add("m.has_link")
	}
	if f.After != nil {
		w.add("(m.created_at, m.seq) > (?, ?)", f.After.CreatedAt, f.After.Seq)
	}
}

// scope is what a cursor of this list holds for.
func (f *MessageFilter) scope() string {
	var since, after int64
	if f.Since != nil {
		since = f.Since.UnixMicro()
	}
	if f.After != nil {
		after = f.After.Seq
	}
	scope := fmt.Sprintf("messages/%d/%d/%t/%q/%q/%q/%q/%q/%q/%d/%t/%t/%d", f.AccountID, f.InboxSeq, f.InboxIDs != nil, f.InboxIDs,
		f.Direction, f.Status, f.FromLike, f.Subject, f.ThreadID, since, f.HasCode, f.HasLink, after)
	if f.Text != nil {
		scope += fmt.Sprintf("/%q/%q", f.Text.Words, f.Text.Phrases)
	}
	return scope
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
