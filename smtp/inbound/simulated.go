package inbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// Simulate stores a message in an inbox as if it had been received, marked as
// test mode, together with the cached response of an idempotent call. If the
// content would be refused over SMTP, the error is a *compose.FieldError for the
// field raw; other errors are the store's.
func (r *Receiver) Simulate(ctx context.Context, inbox store.Inbox, rawMail io.Reader, once *store.Once) (store.Message, error) {
	raw := r.NewSpool()
	defer r.close(ctx, raw)
	if _, err := io.Copy(raw, rawMail); err != nil {
		return store.Message{}, fmt.Errorf("read the mail: %w", err)
	}
	lim := messageLimits()
	if err := r.inspect(ctx, raw, nil, lim); err != nil {
		return store.Message{}, simulateError(err)
	}
	// With the null reverse-path every message would count as automated.
	m, leave, err := r.prepare(ctx, smtp.Envelope{MailFrom: inbox.Address, RcptTo: []string{inbox.Address}}, raw, nil, lim)
	if err != nil {
		return store.Message{}, simulateError(err)
	}
	defer leave()
	m.TestMode = true
	m.Content.Auth = &store.JSON[mail.AuthResult]{V: mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "none"}}
	stored, err := r.cfg.Store.AddSimulated(ctx, copies(m, []target{{rcpt: inbox.Address, inbox: inbox.Mailbox()}})[0], once)
	if listed, ok := errors.AsType[*store.ListError](err); ok {
		return stored, &compose.FieldError{Field: "from", Reason: "would be refused: " + listed.Error()}
	}
	return stored, err
}

func simulateError(err error) error {
	if errors.Is(err, mime.ErrHeaderTooLarge) {
		return &compose.FieldError{Field: "raw", Reason: "has a header of more than 1 MiB"}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) { // for the temporary file
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	if refused, ok := errors.AsType[*smtp.Reply](err); ok && !refused.Temporary() {
		return &compose.FieldError{Field: "raw", Reason: "would be refused: " + refused.Text}
	}
	return err
}
