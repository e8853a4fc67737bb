package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/ids"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/template"
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
func (a *API) SendEmail(ctx context.Context, req *gen.EmailSend, _ gen.SendEmailParams) (gen.SendEmailRes, error) {
	s, err := a.emailFromAPI(ctx, req)
	if err != nil {
		return nil, err
	}
	return a.enqueueEmail(ctx, s)
}

// enqueueEmail queues one email and caches the response of an idempotent call. If
// the email needs approval, it becomes a draft.
func (a *API) enqueueEmail(ctx context.Context, s *emailSubmission) (gen.SendEmailRes, error) {
	ns, err := a.newEmails(ctx, s)
	if err != nil {
		return nil, err
	}
	e, err := a.store.EnqueueEmail(ctx, ns[0], httpapi.Once(ctx, http.StatusCreated, "EmailCreated", func(e store.Email) (any, error) {
		return emailCreatedToAPI(e), nil
	}))
	if store.NeedsApproval(err) {
		n, err := a.draftOfSubmission(ctx, s)
		if err != nil {
			return nil, err
		}
		return a.createDraft(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	return emailCreatedToAPI(e), nil
}

// emailFromAPI reads a request.
func (a *API) emailFromAPI(ctx context.Context, req *gen.EmailSend) (*emailSubmission, error) {
	s := &emailSubmission{category: store.Category(req.Category.Or(gen.EmailSendCategoryTransactional))}
	if err := a.from(ctx, s, req.From); err != nil {
		return nil, err
	}
	var err error
	if s.to, err = addressesFromAPI("to", req.To); err != nil {
		return nil, err
	}
	if s.cc, err = optionalAddresses("cc", req.Cc); err != nil {
		return nil, err
	}
	if s.bcc, err = optionalAddresses("bcc", req.Bcc); err != nil {
		return nil, err
	}
	if err := s.extend(req.ReplyTo, req.Headers, req.Attachments); err != nil {
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
func (a *API) from(ctx context.Context, s *emailSubmission, from gen.Address) error {
	var err error
	if s.from, err = addressFromAPI("from", from); err != nil {
		return err
	}
	s.account, s.kind, s.isEmail = httpapi.Caller(ctx).AccountID, store.DraftNew, true
	s.inbox, err = a.sender(ctx, s.from)
	return err
}

// extend reads the fields that single emails and batches share.
func (s *emailSubmission) extend(replyTo gen.OptNilOptionalRecipients, headers gen.OptNilMailHeaders, files gen.EmailAttachmentInputs) (err error) {
	if s.replyTo, err = optionalAddresses("replyTo", replyTo); err != nil {
		return err
	}
	if s.headers, err = headersFromAPI(headers); err != nil {
		return err
	}
	s.attachments, err = emailAttachmentsFromAPI(files)
	return err
}

// label reads tags and metadata. place is the prefix of their field names.
func (s *emailSubmission) label(place string, tags gen.OptEmailTags, metadata gen.OptFreeObject) error {
	var err error
	s.place = place
	if s.tags, err = emailTagsFromAPI(place, tags.Value); err != nil || !metadata.Set {
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
	messages := make([]*composed, len(all))
	for i, s := range all {
		var err error
		if messages[i], err = a.prepare(ctx, &s.submission); err != nil {
			return nil, s.atPlace(err)
		}
	}
	ns := make([]*store.NewEmail, len(all))
	for i, s := range all {
		var err error
		if ns[i], err = a.newEmail(ctx, s, messages[i]); err != nil {
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
			ID: raw.id, AccountID: s.account, TestMode: s.testMode, FromEmail: mail.FoldAddress(s.from.Email),
			Addresses: store.JSON[mail.Addresses]{V: s.addresses(&raw.out.From)}, Subject: s.subject, HeaderID: raw.out.HeaderID,
			Automated: raw.parsed.Automated(false), Size: raw.size, Content: content, Recipients: recipientsOf(s.submission),
		},
		Category: s.category, Tags: store.JSON[store.Labels]{V: s.tags}, Metadata: store.JSON[json.RawMessage]{V: s.metadata},
		ScheduledAt: s.scheduledAt,
	}, CreatedBy: senderOf(ctx), Text: raw.out.Text, VerifiedDomain: a.toVerify(domainOf(s.from.Email))}
	if s.inbox.Seq != 0 {
		n.FromInbox = &s.inbox.Seq
		n.Draft = func(ctx context.Context) (store.NewDraft, error) { return a.draftOfSubmission(ctx, s) }
	}
	return n, nil
}

// emailFields maps the field names of a message to those of an email.
var emailFields = strings.NewReplacer("reply_to", "replyTo", ".content_type", ".contentType", ".content_id", ".contentId")

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

// checkSendingDomain refuses the domain of from, in lower case, that the caller's account
// may not send from. The store decides again when it accepts the email.
func (a *API) checkSendingDomain(ctx context.Context, from, domain string) error {
	if a.toVerify(domain) == "" {
		return nil
	}
	owner, err := a.store.DomainOwner(ctx, domain)
	if errors.Is(err, store.ErrNotFound) || err == nil && owner != httpapi.Caller(ctx).AccountID {
		return errSender(from, "must be on the mail domain of the installation or on a verified domain of this account")
	}
	return err
}

// sender checks that the caller may send an email from an address and returns
// the inbox with that address, if any. The restrictions of the inbox also apply
// to emails from its address: its policy holds, and a key with inbox_ids sends
// from those inboxes only.
func (a *API) sender(ctx context.Context, from mail.Address) (store.Inbox, error) {
	k := httpapi.Caller(ctx)
	local, domain := cutAddress(from.Email)
	none := store.Inbox{}
	if err := a.checkSendingDomain(ctx, from.Email, domain); err != nil {
		return none, err
	}
	if strings.HasPrefix(local, `"`) { // quoting could disguise the address of an inbox
		return none, httpapi.Invalid("from", "must not have a quoted local part")
	}
	name, _, _ := strings.Cut(mail.FoldAddress(local), "+")
	wholeDomain, err := a.hasWholeDomain(ctx, k.AccountID, domain)
	if err != nil {
		return none, err
	}
	if !wholeDomain && mail.IsRole(name) {
		return none, errSender(from.Email, "uses a name that is reserved for the operator of the shared mail domain")
	}
	in, err := a.store.InboxAt(ctx, a.domainOwner(k, domain), name+"@"+domain)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if httpapi.Visible(k) != nil {
			return none, httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key sends from its inboxes only")
		}
		if !wholeDomain {
			return none, errSender(from.Email, "must be the address of an inbox of this account, because it is on the shared mail domain")
		}
		if domain == a.cfg.MailDomain {
			holder, err := a.store.FreedBy(ctx, name+"@"+domain)
			if err == nil && holder != 0 && holder != k.AccountID {
				err = errBelonged(from.Email)
			}
			return none, err
		}
		return none, nil
	case err != nil:
		return none, err
	case in.AccountID != k.AccountID || in.Status == store.InboxDeleted:
		return none, errBelonged(from.Email)
	case httpapi.Visible(k) != nil && !slices.Contains(httpapi.Visible(k), in.ID):
		return none, httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key sends from its inboxes only")
	}
	return in, nil
}

// hasWholeDomain reports whether an account may send from addresses on a domain
// that are not its inboxes. On the shared mail domain of the installation only
// the first account may.
func (a *API) hasWholeDomain(ctx context.Context, accountID int64, domain string) (bool, error) {
	if domain != a.cfg.MailDomain {
		return true, nil
	}
	return a.isFirstAccount(ctx, accountID)
}

// isFirstAccount reports whether an account is the first of the installation.
func (a *API) isFirstAccount(ctx context.Context, accountID int64) (bool, error) {
	first := a.firstAccount.Load()
	if first == 0 { // read once: accounts are never deleted
		account, err := a.store.FirstAccount(ctx)
		if err != nil {
			return false, err
		}
		first = account.Seq
		a.firstAccount.Store(first)
	}
	return accountID == first, nil
}

// cutAddress splits a valid address. The domain is in lower case.
func cutAddress(email string) (local, domain string) {
	at := strings.LastIndexByte(email, '@')
	return email[:at], strings.ToLower(email[at+1:])
}

func domainOf(email string) string {
	_, domain := cutAddress(email)
	return domain
}

// errSender returns the error that the caller may not send from an address.
func errSender(from, reason string) error {
	return &httpapi.Error{Status: http.StatusForbidden, Code: gen.ErrorCodeDomainNotVerified, Param: "from", Rule: string(store.RuleDomain), Message: "from " + from + " " + reason}
}

func errBelonged(from string) error {
	return errSender(from, "belongs or belonged to an inbox, so this account cannot send from it")
}

// parts are the content fields of an email request.
type parts struct {
	subject              gen.OptString
	html, text, template gen.OptNilString
	render               bool // whether inline content has variables too
}

// script is the content of an email for any number of recipients.
type script struct {
	said template.Source
	mail *template.Template // nil without variables
}

// scriptOf reads the template that a request names, or its own content. The
// subject and text of the request override those of the template.
func (a *API) scriptOf(ctx context.Context, p parts) (script, error) {
	s := script{said: template.Source{Subject: p.subject.Value, HTML: p.html.Or(""), Text: p.text.Or("")}}
	if id, ok := p.template.Get(); ok {
		if _, ok := p.html.Get(); ok {
			return s, &httpapi.Error{
				Status: http.StatusBadRequest, Code: gen.ErrorCodeTemplateConflict, Param: "template", Message: "template and html cannot be combined: send one of them",
			}
		}
		k := httpapi.Caller(ctx)
		if httpapi.Visible(k) != nil { // as for the operations of templates
			return s, httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key is limited to inboxes, and templates belong to none")
		}
		t, err := a.templateNamed(ctx, k.AccountID, id)
		if err != nil {
			return s, err
		}
		s.said.Subject, s.said.HTML = p.subject.Or(t.Subject), t.HTML
		if _, ok := p.text.Get(); !ok && t.Text != nil {
			s.said.Text = *t.Text
		}
	} else if !p.subject.Set {
		return s, httpapi.Invalid("subject", "is required without a template")
	} else if !p.render {
		return s, nil
	}
	var err error
	s.mail, err = template.Parse(s.said)
	return s, templateError("data", err)
}

// templateNamed returns the template with an ID or a name.
func (a *API) templateNamed(ctx context.Context, accountID int64, name string) (store.Template, error) {
	t, err := a.store.Template(ctx, accountID, name)
	if !errors.Is(err, store.ErrNotFound) {
		return t, err
	}
	found, err := a.store.TemplatesNamed(ctx, accountID, name)
	switch {
	case err != nil:
		return t, err
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return t, httpapi.Invalid("template", "%q is the name of several templates: use an ID, such as %s", name, found[0].ID)
	}
	return t, httpapi.Invalid("template", "%s", cmp.Or(ids.Typo(name), "not found in this account: no template has this ID or name"))
}

// fill sets the content of an email with the variables filled in. field returns
// the request field that a variable comes from.
func (s script) fill(e *emailSubmission, values map[string]any, field func(variable string) string) error {
	said := s.said
	if s.mail != nil {
		var missing []string
		var err error
		said, missing, err = s.mail.Render(values)
		if at, ok := errors.AsType[*template.Error](err); ok {
			return templateError(field(at.Variable), err)
		}
		if len(missing) > 0 {
			param := field(missing[0]) + "." + missing[0]
			return &httpapi.Error{
				Status: http.StatusBadRequest, Code: gen.ErrorCodeTemplateVariableMissing, Param: param,
				Message: param + " is a variable of the email, and has no value",
			}
		}
	}
	e.subject, e.html, e.text = said.Subject, said.HTML, said.Text
	return nil
}
