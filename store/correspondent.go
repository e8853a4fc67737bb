package store

import (
	"context"
	"slices"
)

// HaveWritten returns those of the addresses, folded as FromEmail is, that have
// themselves written to an inbox: a received mail names them in its header
// From, and its record is still kept. Simulated mail counts only when simulated
// is set.
func (s *Store) HaveWritten(ctx context.Context, inboxSeq int64, addresses []string, simulated bool) ([]string, error) {
	q, args := haveWritten(inboxSeq, addresses, simulated)
	var found []string
	err := s.read.SelectContext(ctx, &found, q, args...)
	return found, s.wrap(err, "who has written to the inbox")
}

// haveWritten is the query of HaveWritten. The index of the messages of an inbox
// has all that it asks for: it goes through the inbox there, and reads no
// message. An index of senders alone would cost every mail more than this costs
// the few who ask.
func haveWritten(inboxSeq int64, addresses []string, simulated bool) (query string, args []any) {
	addresses = slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return storable(a) != a })
	var w where
	w.add("inbox_seq = ?", inboxSeq)
	w.add("direction = 'in'")
	w.in("from_email", addresses)
	if !simulated {
		w.add("NOT test_mode")
	}
	return `SELECT DISTINCT from_email FROM messages` + w.sql(), w.args
}

// lookedAt is how many messages of an inbox WrittenTo reads.
const lookedAt = 5000

// WrittenTo returns those of the addresses, folded as FromEmail is, that the inbox
// has sent one of its newest messages to.
func (s *Store) WrittenTo(ctx context.Context, inboxSeq int64, addresses []string) ([]string, error) {
	var w where
	newest := `SELECT seq FROM messages WHERE inbox_seq = ` + w.arg(inboxSeq) + ` AND direction = 'out' ORDER BY created_at DESC LIMIT ` + w.arg(lookedAt)
	w.in("lower(email)", slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return storable(a) != a }))
	var found []string
	err := s.read.SelectContext(ctx, &found, `SELECT DISTINCT lower(email) FROM recipients`+w.sql()+` AND message_seq IN (`+newest+`)`, w.args...)
	return found, s.wrap(err, "who the inbox has written to")
}
