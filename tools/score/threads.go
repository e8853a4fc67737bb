package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/bounce"
	"github.com/postroom/postroom/internal/mail/reply"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/store"
)

type threadRecord struct {
	ID       string `json:"id"`
	Grade    string `json:"grade"`
	Messages []struct {
		Name      string `json:"k"`
		Inbox     string `json:"inbox"`
		Direction string `json:"direction"`
		Raw       string `json:"raw"`
	} `json:"mails"`
	Expected struct {
		Threads [][]string `json:"threads"`
	} `json:"expected"`
}

func scoreThreads(ctx context.Context, c *corpus) (rows []row, err error) {
	list, err := records[threadRecord](c, "threads.jsonl")
	if err != nil {
		return nil, err
	}
	office, err := openOffice(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, office.close()) }()
	tallies := byGrade[share]{}
	for i := range list {
		got, err := office.threads(ctx, &list[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list[i].ID, err)
		}
		want := partition(list[i].Expected.Threads)
		if tallies.of(list[i].Grade).add(got == want); got != want {
			c.miss(list[i].ID, "threads %s, want %s", got, want)
		}
	}
	return tallies.rows(func(s *share) []row { return []row{s.atLeast("threads", 1)} }), nil
}

// domain is the mail domain of the office.
const domain = "inbox.example.test"

// office is a store with a receiver, in a temporary folder.
type office struct {
	folder   string
	store    *store.Store
	receiver *inbound.Receiver
}

func openOffice(ctx context.Context) (o *office, err error) {
	folder, err := os.MkdirTemp("", "postroom-score-")
	if err != nil {
		return nil, err
	}
	o = &office{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	blobs, err := store.OpenBlobFolder(filepath.Join(folder, "blobs"), time.Now)
	if err != nil {
		return o, err
	}
	quiet := slog.New(slog.DiscardHandler)
	cfg := store.Config{
		Database: filepath.Join(folder, "score.db"), Blobs: blobs, Log: quiet,
		CursorKey: make([]byte, 32), SealKey: make([]byte, 32), // the database is temporary
	}
	if _, err := store.Migrate(ctx, cfg); err != nil {
		return o, err
	}
	if o.store, err = store.Open(ctx, cfg); err != nil {
		return o, err
	}
	o.receiver, err = inbound.NewReceiver(inbound.ReceiverConfig{
		Store: o.store, Domain: domain, TempDir: filepath.Join(folder, "tmp"), Log: quiet,
	})
	return o, err
}

func (o *office) close() error {
	var err error
	if o.store != nil {
		err = o.store.Close()
	}
	return errors.Join(err, os.RemoveAll(o.folder))
}

// threads stores the messages of a record in separate inboxes, in order, and
// returns the resulting threads.
func (o *office) threads(ctx context.Context, r *threadRecord) (string, error) {
	account, err := o.store.CreateAccount(ctx, r.ID)
	if err != nil {
		return "", err
	}
	inboxes, names := map[string]store.Inbox{}, map[string]string{}
	for _, m := range r.Messages {
		in, ok := inboxes[m.Inbox]
		if !ok {
			if in, err = o.inbox(ctx, account, "agent-"+m.Inbox+"-"+r.ID); err != nil {
				return "", err
			}
			inboxes[m.Inbox] = in
		}
		// The records share inbox names, but addresses cannot be reused.
		raw := strings.ReplaceAll(m.Raw, "agent-"+m.Inbox+"@"+domain, in.Address)
		id, err := o.put(ctx, in, m.Direction, raw, names)
		if err != nil {
			return "", fmt.Errorf("mail %s: %w", m.Name, err)
		}
		names[id] = m.Name
	}
	threads := map[string][]string{}
	for id, name := range names {
		m, err := o.store.Message(ctx, account.Seq, id) // threads may have been merged since
		if err != nil {
			return "", err
		}
		threads[m.ThreadID] = append(threads[m.ThreadID], name)
	}
	return partition(slices.Collect(maps.Values(threads))), nil
}

func (o *office) inbox(ctx context.Context, a store.Account, name string) (store.Inbox, error) {
	return o.store.CreateInbox(ctx, store.Inbox{
		AccountID: a.Seq, Address: name + "@" + domain, Name: name, Domain: domain, SendPolicy: store.PolicyOpen, RetentionDays: 7,
		Metadata: store.JSON[store.Labels]{V: store.Labels{}},
	}, nil)
}

// put receives a message, or stores it as a sent one, and returns its id.
// earlier holds the ids of the messages stored before it.
func (o *office) put(ctx context.Context, in store.Inbox, direction, raw string, earlier map[string]string) (string, error) {
	if direction == string(store.DirectionOut) {
		return o.send(ctx, in, raw, earlier)
	}
	spool := o.receiver.NewSpool()
	defer func() { _ = spool.Close() }() // removed with the folder
	if _, err := spool.Write([]byte(raw)); err != nil {
		return "", err
	}
	from, err := envelopeSender([]byte(raw))
	if err != nil {
		return "", err
	}
	stored, err := o.receiver.Receive(ctx, smtp.Envelope{MailFrom: from, RcptTo: []string{in.Address}}, spool)
	if err != nil {
		return "", err
	}
	return stored[0].ID, nil
}

// envelopeSender returns the reverse-path that a message arrives with: none for
// bounces and automatic replies, else the address in From.
func envelopeSender(raw []byte) (string, error) {
	rep, err := bounce.Read(bytes.NewReader(raw), true, mail.DefaultLimits())
	if err != nil || len(rep.Recipients) > 0 && rep.FeedbackType == "" {
		return "", err
	}
	m, err := parse(raw)
	if err != nil || m.From == nil {
		return "", err
	}
	return m.From.Email, nil
}

// send stores a sent message. It starts a thread, as the send operation does,
// or joins that of the message it replies to, as the reply operation does.
func (o *office) send(ctx context.Context, in store.Inbox, raw string, earlier map[string]string) (string, error) {
	m, err := parse([]byte(raw))
	if err != nil {
		return "", err
	}
	out := &store.NewMessage{
		Message: store.Message{
			AccountID: in.AccountID, InboxSeq: in.Seq, Direction: store.DirectionOut, Status: store.MessageQueued,
			FromEmail: in.Address, Subject: m.Subject, HeaderID: m.HeaderID, Size: int64(len(raw)),
			Content: &store.Content{Raw: []byte(raw), Attachments: store.JSON[[]mail.Attachment]{V: []mail.Attachment{}}},
		},
		SubjectFold: strings.ToLower(m.Subject), ThreadSubject: strings.ToLower(reply.NormalizeSubject(m.Subject)),
	}
	source, err := o.source(ctx, in, m.InReplyTo, earlier)
	if err != nil {
		return "", err
	}
	out.JoinThread, out.NewThread = source.ThreadSeq, source.ThreadSeq == 0
	out.Refs.V = source.ReplyReferences()
	out.Addresses.V.From = &mail.Address{Email: in.Address}
	for _, a := range m.To {
		out.Addresses.V.To = append(out.Addresses.V.To, mail.Address(a))
		_, to, _ := strings.Cut(a.Email, "@")
		out.Recipients = append(out.Recipients, store.Recipient{Email: a.Email, Domain: to, Kind: "to"})
	}
	stored, err := o.store.Enqueue(ctx, out, nil)
	return stored.ID, err
}

// source returns the message of the inbox that a sent message replies to, or an
// empty one.
func (o *office) source(ctx context.Context, in store.Inbox, replyTo []string, earlier map[string]string) (store.Message, error) {
	for id := range earlier {
		m, err := o.store.Message(ctx, in.AccountID, id)
		if err != nil || m.InboxSeq == in.Seq && m.HeaderID != "" && slices.Contains(replyTo, m.HeaderID) {
			return m, err
		}
	}
	return store.Message{}, nil
}

// partition formats groups of names in a canonical order.
func partition(groups [][]string) string {
	var out []string
	for _, g := range groups {
		slices.Sort(g)
		out = append(out, "{"+strings.Join(g, " ")+"}")
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
