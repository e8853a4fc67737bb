package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/harness"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/search"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

// The words to search for: one that nearly all messages contain, one that 1 % contain,
// and one that none contains.
const (
	commonWord = "regards"
	rareWord   = "quarterly"
	noWord     = "zeppelin"
)

// filler stores messages that are all different and whose words are as frequent as those
// of a language.
type filler struct {
	place *harness.Place
	have  int
	inbox store.Inbox
}

// fill stores messages until there are that many, and indexes them.
func (f *filler) fill(ctx context.Context, messages int) error {
	if f.have == 0 { // creates the schema, account and key
		s, err := f.place.Start(ctx)
		if err != nil {
			return err
		}
		s.Stop()
	}
	s, err := f.place.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // the messages are already on the disk
	if f.have == 0 {
		if f.inbox, err = f.makeInbox(ctx, s); err != nil {
			return err
		}
		if err = signIn(ctx, s, f.inbox.AccountID); err != nil {
			return err
		}
	}
	start := time.Now()
	err = harness.Share(ctx, messages-f.have, 64, func(i int) error { // they share transactions
		_, err := s.AddReceived(ctx, []*store.NewMessage{f.message(f.have + i)}, nil)
		return err
	})
	if err != nil {
		return err
	}
	stored := time.Now()
	indexer := search.NewIndexer(search.IndexerConfig{Store: s, Now: time.Now})
	for n := 1; n > 0; {
		if n, err = indexer.RunOnce(ctx); err != nil {
			return err
		}
	}
	n := messages - f.have
	fmt.Printf("stored %d messages at %.0f/s, indexed them at %.0f/s\n", n,
		float64(n)/stored.Sub(start).Seconds(), float64(n)/time.Since(stored).Seconds())
	f.have = messages
	return nil
}

func (*filler) makeInbox(ctx context.Context, s *store.Store) (store.Inbox, error) {
	k, err := s.KeyByHash(ctx, store.HashKey(harness.Key))
	if err != nil {
		return store.Inbox{}, err
	}
	return s.CreateInbox(ctx, store.Inbox{
		AccountID: k.AccountID, Address: "reader@postroom.localhost", Name: "reader", Domain: "postroom.localhost",
		SendPolicy: store.PolicyOpen, RetentionDays: 7, Metadata: store.JSON[store.Labels]{V: store.Labels{}},
	}, nil)
}

// session is the session token of a dashboard user.
const session = "a session of the benchmark's own"

// signIn creates a user with that session.
func signIn(ctx context.Context, s *store.Store, account int64) error {
	link, token := web.NewLink(time.Now())
	if _, err := s.CreateUser(ctx, account, "reader", store.RoleAdmin, link); err != nil {
		return err
	}
	_, err := s.UseLink(ctx, store.HashKey(token), "no password that is known", store.HashKey(session))
	return err
}

// message returns the nth message.
func (f *filler) message(n int) *store.NewMessage {
	r := rand.New(rand.NewPCG(uint64(n), 7)) //nolint:gosec // the same messages each time
	words := rand.NewZipf(r, 1.1, 8, 50_000)
	from := fmt.Sprintf("sender%d@mail%d.example", n%997, n%31)
	id := fmt.Sprintf("<%d@mail.example>", n)
	subject := fmt.Sprintf("Report %d of %s", n, word(words.Uint64()))
	var raw strings.Builder
	fmt.Fprintf(&raw, "From: <%s>\r\nTo: <%s>\r\nSubject: %s\r\nMessage-ID: %s\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n",
		from, f.inbox.Address, subject, id)
	begin := raw.Len()
	if n%20 != 0 {
		raw.WriteString(commonWord + " ")
	}
	if n%100 == 50 {
		raw.WriteString(rareWord + " ")
	}
	for column := 0; raw.Len() < *size; {
		w := word(words.Uint64())
		raw.WriteString(w)
		if column += len(w) + 1; column > 70 {
			raw.WriteString("\r\n")
			column = 0
		} else {
			raw.WriteString(" ")
		}
	}
	text := raw.String()
	return &store.NewMessage{
		Message: store.Message{
			AccountID: f.inbox.AccountID, InboxSeq: f.inbox.Seq, Direction: store.DirectionIn, Status: store.MessageReceived,
			FromEmail: from, Subject: subject, HeaderID: id, Size: int64(len(text)),
			Addresses: store.JSON[mail.Addresses]{V: mail.Addresses{
				From: &mail.Address{Email: from}, To: []mail.Address{{Email: f.inbox.Address}},
			}},
			Content: &store.Content{
				Raw: []byte(text), Snippet: text[begin:min(len(text), begin+140)],
				Body:        &store.JSON[store.Body]{V: store.Body{Text: text[begin:]}},
				Extracted:   &store.JSON[mail.Extraction]{V: mail.Extraction{Codes: []string{}, Links: []string{}}},
				Auth:        &store.JSON[mail.AuthResult]{V: mail.AuthResult{SPF: "pass", DKIM: "pass", DMARC: "pass"}},
				Attachments: store.JSON[[]mail.Attachment]{V: []mail.Attachment{}},
			},
		},
		SubjectFold: strings.ToLower(subject), ThreadSubject: strings.ToLower(subject),
	}
}

// word returns the nth word of an invented language.
func word(n uint64) string {
	const vowels, consonants = "aeiou", "bdfghklmnprstvw"
	w := []byte{consonants[n%15], vowels[n/15%5], consonants[n/75%15]}
	for n /= 1125; n > 0; n /= 75 {
		w = append(w, vowels[n%5], consonants[n/5%15])
	}
	return string(w) + strconv.Itoa(len(w)%3)
}
