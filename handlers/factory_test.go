package handlers_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/apikey"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/calendar"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

var count atomic.Int64

// newKey stores a key of the server's account and returns its secret.
func (s *server) newKey(t *testing.T, edits ...func(*store.Key)) string {
	t.Helper()
	secret := apikey.New("live", "sk")
	storetest.Key(t, s.store, s.account, fmt.Sprintf("key %d", count.Add(1)), append([]func(*store.Key){func(k *store.Key) {
		k.Hash, k.Prefix, k.Hint = store.HashKey(secret), apikey.Prefix(secret), apikey.Hint(secret)
	}}, edits...)...)
	return secret
}

func scopes(names ...string) func(*store.Key) {
	return func(k *store.Key) { k.Scopes.V = names }
}

func onlyInboxes(ids ...string) func(*store.Key) {
	return func(k *store.Key) { k.InboxIDs = &store.JSON[[]string]{V: ids} }
}

// newInbox stores an inbox of the server's account.
func (s *server) newInbox(t *testing.T, edits ...func(*store.Inbox)) store.Inbox {
	t.Helper()
	return storetest.Inbox(t, s.store, append([]func(*store.Inbox){func(in *store.Inbox) {
		in.AccountID = s.account
		in.Address = fmt.Sprintf("inbox%d@%s", count.Add(1), mailDomain)
	}}, edits...)...)
}

// otherInbox stores an inbox of another account.
func (s *server) otherInbox(t *testing.T) store.Inbox {
	t.Helper()
	return storetest.Inbox(t, s.store)
}

// mailOf returns a received message from header fields, an empty line and text.
// It converts line endings and adds From and To if missing.
func mailOf(in store.Inbox, text string) string {
	head, body, ok := strings.Cut(strings.Trim(text, "\n"), "\n\n")
	if !ok {
		body = "Hello."
	}
	if !strings.Contains("\n"+head, "\nFrom:") {
		head = "From: Ann <ann@out.example>\n" + head
	}
	if !strings.Contains("\n"+head, "\nTo:") {
		head += "\nTo: " + in.Address
	}
	return strings.ReplaceAll(head+"\n\n"+body+"\n", "\n", "\r\n")
}

// receive stores a message like the SMTP server, with its derived fields.
func (s *server) receive(t *testing.T, in store.Inbox, text string, edits ...func(*store.NewMessage)) store.Message {
	t.Helper()
	m := s.received(t, in, []byte(mailOf(in, text)))
	for _, edit := range edits {
		edit(m)
	}
	return s.add(t, m)
}

func (s *server) add(t *testing.T, m *store.NewMessage) store.Message {
	t.Helper()
	ms, err := s.store.AddReceived(t.Context(), []*store.NewMessage{m}, nil)
	if err != nil {
		t.Fatalf("receive a message: %v", err)
	}
	return ms[0]
}

// received parses a raw message for the store.
func (s *server) received(t *testing.T, in store.Inbox, raw []byte) *store.NewMessage {
	t.Helper()
	p, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatalf("parse a message: %v", err)
	}
	found := extract.CodesAndLinks(p.Subject, p.Text, p.HTML)
	found.Calendar, _ = calendar.Read(p.Calendar)
	m := storetest.NewReceived(in, func(m *store.NewMessage) {
		m.Subject, m.HeaderID, m.Automated = p.Subject, p.HeaderID, p.Automated(false)
		m.ThreadSubject = strings.ToLower(reply.NormalizeSubject(p.Subject))
		m.ReplyMark = reply.HasReplyMark(p.Subject)
		m.Refs.V = store.References{InReplyTo: p.InReplyTo, References: p.References}
		m.Addresses.V = mail.Addresses{To: addresses(p.To), Cc: addresses(p.Cc), ReplyTo: addresses(p.ReplyTo)}
		if p.From != nil {
			m.Addresses.V.From = &mail.Address{Name: p.From.Name, Email: p.From.Email}
			m.FromEmail = mail.FoldAddress(p.From.Email)
		}
		m.HasCode, m.HasLink = len(found.Codes) > 0, len(found.Links) > 0
		all := extract.Derive(p, mail.DefaultLimits())
		body := store.Body{Text: all.Text, HTML: p.HTML, FromHTML: all.FromHTML}
		if all.ReplyText != all.Text {
			body.Reply = &all.ReplyText
		}
		m.Content = &store.Content{
			Safety: &store.JSON[mail.Safety]{V: all.Safety}, Body: &store.JSON[store.Body]{V: body},
			Raw: raw, Snippet: plaintext.Snippet(p.Text), Extracted: &store.JSON[mail.Extraction]{V: mail.Extraction(found)},
			Attachments: store.JSON[[]mail.Attachment]{V: []mail.Attachment{}},
		}
		for _, a := range p.Attachments {
			m.Content.Attachments.V = append(m.Content.Attachments.V, mail.Attachment{
				ID: store.NewID("att_", s.clock.Now()), Part: a.Part, Filename: a.Filename, ContentType: a.ContentType,
				ContentID: a.ContentID, Inline: a.Inline, Size: a.Size,
			})
		}
	})
	if len(raw) > store.RawInRow {
		key, _, err := s.store.PutBlob(t.Context(), bytes.NewReader(raw), int64(len(raw)))
		must(t, err)
		m.Content.Raw, m.Content.BlobKey = nil, &key
		m.Content.Body = &store.JSON[store.Body]{V: store.Body{Text: p.Text, HTML: p.HTML}}
		m.Size = int64(len(raw))
	}
	return m
}

func addresses(in []mail.Address) []mail.Address {
	out := make([]mail.Address, len(in))
	for i, a := range in {
		out[i] = mail.Address(a)
	}
	return out
}

// after formats the time d after the start of the clocks.
func after(d time.Duration) string { return begin.Add(d).Format("2006-01-02T15:04:05.000Z07:00") }
