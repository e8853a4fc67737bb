package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
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

// SendEmail implements POST /v1/emails.
func (a *API) SendEmail(ctx context.Context, req *gen.EmailSend, _ gen.SendEmailParams) (gen.SendEmailRes, error) {
	s, err := a.emailFromAPI(ctx, req)
	if err != nil {
		return nil, err
	}
	return asRes[gen.SendEmailRes](a.enqueueEmail(ctx, s))
}

// enqueueEmail queues one email and caches the response of an idempotent call. The result
// is a *gen.EmailCreated or, if the email needs approval, a *gen.Draft.
func (a *API) enqueueEmail(ctx context.Context, s *submission) (any, error) {
	ns, err := a.newEmails(ctx, s)
	if err != nil {
		return nil, err
	}
	e, err := a.store.EnqueueEmail(ctx, ns[0], once(ctx, http.StatusCreated, "EmailCreated", emailCreatedToAPI))
	if store.NeedsApproval(err) {
		return a.hold(ctx, s)
	}
	return result(e, err, emailCreatedToAPI)
}

// emailFromAPI reads a request.
func (a *API) emailFromAPI(ctx context.Context, req *gen.EmailSend) (*submission, error) {
	s := &submission{}
	if err := a.from(ctx, s, req.From); err != nil {
		return nil, err
	}
	return s, cmp.Or(
		into(&s.to)(addressesFromAPI("to", req.To)),
		into(&s.cc)(optionalAddresses("cc", req.Cc)),
		into(&s.bcc)(optionalAddresses("bcc", req.Bcc)),
		s.extend(req.ReplyTo, req.Headers, req.Attachments),
		a.compile(ctx, s, req),
	)
}

// compile reads what emails have beside the fields of messages, and fills in the variables.
func (a *API) compile(ctx context.Context, s *submission, req *gen.EmailSend) error {
	s.category = store.Category(req.Category.Or(gen.EmailSendCategoryTransactional))
	if err := s.label("", req.Tags, req.Metadata); err != nil {
		return err
	}
	if at, ok := req.ScheduledAt.Get(); ok {
		if err := into(&s.scheduledAt)(a.schedule(at)); err != nil {
			return err
		}
	}
	if s.raw != nil {
		return nil // it says what it says
	}
	said, err := a.scriptOf(ctx, parts{subject: req.Subject, html: req.HTML, text: req.Text, template: req.Template, render: req.Data.Set})
	if err != nil {
		return err
	}
	values, err := variablesFromAPI("data", req.Data.Value)
	if err != nil {
		return err
	}
	return said.fill(s, values, func(string) string { return "data" })
}

// from sets the sender of the email and checks that the caller may use it.
func (a *API) from(ctx context.Context, s *submission, from gen.Address) error {
	var err error
	if s.from, err = addressFromAPI("from", from); err != nil {
		return err
	}
	s.account, s.kind, s.isEmail = httpapi.Caller(ctx).AccountID, store.DraftNew, true
	s.inbox, err = a.sender(ctx, s.from)
	return err
}

// extend reads the fields that single emails and batches share.
func (s *submission) extend(replyTo gen.OptNilOptionalRecipients, headers gen.OptNilMailHeaders, files gen.EmailAttachmentInputs) error {
	return cmp.Or(
		into(&s.replyTo)(optionalAddresses("replyTo", replyTo)),
		into(&s.headers)(headersFromAPI(headers)),
		into(&s.attachments)(emailAttachmentsFromAPI(files)),
	)
}

// label reads tags and metadata. place is the prefix of their field names.
func (s *submission) label(place string, tags gen.OptEmailTags, metadata gen.OptFreeObject) error {
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
func (a *API) newEmails(ctx context.Context, all ...*submission) ([]*store.NewEmail, error) {
	messages := make([]*composed, len(all))
	for i, s := range all {
		if err := into(&messages[i])(a.prepare(ctx, s)); err != nil {
			return nil, s.atPlace(err)
		}
	}
	ns := make([]*store.NewEmail, len(all))
	for i, s := range all {
		if err := into(&ns[i])(a.newEmail(ctx, s, messages[i])); err != nil {
			return nil, err
		}
	}
	return ns, nil
}

// newEmail converts a composed email for the store.
func (a *API) newEmail(ctx context.Context, s *submission, raw *composed) (*store.NewEmail, error) {
	n := &store.NewEmail{Email: store.Email{
		Message: s.message(raw), Category: s.category, Tags: store.JSON[store.Labels]{V: s.tags},
		Metadata: store.JSON[json.RawMessage]{V: s.metadata}, ScheduledAt: s.scheduledAt,
	}, CreatedBy: senderOf(ctx), Text: raw.out.Text, VerifiedDomain: a.toVerify(domainOf(s.from.Email))}
	n.ID = raw.id
	if s.inbox.Seq != 0 {
		n.FromInbox = &s.inbox.Seq
		n.Draft = func(ctx context.Context) (store.NewDraft, error) { return a.draftToHold(ctx, s) }
	}
	if err := into(&n.Content)(a.contentOf(ctx, raw)); err != nil {
		return nil, err
	}
	// Store the content as submitted. The parsed message has text derived from
	// the HTML and other line endings.
	n.Content.Body = &store.JSON[store.Body]{V: store.Body{Text: s.text, HTML: s.html}}
	return n, nil
}

// emailFields maps the field names of a message to those of an email.
var emailFields = strings.NewReplacer("reply_to", "replyTo", ".content_type", ".contentType", ".content_id", ".contentId")

// atPlace corrects the field name in an error to the one in the request.
func (s *submission) atPlace(err error) error {
	return renamed(err, func(param string) string {
		if param = emailFields.Replace(param); strings.HasPrefix(param, "to") { // the other fields belong to the batch
			param = s.place + param
		}
		return param
	})
}

// renamed returns an error about a field under the name that the caller used.
func renamed(err error, name func(param string) string) error {
	e, ok := errors.AsType[*httpapi.Error](err)
	if !ok || e.Param == "" {
		return err
	}
	at := *e
	at.Param = name(e.Param)
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
	name, _ := cutTag(from.Email)
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
	case !sees(k, in.ID):
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
func (s script) fill(e *submission, values map[string]any, field func(variable string) string) error {
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
