package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// maxAhead is how far in the future an email may be scheduled.
const maxAhead = 30 * 24 * time.Hour

// emailSubmission is a submission with the fields that only emails have.
type emailSubmission struct {
	submission
	place       string // prefix of its recipient's fields, such as "recipients[3]."; empty for a single email
	category    store.Category
	tags        store.Labels
	metadata    json.RawMessage
	scheduledAt *store.Time
}

// SendEmail implements POST /v1/emails.
func (a *API) SendEmail(ctx context.Context, req *gen.EmailSend, _ gen.SendEmailParams) (*gen.EmailCreated, error) {
	return whilePolicyChanges(func() (*gen.EmailCreated, error) { return a.sendEmail(ctx, req) })
}

// whilePolicyChanges calls send again if the policy of the sending inbox
// changed meanwhile, because the new policy applies.
func whilePolicyChanges[Answer any](send func() (Answer, error)) (Answer, error) {
	for {
		if answer, err := send(); !errors.Is(err, store.ErrPolicyChanged) {
			return answer, err
		}
	}
}

func (a *API) sendEmail(ctx context.Context, req *gen.EmailSend) (*gen.EmailCreated, error) {
	s, err := a.emailFromAPI(ctx, req)
	if err != nil {
		return nil, err
	}
	ns, err := a.newEmails(ctx, s)
	if err != nil {
		return nil, err
	}
	e, err := a.store.EnqueueEmail(ctx, ns[0], httpapi.Once(ctx, http.StatusCreated, "EmailCreated", func(e store.Email) (any, error) {
		return emailCreatedToAPI(e), nil
	}))
	if err != nil {
		return nil, err
	}
	return emailCreatedToAPI(e), nil
}

// emailFromAPI reads a request.
func (a *API) emailFromAPI(ctx context.Context, req *gen.EmailSend) (*emailSubmission, error) {
	s := &emailSubmission{category: store.Category(req.Category.Or(gen.EmailSendCategoryTransactional))}
	if err := a.from(ctx, s, string(req.From)); err != nil {
		return nil, err
	}
	var err error
	if s.to, err = mailboxesFromAPI("to", req.To); err != nil {
		return nil, err
	}
	if s.cc, err = optionalMailboxes("cc", req.Cc); err != nil {
		return nil, err
	}
	if s.bcc, err = optionalMailboxes("bcc", req.Bcc); err != nil {
		return nil, err
	}
	if to, ok := req.ReplyTo.Get(); ok {
		if s.replyTo, err = mailboxList("replyTo", []gen.Mailbox{to}, false); err != nil {
			return nil, err
		}
	}
	if s.attachments, err = emailAttachments(ctx, req.Attachments); err != nil {
		return nil, err
	}
	if err := s.label("", req.Tags, req.Metadata); err != nil {
		return nil, err
	}
	if at, ok := req.ScheduledAt.Get(); ok {
		if s.scheduledAt, err = a.schedule(at); err != nil {
			return nil, err
		}
	}
	said, err := a.scriptOf(ctx, parts{subject: req.Subject, html: req.HTML, text: req.Text, template: req.Template, render: req.Data.Set})
	if err != nil {
		return nil, err
	}
	values, err := variablesFromAPI("data", req.Data.Value)
	if err != nil {
		return nil, err
	}
	return s, said.fill(s, values, func(string) string { return "data" })
}

// from sets the sender of the email and checks that the caller may use it.
func (a *API) from(ctx context.Context, s *emailSubmission, from string) error {
	list, err := mailboxList("from", []gen.Mailbox{gen.Mailbox(from)}, false)
	if err != nil {
		return err
	}
	s.from, s.account, s.kind, s.isEmail = list[0], httpapi.Caller(ctx).AccountID, store.DraftNew, true
	s.inbox, err = a.sender(ctx, s.from)
	return err
}

// label reads tags and metadata. place is the prefix of their field names.
func (s *emailSubmission) label(place string, tags gen.OptTags, metadata gen.OptFreeObject) error {
	var err error
	s.place = place
	if s.tags, err = tagsFromAPI(place, tags.Value); err != nil || !metadata.Set {
		return err
	}
	s.metadata, err = metadataJSON(place+"metadata", metadata.Value)
	return err
}

// schedule returns when to send an email, or nil for now.
func (a *API) schedule(at time.Time) (*store.Time, error) {
	if err := a.checkSchedule(at); err != nil || !at.After(a.now()) {
		return nil, err
	}
	due := store.NewTime(at)
	return &due, nil
}

func (a *API) checkSchedule(at time.Time) error {
	if at.After(a.now().Add(maxAhead)) {
		return httpapi.Invalid("scheduledAt", "must be at most 30 days ahead")
	}
	return nil
}

// newEmails prepares emails of one caller for the store.
func (a *API) newEmails(ctx context.Context, all ...*emailSubmission) ([]*store.NewEmail, error) {
	mails := make([]*composed, len(all))
	subs := make([]*submission, len(all))
	for i, s := range all {
		var err error
		if mails[i], err = a.prepare(ctx, &s.submission); err != nil {
			return nil, s.atPlace(err)
		}
		subs[i] = &s.submission
	}
	if err := a.skipSuppressed(ctx, all[0].category, subs...); err != nil {
		return nil, all[0].ofAll(err)
	}
	ns := make([]*store.NewEmail, len(all))
	for i, s := range all {
		var err error
		if ns[i], err = a.newEmail(ctx, s, mails[i]); err != nil {
			return nil, err
		}
	}
	return ns, nil
}

// newEmail converts a composed email for the store.
func (a *API) newEmail(ctx context.Context, s *emailSubmission, raw *composed) (*store.NewEmail, error) {
	content, err := a.contentOf(ctx, raw)
	if err != nil {
		return nil, err
	}
	// Store the content as submitted. The parsed message has text derived from
	// the HTML and other line endings.
	content.Body = &store.JSON[store.Body]{V: store.Body{Text: s.text, HTML: s.html}}
	n := &store.NewEmail{Email: store.Email{
		Message: store.Message{
			ID: emailID(raw.id), AccountID: s.account, TestMode: s.testMode, FromEmail: mail.FoldAddress(s.from.Email),
			Addresses: store.JSON[mail.Addresses]{V: s.addresses(&raw.out.From)}, Subject: s.subject, HeaderID: raw.out.HeaderID,
			Automated: raw.parsed.Automated(false), Size: raw.size, Content: content, Recipients: recipientsOf(s.submission),
		},
		Category: s.category, Tags: store.JSON[store.Labels]{V: s.tags}, Metadata: store.JSON[json.RawMessage]{V: s.metadata},
		ScheduledAt: s.scheduledAt,
	}, CreatedBy: httpapi.Caller(ctx).ID}
	if s.inbox.Seq != 0 {
		n.FromInbox, n.Policy = &s.inbox.Seq, s.inbox.SendPolicy
	}
	return n, nil
}

// emailFields maps the field names of a message to those of an email.
var emailFields = strings.NewReplacer("reply_to[0]", "replyTo", ".content_type", ".contentType")

// ofRecipient lists the fields that each recipient of a batch has. The other
// fields belong to the batch.
var ofRecipient = []string{"to"}

// atPlace corrects the field name in an error to the one in the request.
func (s *emailSubmission) atPlace(err error) error {
	e, ok := errors.AsType[*httpapi.Error](err)
	if !ok || e.Param == "" {
		return err
	}
	at := *e
	at.Param = emailFields.Replace(e.Param)
	for _, field := range ofRecipient {
		if strings.HasPrefix(at.Param, field) {
			at.Param = s.place + at.Param
		}
	}
	if rest, ok := strings.CutPrefix(e.Message, e.Param); ok {
		at.Message = at.Param + rest
	}
	return &at
}

// ofAll names the field that holds all recipients of a batch.
func (s *emailSubmission) ofAll(err error) error {
	if e, ok := errors.AsType[*httpapi.Error](err); ok && s.place != "" {
		at := *e
		at.Param = "recipients"
		return &at
	}
	return err
}
