package store

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// countKind names what is counted by day.
type countKind string

// Of each inbox and of each account is counted what Stats shows. Of accounts
// alone: the recipients that were accepted, which the plan limits, and what came
// of those that were tried, which says whether the account may go on sending.
const (
	countReceived   countKind = "received"
	countSent       countKind = "sent"
	countDelivered  countKind = "delivered"
	countBounced    countKind = "bounced"
	countFailed     countKind = "failed"
	countComplained countKind = "complained"

	countAccepted countKind = "accepted"

	countTried  countKind = "tried"
	countHard   countKind = "hard"
	countMarked countKind = "marked"
)

// wholeAccount stands, among the numbers of inboxes, for all of an account.
const wholeAccount = 0

// countKey is one number that the transaction of a batch raises.
type countKey struct {
	account, inbox, day int64
	kind                countKind
}

func (k countKey) compare(o countKey) int {
	return cmp.Or(cmp.Compare(k.account, o.account), cmp.Compare(k.inbox, o.inbox), cmp.Compare(k.day, o.day), cmp.Compare(k.kind, o.kind))
}

// secondsPerDay is of UTC days, which have no leap seconds here.
const secondsPerDay = 24 * 60 * 60

// dayOf is the number of the UTC day since 1970.
func dayOf(t time.Time) int64 { return t.Unix() / secondsPerDay }

// dayTime is when a day begins.
func dayTime(day int64) time.Time { return time.Unix(day*secondsPerDay, 0).UTC() }

// monthOf is the first day of the month, and the first of the next.
func monthOf(t time.Time) (first, next int64) {
	y, m, _ := t.UTC().Date()
	return dayOf(time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)), dayOf(time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC))
}

// maxShards bounds into how many rows the count of a whole account is split.
const maxShards = 16

// shards gives each committer a shard: those of one node, and mostly those of
// several, do not wait for each other's counts of an account.
func (s *Store) shards() []int64 {
	n := s.engine.Committers()
	all := make([]int64, n)
	if s.engine.Alone() {
		return all
	}
	first := rand.IntN(maxShards/n) * n //nolint:gosec // no secret
	for i := range all {
		all[i] = int64(first + i)
	}
	return all
}

// countedEvents are the events that Stats shows, which are counted on their day.
var countedEvents = map[EventType]countKind{
	EventMessageReceived:   countReceived,
	EventMessageSent:       countSent,
	EventMessageDelivered:  countDelivered,
	EventMessageBounced:    countBounced,
	EventMessageFailed:     countFailed,
	EventMessageComplained: countComplained,

	EventEmailSent:       countSent,
	EventEmailDelivered:  countDelivered,
	EventEmailBounced:    countBounced,
	EventEmailFailed:     countFailed,
	EventEmailComplained: countComplained,
}

// count notes n more of kind, unless m is in test mode.
func (b *hotBatch) count(kind countKind, m *Message, inbox, n int64) {
	if !m.TestMode {
		b.counts[countKey{m.AccountID, inbox, dayOf(b.now.Time), kind}] += n
	}
}

func (b *hotBatch) countEvent(typ EventType, m *Message) {
	kind, ok := countedEvents[typ]
	if !ok {
		return
	}
	b.count(kind, m, wholeAccount, 1)
	if m.InboxSeq != wholeAccount {
		b.count(kind, m, m.InboxSeq, 1)
	}
	if kind == countComplained {
		b.count(countMarked, m, wholeAccount, 1)
	}
}

// countOutcome counts, for the watch over an account, a recipient that is not
// tried again. A server that refuses for good, by a code that begins with 5,
// says that there is no such mailbox or that it wants no mail from us.
func (b *hotBatch) countOutcome(o *outcome, m *Message) {
	a := o.Attempt
	if r := o.report; r != nil { // of a recipient who was counted when the mail was taken
		if r.Status == RecipientBounced && !r.Soft {
			b.count(countHard, m, wholeAccount, 1)
		}
		return
	}
	switch a.Status {
	case RecipientQueued, RecipientSuppressed:
		return
	case RecipientBounced:
		if strings.HasPrefix(a.Response, "5") {
			b.count(countHard, m, wholeAccount, 1)
		}
	}
	b.count(countTried, m, wholeAccount, 1)
}

// addCounts writes what was counted, in the order in which everybody holds those
// rows.
func (b *hotBatch) addCounts(ctx context.Context) error {
	if len(b.counts) == 0 {
		return nil
	}
	if err := b.pauseSenders(ctx); err != nil {
		return errIn("watch over senders", err)
	}
	keys := make([]countKey, 0, len(b.counts))
	for k := range b.counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, countKey.compare)
	rows := make([]any, 0, len(keys)*b.store.hot.counts.Columns)
	for _, k := range keys {
		rows = append(rows, k.account, k.inbox, k.day, string(k.kind), b.shard, b.counts[k])
	}
	return errIn("count", b.store.hot.counts.Exec(ctx, b.tx, rows))
}
