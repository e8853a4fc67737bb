package storetest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// Domain is the mail domain of the inboxes that Inbox makes.
const Domain = "in.example"

var count atomic.Int64 // makes names unique within the test binary

// Account makes a further account.
func Account(t testing.TB, s *store.Store) store.Account {
	t.Helper()
	a, err := s.CreateAccount(t.Context(), fmt.Sprintf("account %d", count.Add(1)))
	if err != nil {
		t.Fatalf("make an account: %v", err)
	}
	return a
}

// Secret is the secret of keys that Key makes for this name.
func Secret(name string) string { return "sk_live_test_only_" + name }

// Key makes a full-access live key, with the secret Secret(name), for the
// account with this sequence number.
func Key(t testing.TB, s *store.Store, accountID int64, name string, edits ...func(*store.Key)) store.Key {
	t.Helper()
	k := store.Key{
		AccountID: accountID, Name: name, Hash: store.HashKey(Secret(name)), Prefix: "sk_live_", Hint: "…" + name[max(0, len(name)-4):],
		Mode: store.KeyLive, Scopes: store.JSON[[]string]{V: []string{"*"}}, AllowedIPs: store.JSON[[]string]{V: []string{}},
	}
	for _, edit := range edits {
		edit(&k)
	}
	k, err := s.CreateKey(t.Context(), k)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	return k
}

// Inbox makes an inbox with a name of its own, in an account of its own unless
// an edit sets AccountID.
func Inbox(t testing.TB, s *store.Store, edits ...func(*store.Inbox)) store.Inbox {
	t.Helper()
	in := NewInbox(edits...)
	if in.AccountID == 0 {
		in.AccountID = Account(t, s).Seq
	}
	in, err := s.CreateInbox(t.Context(), in, nil)
	if err != nil {
		t.Fatalf("make an inbox: %v", err)
	}
	return in
}

// NewInbox is an inbox that is ready to be created. Name and domain follow the
// address when an edit sets it.
func NewInbox(edits ...func(*store.Inbox)) store.Inbox {
	in := store.Inbox{
		Address: fmt.Sprintf("inbox%d@%s", count.Add(1), Domain), SendPolicy: store.PolicyOpen, RetentionDays: 7,
		Metadata: store.JSON[store.Labels]{V: store.Labels{}},
	}
	for _, edit := range edits {
		edit(&in)
	}
	in.Name, in.Domain, _ = strings.Cut(in.Address, "@")
	return in
}

// Received stores a small mail in the inbox and returns it as stored.
func Received(t testing.TB, s *store.Store, in store.Inbox, edits ...func(*store.NewMessage)) store.Message {
	t.Helper()
	ms, err := s.AddReceived(t.Context(), []*store.NewMessage{NewReceived(in, edits...)}, nil)
	if err != nil {
		t.Fatalf("receive a message: %v", err)
	}
	return ms[0]
}

// NewReceived is a small mail to the inbox that is ready to be stored. What
// follows from the subject, the sender and the raw bytes does so when an edit
// sets those.
func NewReceived(in store.Inbox, edits ...func(*store.NewMessage)) *store.NewMessage {
	n := count.Add(1)
	m := newMessage(in, n)
	m.Direction, m.Status = store.DirectionIn, store.MessageReceived
	m.Addresses.V = mail.Addresses{
		From: &mail.Address{Name: "Ann", Email: fmt.Sprintf("ann%d@out.example", n)},
		To:   []mail.Address{{Email: in.Address}},
	}
	m.Content.Extracted = &store.JSON[mail.Extraction]{V: mail.Extraction{Codes: []string{}, Links: []string{}}}
	return finish(m, edits)
}

// Sent accepts a small mail from the inbox to the recipients and returns it as
// stored.
func Sent(t testing.TB, s *store.Store, in store.Inbox, to []string, edits ...func(*store.NewMessage)) store.Message {
	t.Helper()
	m, err := s.Enqueue(t.Context(), NewSent(in, to, edits...), nil)
	if err != nil {
		t.Fatalf("send a message: %v", err)
	}
	return m
}

// NewSent is a small mail from the inbox to the recipients, ready to be
// accepted.
func NewSent(in store.Inbox, to []string, edits ...func(*store.NewMessage)) *store.NewMessage {
	m := newMessage(in, count.Add(1))
	m.Direction, m.Status, m.NewThread = store.DirectionOut, store.MessageQueued, true
	m.Addresses.V.From = &mail.Address{Email: in.Address}
	for _, email := range to {
		m.Addresses.V.To = append(m.Addresses.V.To, mail.Address{Email: email})
		_, domain, _ := strings.Cut(email, "@")
		m.Recipients = append(m.Recipients, store.Recipient{Email: email, Domain: domain, Kind: "to"})
	}
	return finish(m, edits)
}

// NewEmail is a small email of the account with this sequence number to the
// recipients, ready to be accepted.
func NewEmail(accountID int64, to []string, edits ...func(*store.NewEmail)) *store.NewEmail {
	in := store.Inbox{AccountID: accountID, Address: "hello@" + Domain}
	m := NewSent(in, to)
	e := &store.NewEmail{Email: store.Email{Message: m.Message, Category: store.CategoryTransactional}}
	e.Content.Body = &store.JSON[store.Body]{V: store.Body{Text: "Hello."}}
	for _, edit := range edits {
		edit(e)
	}
	return e
}

// Email accepts a small email and returns it as stored.
func Email(t testing.TB, s *store.Store, accountID int64, to []string, edits ...func(*store.NewEmail)) store.Email {
	t.Helper()
	e, err := s.EnqueueEmail(t.Context(), NewEmail(accountID, to, edits...), nil)
	if err != nil {
		t.Fatalf("send an email: %v", err)
	}
	return e
}

func newMessage(in store.Inbox, n int64) *store.NewMessage {
	return &store.NewMessage{Message: store.Message{
		AccountID: in.AccountID, InboxSeq: in.Seq,
		Subject:  fmt.Sprintf("Mail %d", n),
		HeaderID: fmt.Sprintf("<%d@storetest.example>", n),
		Content:  &store.Content{Attachments: store.JSON[[]mail.Attachment]{V: []mail.Attachment{}}},
	}}
}

func finish(m *store.NewMessage, edits []func(*store.NewMessage)) *store.NewMessage {
	for _, edit := range edits {
		edit(m)
	}
	if from := m.Addresses.V.From; from != nil && m.FromEmail == "" {
		m.FromEmail = strings.ToLower(from.Email)
	}
	m.SubjectFold = strings.ToLower(m.Subject)
	if m.ThreadSubject == "" {
		m.ThreadSubject, m.ReplyMark = strings.CutPrefix(m.SubjectFold, "re: ")
	}
	if m.Content.Raw == nil && m.Content.BlobKey == nil {
		m.Content.Raw = fmt.Appendf(nil, "From: %s\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: %s\r\n\r\nHello.\r\n",
			m.FromEmail, m.Addresses.V.To[0].Email, m.Subject, m.HeaderID)
	}
	if m.Content.Raw != nil {
		m.Size = int64(len(m.Content.Raw))
	}
	return m
}

// NewDraft is a small draft of a message from the inbox, ready to be stored.
func NewDraft(in store.Inbox, edits ...func(*store.NewDraft)) store.NewDraft {
	n := store.NewDraft{Draft: store.Draft{
		AccountID: in.AccountID, InboxID: in.ID, Kind: store.DraftNew, Subject: fmt.Sprintf("Draft %d", count.Add(1)), CreatedBy: "key_storetest",
		Addresses: store.JSON[mail.Addresses]{V: mail.Addresses{To: []mail.Address{{Email: "ann@out.example"}}}},
		Content: &store.DraftContent{
			Text: "Hello.", Headers: store.JSON[[][2]string]{V: [][2]string{}}, Attachments: store.JSON[[]mail.Attachment]{V: []mail.Attachment{}},
		},
	}}
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

// Clock is a clock that stands still until a test moves it. It is safe for
// use by many goroutines.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a clock that shows at.
func NewClock(at time.Time) *Clock { return &Clock{at: at} }

// Now is the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Add moves the clock by d, which may be negative.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
