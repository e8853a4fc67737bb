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

// notAuthenticated is the authentication result of a simulated message.
var notAuthenticated = mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "none"}

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
	in, leave, err := r.take(ctx, smtp.Envelope{MailFrom: inbox.Address, RcptTo: []string{inbox.Address}}, raw, nil, lim)
	if err != nil {
		return store.Message{}, simulateError(err)
	}
	defer leave()
	in.message.TestMode = true
	in.content.Auth = &store.JSON[mail.AuthResult]{V: notAuthenticated}
	m, err := r.cfg.Store.AddSimulated(ctx, in.copies([]target{{rcpt: inbox.Address, inbox: inbox.Mailbox()}})[0], once)
	if listed, ok := errors.AsType[*store.ListError](err); ok {
		return m, &compose.FieldError{Field: "from", Reason: "would be refused: " + listed.Error()}
	}
	return m, err
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
