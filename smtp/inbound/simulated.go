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

// notAuthenticated are the verdicts on a mail that came from nowhere.
var notAuthenticated = mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "none"}

// Simulate puts a mail into an inbox as if it had been received, marked as test
// mode, with the answer to an idempotent call. A mail that would be refused on
// the wire for what it says is a *compose.FieldError of the field raw; other
// errors are the store's.
func (r *Receiver) Simulate(ctx context.Context, inbox store.Inbox, rawMail io.Reader, once *store.Once) (store.Message, error) {
	raw := r.NewSpool()
	defer r.close(ctx, raw)
	if _, err := io.Copy(raw, rawMail); err != nil {
		return store.Message{}, fmt.Errorf("read the mail: %w", err)
	}
	// A reverse-path of somebody: the null one would make every mail automated.
	in, leave, err := r.take(ctx, smtp.Envelope{MailFrom: inbox.Address, RcptTo: []string{inbox.Address}}, raw, nil, r.messageLimits())
	if err != nil {
		return store.Message{}, simulateError(err)
	}
	defer leave()
	in.message.TestMode = true
	in.content.Auth = &store.JSON[mail.AuthResult]{V: notAuthenticated}
	return r.store.AddSimulated(ctx, in.copies([]target{{inbox: inbox.Mailbox()}})[0], once)
}

func simulateError(err error) error {
	if errors.Is(err, mime.ErrHeaderTooLarge) {
		return &compose.FieldError{Field: "raw", Reason: "has a header of more than 1 MiB"}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) { // for its temporary file
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	if refused, ok := errors.AsType[*smtp.Reply](err); ok && !refused.Temporary() {
		return &compose.FieldError{Field: "raw", Reason: "would be refused: " + refused.Text}
	}
	return err
}
