package inbound

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	mailreply "github.com/postroom/postroom/internal/mail/reply"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// inspect reads the header of the message, refuses it if it loops, and gives it to the
// authentication check.
func (r *Receiver) inspect(ctx context.Context, raw *spool.Spool, auth *mailauth.Check, lim mail.Limits) error {
	return r.withRaw(ctx, raw, lim, func(whole io.ReadSeeker) error {
		fields, _, err := mime.ReadHeader(whole, lim)
		if err != nil {
			return err
		}
		hops := 0
		for _, f := range fields {
			if bytes.EqualFold(f.Name, []byte("Received")) {
				hops++
			}
		}
		if hops > maxReceived {
			return replyLoop
		}
		if _, err := whole.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return auth.Read(whole, lim)
	})
}

// prepare keeps and parses a message that inspect has read. A large one is parsed only when the
// authentication results have arrived, which may take long, and when there is memory for
// its content; leave frees that memory.
func (r *Receiver) prepare(ctx context.Context, env smtp.Envelope, raw *spool.Spool, auth *mailauth.Check, lim mail.Limits) (m *store.NewMessage, leave func(), err error) {
	kept, err := r.keepRaw(ctx, raw)
	if err != nil {
		return nil, nil, err
	}
	leave = func() {}
	if kept.BlobKey != nil {
		auth.Wait()
		if leave, err = enter(ctx, r.large); err != nil {
			return nil, nil, err
		}
	}
	if m, err = r.parse(ctx, env, raw, lim); err != nil {
		leave()
		return nil, nil, err
	}
	m.Content.Raw, m.Content.BlobKey, m.Content.BlobSum = kept.Raw, kept.BlobKey, kept.BlobSum
	return m, leave, nil
}

// enter waits for a slot.
func enter(ctx context.Context, slots chan struct{}) (leave func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// withRaw runs a function that reads the message, within the processor time for one. Only a
// few messages are read at a time, which bounds memory.
func (r *Receiver) withRaw(ctx context.Context, raw *spool.Spool, lim mail.Limits, read func(io.ReadSeeker) error) error {
	leave, err := enter(ctx, r.reading)
	if err != nil {
		return err
	}
	defer leave()
	whole, err := raw.Reader()
	if err != nil {
		return err
	}
	lim.Budget.Run(func() { err = read(whole) })
	if err != nil {
		return fmt.Errorf("read the mail: %w", err)
	}
	return nil
}

// parse parses the message and derives the stored fields, which are the same in every copy.
func (r *Receiver) parse(ctx context.Context, env smtp.Envelope, raw *spool.Spool, lim mail.Limits) (out *store.NewMessage, err error) {
	err = r.withRaw(ctx, raw, lim, func(whole io.ReadSeeker) error {
		m, err := mime.Parse(whole, lim)
		if err == nil {
			out = r.newMessage(env, m, extract.Derive(m, lim), raw.Size())
		}
		return err
	})
	return out, err
}

func (r *Receiver) newMessage(env smtp.Envelope, m *mime.Message, d extract.Derived, size int64) *store.NewMessage {
	subject := plaintext.Truncate(m.Subject, maxSubject)
	out := &store.NewMessage{
		Message: store.Message{
			Direction: store.DirectionIn,
			Status:    store.MessageReceived,
			Addresses: store.JSON[mail.Addresses]{V: m.Addresses},
			Subject:   subject,
			HeaderID:  m.HeaderID,
			Refs:      store.JSON[store.References]{V: store.References{InReplyTo: m.InReplyTo, References: m.References}},
			Automated: m.Automated(env.MailFrom == ""),
			HasCode:   len(d.Extracted.Codes) > 0,
			HasLink:   len(d.Extracted.Links) > 0,
			Truncated: m.Truncated || d.Truncated,
			Size:      size,
			Content: &store.Content{
				Body:    &store.JSON[store.Body]{V: store.Body{Text: d.Text, HTML: m.HTML, FromHTML: d.FromHTML}},
				Snippet: d.Snippet, Safety: &store.JSON[mail.Safety]{V: d.Safety},
				Extracted:   &store.JSON[mail.Extraction]{V: d.Extracted},
				Attachments: store.JSON[[]mail.Attachment]{V: store.NewAttachments(m.Attachments, r.cfg.Now())},
			},
		},
		SubjectFold:   strings.ToLower(subject),
		ThreadSubject: strings.ToLower(mailreply.NormalizeSubject(subject)),
		ReplyMark:     mailreply.HasReplyMark(subject),
	}
	if d.ReplyText != d.Text {
		out.Content.Body.V.Reply = &d.ReplyText
	}
	if m.From != nil {
		out.FromEmail = mail.FoldAddress(m.From.Email)
	}
	return out
}

// keepRaw returns the raw message as content: inline, or, if it is too large, as
// a blob that all copies share.
func (r *Receiver) keepRaw(ctx context.Context, raw *spool.Spool) (store.Content, error) {
	if b, ok := raw.Bytes(); ok {
		return store.Content{Raw: b}, nil
	}
	whole, err := raw.Reader()
	if err != nil {
		return store.Content{}, err
	}
	key, sum, err := r.cfg.Store.PutBlob(ctx, whole, raw.Size())
	if err != nil {
		return store.Content{}, fmt.Errorf("keep the raw mail: %w", err)
	}
	return store.Content{BlobKey: &key, BlobSum: sum}, nil
}

// copies returns one message per target.
func copies(of *store.NewMessage, to []target) []*store.NewMessage {
	all := make([]*store.NewMessage, len(to))
	for i, t := range to {
		m, content := *of, *of.Content
		m.AccountID, m.InboxSeq, m.Tag, m.Content = t.inbox.AccountID, t.inbox.Seq, t.tag, &content
		if t.sent == nil { // a reverse-path is not an address that people write to
			m.DeliveredTo = new(mail.FoldAddress(t.rcpt))
		}
		all[i] = &m
	}
	return all
}
