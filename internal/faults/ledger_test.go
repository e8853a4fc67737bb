package faults_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// testMessage is one message that a client offers. Its id is in the subject, the
// Message-ID and the body.
type testMessage struct {
	id   string
	from string
	to   []string // addresses of inboxes
	raw  []byte
}

// newMessage creates a message of about size bytes. The same id and size give the same
// bytes.
func newMessage(id string, size int, to ...string) testMessage {
	return newMessageFrom(sender, id, size, to...)
}

func newMessageFrom(from, id string, size int, to ...string) testMessage {
	b := fmt.Appendf(nil, "From: Ann <%s>\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: %s\r\n"+
		"Date: Mon, 02 Jan 2006 15:04:05 +0000\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n%s\r\n",
		from, strings.Join(to, ", "), id, headerID(id), bodyMark(id))
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // a hash never fails
	rng := rand.New(rand.NewPCG(h.Sum64(), 0))
	for len(b) < size {
		at := rng.IntN(len(filler) - 70)
		b = append(append(b, filler[at:at+70]...), "\r\n"...)
	}
	return testMessage{id, from, to, b}
}

// filler is the text that bodies are taken from.
var filler = func() []byte {
	const letters = "abcdefghijklmnopqrstuvwxyz      "
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 16<<10)
	for i := range text {
		text[i] = letters[rng.IntN(len(letters))]
	}
	return text
}()

func headerID(id string) string { return "<" + id + "@client.example>" }
func bodyMark(id string) string { return "The mark of this message is " + id + "." }

// outcome is what a client knows about a message or a call afterwards.
type outcome int

const (
	unknown  outcome = iota // no response
	refused                 // by a response, or before all of it was sent
	accepted                // by a response that promises it
	outcomes int     = iota
)

// entry is one line of a ledger.
type entry struct {
	outcome outcome
	to      []string
	size    int // of the raw message; 0 if unknown
}

// ledger records what the service promised to clients.
type ledger struct {
	prefix string

	mu      sync.Mutex
	entries map[string]entry
	counts  [outcomes]int
	last    int
}

func newLedger(prefix string) *ledger { return &ledger{prefix: prefix, entries: map[string]entry{}} }

// next returns a new id.
func (l *ledger) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	return fmt.Sprintf("%s-%06d-end", l.prefix, l.last)
}

// write records the outcome of id.
func (l *ledger) write(id string, e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[id] = e
	l.counts[e.outcome]++
}

// has reports whether the ledger contains id.
func (l *ledger) has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.entries[id]
	return ok
}

func (l *ledger) count(o outcome) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[o]
}

func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d accepted, %d without a response, %d refused", l.counts[accepted], l.counts[unknown], l.counts[refused])
}

// audit compares what is stored with the ledger. byInbox maps the addresses of inboxes
// to their ids. refusedToo allows one copy of a refused message.
func (l *ledger) audit(t *testing.T, stored []message, byInbox map[string]string, refusedToo bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	copies := map[string]map[string]int{} // by id, by inbox
	for _, m := range stored {
		e, known := l.entries[m.Subject]
		switch {
		case !known:
			t.Errorf("%s is stored, and no client sent it", m.Subject)
			continue
		case !strings.Contains(m.Text, bodyMark(m.Subject)):
			t.Errorf("%s is stored with the wrong text: %.80q", m.Subject, m.Text)
		case e.size > 0 && (m.Size != e.size || m.HeaderID != headerID(m.Subject)):
			t.Errorf("%s is stored with %d bytes and Message-ID %s, and was sent with %d bytes", m.Subject, m.Size, m.HeaderID, e.size)
		}
		if copies[m.Subject] == nil {
			copies[m.Subject] = map[string]int{}
		}
		copies[m.Subject][m.InboxID]++
	}
	kept := [outcomes]int{}
	for _, id := range slices.Sorted(maps.Keys(l.entries)) {
		e := l.entries[id]
		if fault := e.fault(copies[id], byInbox, refusedToo); fault != "" {
			t.Errorf("%s %s", id, fault)
		}
		if len(copies[id]) > 0 {
			kept[e.outcome]++
		}
	}
	t.Logf("%d of %d accepted are stored, %d of %d without a response, %d of %d refused", kept[accepted], l.counts[accepted],
		kept[unknown], l.counts[unknown], kept[refused], l.counts[refused])
}

// auditBoth compares the messages of an inbox with two ledgers: of the messages sent
// to it from another inbox, which may still be in transit, and of those received over
// SMTP.
func (in *installation) auditBoth(sent, received *ledger, to inbox, refusedToo bool) {
	in.t.Helper()
	in.settle()
	var ours, theirs []message
	for _, m := range in.messages("in") {
		if sent.has(m.Subject) {
			ours = append(ours, m)
		} else {
			theirs = append(theirs, m)
		}
	}
	sent.audit(in.t, ours, byAddress(to), refusedToo)
	received.audit(in.t, theirs, byAddress(to), refusedToo)
}

// fault says what is wrong with the copies of one message, by inbox.
func (e entry) fault(copies map[string]int, byInbox map[string]string, refusedToo bool) string {
	for _, address := range e.to {
		n := copies[byInbox[address]]
		switch {
		case n > 1:
			return fmt.Sprintf("is stored %d times for %s", n, address)
		case n == 0 && e.outcome == accepted:
			return "was accepted and is not stored for " + address
		case n == 0 && len(copies) > 0:
			return "is stored for some of its recipients, and not for " + address
		case n == 1 && e.outcome == refused && !refusedToo:
			return "was refused and is stored for " + address
		}
	}
	if len(copies) > len(e.to) {
		return fmt.Sprintf("is stored in %d inboxes, and was for %d", len(copies), len(e.to))
	}
	return ""
}
