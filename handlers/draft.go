package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/internal/mailhtml"
	"github.com/postroom/postroom/store"
)

var (
	errDraftNotPending = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeDraftNotPending, Message: "this draft has already been approved or rejected"}
	errNotUndone       = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeDraftNotPending, Message: "the approval of this draft can no longer be undone"}
	errTestMode        = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeTestModeMismatch, Message: "a test key cannot change or decide a live draft: use a live key"}
	errDraftChanged    = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeDraftChanged, Message: "this draft has changed since you read it: read it again"}
)

// draftOf returns the draft if the caller can see it.
func (a *API) draftOf(ctx context.Context, id string) (store.Draft, error) {
	k := httpapi.Caller(ctx)
	d, err := a.store.Draft(ctx, k.AccountID, id)
	if err != nil {
		return d, err
	}
	if !sees(k, d.InboxID) {
		return store.Draft{}, fmt.Errorf("draft: %w", store.ErrNotFound)
	}
	return d, nil
}

// draftToChange is draftOf for a change or a decision. A test key may only
// change drafts that a test key created.
func (a *API) draftToChange(ctx context.Context, id string) (store.Draft, error) {
	d, err := a.draftOf(ctx, id)
	if err == nil && httpapi.Caller(ctx).Mode == store.KeyTest && !d.TestMode {
		err = errTestMode
	}
	return d, err
}

// ListDrafts implements GET /v1/drafts.
func (a *API) ListDrafts(ctx context.Context, p gen.ListDraftsParams) (*gen.DraftList, error) {
	k := httpapi.Caller(ctx)
	f := store.DraftFilter{AccountID: k.AccountID, InboxIDs: httpapi.Visible(k), Status: store.DraftStatus(p.Status.Or(""))}
	return a.listDrafts(ctx, f, pageOf(p.Limit, p.Cursor))
}

// ListInboxDrafts implements GET /v1/inboxes/{inbox_id}/drafts.
func (a *API) ListInboxDrafts(ctx context.Context, p gen.ListInboxDraftsParams) (*gen.DraftList, error) {
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return nil, err
	}
	f := store.DraftFilter{AccountID: in.AccountID, InboxSeq: in.Seq, Status: store.DraftStatus(p.Status.Or(""))}
	return a.listDrafts(ctx, f, pageOf(p.Limit, p.Cursor))
}

func (a *API) listDrafts(ctx context.Context, f store.DraftFilter, p store.Page) (*gen.DraftList, error) {
	l, err := a.store.ListDrafts(ctx, f, p)
	return listToAPI[gen.DraftList](l, err, func(d store.Draft) *gen.Draft { return draftToAPI(d, withText) })
}

// GetDraft implements GET /v1/drafts/{draft_id}.
func (a *API) GetDraft(ctx context.Context, p gen.GetDraftParams) (*gen.Draft, error) {
	d, err := a.draftOf(ctx, p.DraftID)
	return result(d, err, wholeDraft)
}

// UpdateDraft implements PATCH /v1/drafts/{draft_id}.
func (a *API) UpdateDraft(ctx context.Context, req *gen.DraftUpdate, p gen.UpdateDraftParams) (*gen.Draft, error) {
	if _, err := a.draftToChange(ctx, p.DraftID); err != nil {
		return nil, err
	}
	if err := a.checkEdit(req); err != nil {
		return nil, err
	}
	return changedDraft(a.store.UpdateDraft(ctx, httpapi.Caller(ctx).AccountID, p.DraftID, func(d *store.Draft) error {
		if d.Content == nil {
			return errExpired
		}
		if version, given := req.Version.Get(); given && version != d.Version {
			return errDraftChanged
		}
		if err := a.patchExpiry(ctx, d, "", gen.DraftExpiry{ExpiresAt: req.ExpiresAt, ExpiresIn: req.ExpiresIn, OnExpiry: req.OnExpiry}); err != nil {
			return err
		}
		patch(&d.Subject, req.Subject)
		patchText(&d.Content.Text, req.Text)
		patchText(&d.Content.HTML, req.HTML)
		if req.Text.Set || req.HTML.Set {
			settleEdit(d.Content, req.HTML.Set)
		}
		if d.Content.Text == "" && d.Content.HTML == "" {
			return errContentRequired
		}
		return nil
	}))
}

// checkEdit refuses text that no message can contain, so that an edited draft
// can always be sent.
func (a *API) checkEdit(req *gen.DraftUpdate) error {
	out := compose.Outgoing{
		Seed: "x", HeaderID: "<x@" + a.cfg.MailDomain + ">", Date: a.now().UTC(), From: mail.Address{Email: "x@" + a.cfg.MailDomain},
		Subject: req.Subject.Or(""), Text: req.Text.Or(""), HTML: req.HTML.Or(""),
	}
	_, err := out.WriteTo(io.Discard)
	return composeError(err)
}

// patchExpiry sets when a draft expires, and what happens then. After a change by a key
// that could not approve the draft, it is never sent by itself. place is the prefix of
// the names of the fields.
func (a *API) patchExpiry(ctx context.Context, d *store.Draft, place string, e gen.DraftExpiry) error {
	k := httpapi.Caller(ctx)
	admin := httpapi.HasScope(k.Scopes.V, "admin")
	if e.ExpiresAt.Set || e.ExpiresIn.Set {
		d.ExpiresAt = nil
	}
	t, timed := e.ExpiresAt.Get()
	seconds, counted := e.ExpiresIn.Get()
	switch {
	case timed && counted:
		return httpapi.Invalid(place+"expires_in", "must not be given with expires_at")
	case timed:
		var err error
		if d.ExpiresAt, err = a.futureTime(place+"expires_at", t); err != nil {
			return err
		}
	case counted:
		at := store.NewTime(a.now().Add(time.Duration(seconds) * time.Second))
		d.ExpiresAt = &at
	}
	wanted, given := e.OnExpiry.Get()
	switch {
	case wanted == gen.DraftOnExpirySend && !admin:
		return errNeedsAdmin(place+"on_expiry", "on_expiry: send needs the scope admin")
	case wanted == gen.DraftOnExpirySend:
		d.OnExpiry, d.ExpiryBy = store.ExpirySends, &k.ID
	case given, !admin:
		d.OnExpiry, d.ExpiryBy = store.ExpiryRejects, nil
	case d.OnExpiry == store.ExpirySends:
		d.ExpiryBy = &k.ID // the last editor decides
	}
	return nil
}

// patchText is patch for text. Null clears it.
func patchText(dst *string, field gen.OptNilString) {
	if field.Set {
		*dst = field.Or("")
	}
}

// SendDraft implements POST /v1/drafts/{draft_id}/send.
func (a *API) SendDraft(ctx context.Context, body gen.OptDraftSend, p gen.SendDraftParams) (*gen.Message, error) {
	d, err := a.draftToChange(ctx, p.DraftID)
	if err != nil {
		return nil, err
	}
	if err := sendable(d, body.Value.Version.Or(d.Version)); err != nil {
		return nil, err
	}
	m, err := a.sendDraft(ctx, d, false)
	if !errors.Is(err, store.ErrState) {
		return m, err
	}
	now, err := a.draftOf(ctx, d.ID) // which changed meanwhile
	return nil, cmp.Or(err, sendable(now, d.Version), error(errDraftChanged))
}

// sendable returns why this version of a draft cannot be approved.
func sendable(d store.Draft, version int) error {
	switch {
	case d.Status != store.DraftPending:
		return errDraftNotPending
	case version != d.Version:
		return errDraftChanged
	case d.Content == nil:
		return errExpired
	}
	return nil
}

// SendDue sends a draft that is due as the caller of ctx, who approved it or chose that it
// is sent when it expires. It returns a *store.Refused if a rule refuses it, and
// store.ErrState if it has been decided, undone or edited since it was read.
func (s *Service) SendDue(ctx context.Context, due store.Draft) error {
	d, err := s.api.store.Draft(ctx, due.AccountID, due.ID)
	if err == nil && (d.Status != due.Status || d.Version != due.Version) {
		err = store.ErrState
	}
	if err == nil {
		_, err = s.api.sendDraft(ctx, d, true)
	}
	if errors.Is(err, errDraftChanged) {
		err = store.ErrState
	}
	return err
}

// sendDraft sends a draft as it is.
func (a *API) sendDraft(ctx context.Context, d store.Draft, isDue bool) (*gen.Message, error) {
	if d.Content == nil {
		return nil, errExpired
	}
	if err := a.checkSettled(ctx, d); err != nil {
		return nil, err
	}
	s, err := a.approve(ctx, d)
	if err != nil {
		return nil, err
	}
	s.isDue = isDue
	return asRes[*gen.Message](a.submit(ctx, s))
}

// UndoDraft implements POST /v1/drafts/{draft_id}/undo.
func (a *API) UndoDraft(ctx context.Context, p gen.UndoDraftParams) (*gen.Draft, error) {
	d, err := a.draftToChange(ctx, p.DraftID)
	if err != nil {
		return nil, err
	}
	d, err = a.store.UndoDraft(ctx, d)
	if errors.Is(err, store.ErrState) {
		err = errNotUndone
	}
	return result(d, err, wholeDraft)
}

// settleEdit sanitizes the content of a draft after an edit. If the HTML did
// not change, it keeps the earlier warnings about removed parts.
func settleEdit(c *store.DraftContent, newHTML bool) {
	before := c.Warnings.V
	settleHTML(c, before)
	if newHTML {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(before), func(w store.Warning) bool { return w.Code != warnRemoved })
	c.Warnings.V = append(kept, c.Warnings.V...)
}

// checkSettled verifies that the HTML of a draft is sanitized. It sanitizes the
// HTML of an older draft now, which changes the version, and returns
// errDraftChanged.
func (a *API) checkSettled(ctx context.Context, d store.Draft) error {
	if d.Content.HTML == "" || mailhtml.Sanitize(d.Content.HTML).HTML == d.Content.HTML {
		return nil
	}
	_, err := a.store.UpdateDraft(ctx, d.AccountID, d.ID, func(d *store.Draft) error {
		if d.Content != nil {
			settleHTML(d.Content, d.Content.Warnings.V)
		}
		return nil
	})
	if errors.Is(err, store.ErrState) {
		return errDraftNotPending
	}
	return errors.Join(err, errDraftChanged)
}

// approve returns exactly the message that was approved.
func (a *API) approve(ctx context.Context, d store.Draft) (*submission, error) {
	in, err := a.store.Inbox(ctx, d.AccountID, d.InboxID)
	if err != nil {
		return nil, err
	}
	as, c := d.Addresses.V, d.Content
	s := &submission{
		inbox: in, kind: d.Kind, approved: &d, testMode: d.TestMode, subject: d.Subject, text: c.Text, html: c.HTML,
		to: fromStore(as.To), cc: fromStore(as.Cc), bcc: fromStore(as.Bcc), replyTo: fromStore(as.ReplyTo),
		refs: d.Refs.V, headers: c.Headers.V,
		attachments: stored(c.Attachments.V, func(i int) (io.ReadCloser, error) { return a.store.OpenDraftFile(ctx, d, i) }),
	}
	if d.ThreadSeq != nil {
		s.threadSeq = *d.ThreadSeq
	}
	return s, nil
}

// RejectDraft implements POST /v1/drafts/{draft_id}/reject.
func (a *API) RejectDraft(ctx context.Context, body gen.OptDraftReject, p gen.RejectDraftParams) (*gen.Draft, error) {
	if _, err := a.draftToChange(ctx, p.DraftID); err != nil {
		return nil, err
	}
	var reason *string
	if r, ok := body.Value.Reason.Get(); ok {
		reason = &r
	}
	k := httpapi.Caller(ctx)
	return changedDraft(a.store.RejectDraft(ctx, k.AccountID, p.DraftID, k.ID, reason, once(ctx, http.StatusOK, "Draft", wholeDraft)))
}

// changedDraft returns a draft after a change that only a pending draft permits.
func changedDraft(d store.Draft, err error) (*gen.Draft, error) {
	if errors.Is(err, store.ErrState) {
		err = errDraftNotPending
	}
	return result(d, err, wholeDraft)
}

// hold creates a draft of a message that needs approval, and caches the response of an
// idempotent call.
func (a *API) hold(ctx context.Context, s *submission) (*gen.Draft, error) {
	n, err := a.draftToHold(ctx, s)
	if err != nil {
		return nil, err
	}
	d, err := a.store.CreateDraft(ctx, n, once(ctx, http.StatusAccepted, "Draft", wholeDraft))
	return result(d, err, wholeDraft)
}

// draftToHold returns the draft of a message that its caller submits. It returns
// errContentRequired if sanitizing the HTML leaves nothing to read.
func (a *API) draftToHold(ctx context.Context, s *submission) (store.NewDraft, error) {
	n, err := a.newDraft(ctx, s)
	if err == nil && n.Content.Text == "" && n.Content.HTML == "" {
		return store.NewDraft{}, errContentRequired
	}
	return n, err
}

// newDraft returns the draft of a message or email that needs approval. The draft has a
// copy of everything, so later changes to the source do not affect it.
func (a *API) newDraft(ctx context.Context, s *submission) (store.NewDraft, error) {
	recipients, err := a.newRecipients(ctx, s)
	if err != nil {
		return store.NewDraft{}, err
	}
	n := store.NewDraft{Draft: store.Draft{
		AccountID: s.inbox.AccountID, InboxID: s.inbox.ID, Kind: s.kind, TestMode: s.testMode,
		Addresses: store.JSON[mail.Addresses]{V: s.addresses(&s.from)}, Subject: s.subject, Refs: store.JSON[store.References]{V: s.refs},
		CreatedBy: httpapi.Caller(ctx).ID,
		Content: &store.DraftContent{
			Text: s.text, HTML: s.html, Headers: store.JSON[[][2]string]{V: s.headers},
			Attachments: store.JSON[[]mail.Attachment]{V: heldAttachments(s.attachments, a.now())},
		},
	}}
	if err := a.patchExpiry(ctx, &n.Draft, "approval.", s.expiry); err != nil {
		return store.NewDraft{}, err
	}
	source, err := a.sourceWarnings(ctx, s.source)
	if err != nil {
		return store.NewDraft{}, err
	}
	settleHTML(n.Content, append(recipients, source...))
	for _, at := range s.attachments {
		n.Files = append(n.Files, at.file())
	}
	if s.source != nil {
		n.SourceID = &s.source.ID
	}
	switch {
	case s.isEmail:
		n.Category, n.Tags, n.Metadata = &s.category, &store.JSON[store.Labels]{V: store.Labels{}}, &store.JSON[json.RawMessage]{V: json.RawMessage("{}")}
		if s.tags != nil {
			n.Tags.V = s.tags
		}
		if len(s.metadata) > 0 {
			n.Metadata.V = s.metadata
		}
	case s.kind == store.DraftReply:
		n.ThreadSeq, n.ThreadID = &s.source.ThreadSeq, &s.source.ThreadID
	case s.kind == store.DraftForward:
		n.ContentAt = s.source.CreatedAt // expires with the original
	}
	return n, nil
}

// heldAttachments describes the attachments stored with a draft.
func heldAttachments(in []attachment, now time.Time) []mail.Attachment {
	return mapped(in, func(at attachment) mail.Attachment {
		return mail.Attachment{
			ID: store.NewID("att_", now), Filename: at.Filename, ContentType: at.ContentType, ContentID: at.ContentID,
			Inline: at.Inline, Size: at.size,
		}
	})
}

func wholeDraft(d store.Draft) *gen.Draft { return draftToAPI(d, withHTML) }

func draftToAPI(d store.Draft, detail detail) *gen.Draft {
	as := d.Addresses.V
	if d.Status == store.DraftScheduled {
		d.MessageID = nil // there is no such message yet
	}
	out := &gen.Draft{
		Object: "draft", ID: d.ID, InboxID: d.InboxID, ThreadID: nilString(d.ThreadID), Status: string(d.Status), Kind: string(d.Kind),
		Expired: d.ExpiredAt != nil, TestMode: d.TestMode, SourceMessageID: nilString(d.SourceID), MessageID: nilString(d.MessageID),
		To: addressesToAPI(as.To), Cc: addressesToAPI(as.Cc), Bcc: addressesToAPI(as.Bcc), ReplyTo: addressesToAPI(as.ReplyTo),
		Subject: d.Subject, Text: gen.NilString{Null: true}, HTML: gen.NilString{Null: true}, Attachments: []gen.Attachment{},
		Headers: gen.MailHeadersResponse{}, Warnings: []gen.DraftWarning{}, Category: gen.NilString{Null: true}, Tags: gen.TagsResponse{}, Metadata: gen.FreeObject{}, Version: d.Version, CreatedBy: d.CreatedBy, DecidedBy: nilString(d.DecidedBy),
		DecidedAt: nilTime(d.DecidedAt), SendAfter: nilTime(d.SendAfter), RejectReason: nilString(d.RejectReason), ExpiresAt: nilTime(d.ExpiresAt),
		OnExpiry: string(d.OnExpiry), CreatedAt: d.CreatedAt.Time, UpdatedAt: d.UpdatedAt.Time,
	}
	if as.From != nil {
		out.From = addressToAPI(*as.From)
	}
	if d.Category != nil {
		out.Category = gen.NewNilString(string(*d.Category))
	}
	if d.Tags != nil {
		out.Tags = labelsToAPI(d.Tags.V)
	}
	if d.Metadata != nil {
		out.Metadata = metadataToAPI(d.Metadata.V)
	}
	if d.Content == nil {
		return out
	}
	out.Warnings = mapped(d.Content.Warnings.V, warningToAPI)
	out.Text = emptyIsNull(d.Content.Text)
	if detail == withHTML {
		out.HTML = emptyIsNull(d.Content.HTML)
	}
	out.Attachments = mapped(d.Content.Attachments.V, attachmentToAPI)
	for _, h := range d.Content.Headers.V {
		out.Headers[h[0]] = h[1]
	}
	return out
}

// Codes of draft warnings.
const (
	warnRemoved    = "html_removed"
	warnHidden     = "hidden_text"
	warnMisleading = "misleading_link"
	warnRecipient  = "new_recipient"
	warnLink       = "link"
	warnAmount     = "amount"
	warnFile       = "attachment_type"
	warnSimulated  = "simulated_original"
	warnSender     = "unverified_sender"
	warnFirst      = "first_contact"
)

// warnsOfOthers are the codes that do not depend on the content of the draft.
var warnsOfOthers = []string{warnRecipient, warnSimulated, warnSender, warnFirst}

// maxWarnedAmounts limits how many amounts of money in a draft are listed.
const maxWarnedAmounts = 10

// money matches an amount with a currency before or after it.
var money = regexp.MustCompile(`(?i)(?:[$€£¥₹]|\b(?:USD|EUR|GBP|CHF|JPY)\b)[ \x{00A0}]?\d[\d.,'\x{00A0}]*\d|(?:[$€£¥₹]|\b(?:USD|EUR|GBP|CHF|JPY)\b)[ \x{00A0}]?\d|\d(?:[\d.,'\x{00A0}]*\d)?[ \x{00A0}]?(?:[€£¥₹]|(?:USD|EUR|GBP|CHF|JPY|dollars?|euros?|pounds?)\b)`)

// riskyFiles are the extensions of files that can run programs, hide other files
// or pose as a page.
var riskyFiles = []string{
	".exe", ".msi", ".com", ".scr", ".bat", ".cmd", ".ps1", ".vbs", ".vbe", ".js", ".jse", ".wsf", ".hta", ".jar", ".lnk", ".reg", ".dll",
	".apk", ".app", ".dmg", ".pkg", ".sh", ".iso", ".img", ".zip", ".rar", ".7z", ".docm", ".xlsm", ".pptm", ".html", ".htm", ".svg", ".url",
}

// contentWarnings returns the warnings about amounts and attachments.
func contentWarnings(c *store.DraftContent) (ws []store.Warning) {
	var amounts []string
	for _, text := range []string{c.Text, mailhtml.AllText(c.HTML)} {
		for _, amount := range money.FindAllString(text, maxWarnedAmounts) {
			if !slices.Contains(amounts, amount) && len(amounts) < maxWarnedAmounts {
				amounts = append(amounts, amount)
			}
		}
	}
	for _, amount := range amounts {
		ws = append(ws, store.Warning{Code: warnAmount, Value: amount})
	}
	for _, at := range c.Attachments.V {
		name := attachmentName(at)
		if slices.Contains(riskyFiles, strings.ToLower(path.Ext(name))) {
			ws = append(ws, store.Warning{Code: warnFile, Value: name})
		}
	}
	return ws
}

// sourceWarnings says where the original came from, if that is a reason to doubt it: a key
// simulated it, nothing vouches for its sender, or the sender is new.
func (a *API) sourceWarnings(ctx context.Context, m *store.Message) (ws []store.Warning, err error) {
	if m == nil || m.Direction != store.DirectionIn || m.Addresses.V.From == nil {
		return nil, nil
	}
	from := m.Addresses.V.From.Email
	if m.TestMode {
		return []store.Warning{{Code: warnSimulated, Value: from}}, nil
	}
	if m.Content != nil {
		if auth := m.Content.Auth; auth == nil || auth.V.DMARC != "pass" && auth.V.Internal != "pass" {
			ws = append(ws, store.Warning{Code: warnSender, Value: from})
		}
	}
	first, err := a.store.IsFirstContact(ctx, *m)
	if first {
		ws = append(ws, store.Warning{Code: warnFirst, Value: from})
	}
	return ws, err
}

// maxWarnedLinks limits how many links in the text of a draft are listed.
const maxWarnedLinks = 50

// webAddress matches an http or https URL in plain text.
var webAddress = regexp.MustCompile(`https?://[^\s<>"]+`)

// settleHTML sanitizes the HTML of a draft, so that the approved content is
// what is sent, and replaces the warnings about the content. It keeps the
// warnings in before that are about recipients and the original.
func settleHTML(c *store.DraftContent, before []store.Warning) {
	clean := mailhtml.Sanitize(c.HTML)
	c.HTML = clean.HTML
	ws := []store.Warning{}
	for _, r := range clean.Removed {
		ws = append(ws, store.Warning{Code: warnRemoved, Value: r.What, Text: r.Text, Count: r.Count})
	}
	for _, h := range clean.Hidden {
		ws = append(ws, store.Warning{Code: warnHidden, Value: h.Why, Text: h.Text})
	}
	for _, l := range clean.Links {
		if l.Says != "" {
			ws = append(ws, store.Warning{Code: warnMisleading, Value: l.URL, Text: l.Says})
		}
	}
	for _, w := range before {
		if slices.Contains(warnsOfOthers, w.Code) {
			ws = append(ws, w)
		}
	}
	ws = append(ws, contentWarnings(c)...)
	var links []string
	for _, l := range clean.Links {
		links = append(links, l.URL)
	}
	for _, u := range webAddress.FindAllString(c.Text, maxWarnedLinks) {
		if u = mailhtml.CutURL(u); !slices.Contains(links, u) {
			links = append(links, u)
		}
	}
	for _, u := range links {
		ws = append(ws, store.Warning{Code: warnLink, Value: u})
	}
	c.Warnings.V = ws
}

// newRecipients returns a warning for each recipient that the inbox has neither
// written to nor received mail from.
func (a *API) newRecipients(ctx context.Context, s *submission) ([]store.Warning, error) {
	all := slices.Concat(s.to, s.cc, s.bcc)
	known, err := a.haveWritten(ctx, s.inbox, s.testMode, s.source, all)
	if err != nil {
		return nil, err
	}
	folded := make([]string, len(all))
	for i, to := range all {
		folded[i] = mail.FoldAddress(to.Email)
	}
	written, err := a.store.WrittenTo(ctx, s.inbox.Seq, folded)
	if err != nil {
		return nil, err
	}
	var ws []store.Warning
	for i, to := range all {
		if !known(to.Email) && !slices.Contains(written, folded[i]) {
			ws = append(ws, store.Warning{Code: warnRecipient, Value: to.Email})
		}
	}
	return ws, nil
}

func warningToAPI(w store.Warning) gen.DraftWarning {
	out := gen.DraftWarning{Code: w.Code, Value: w.Value, Text: emptyIsNull(w.Text)}
	switch w.Code {
	case warnRemoved:
		out.Message = "Not sent: " + w.Value
		if w.Count > 1 {
			out.Message += fmt.Sprintf(" (%d times)", w.Count)
		}
		if out.Message += "."; w.Text != "" {
			out.Message += fmt.Sprintf(" It held “%s”.", w.Text)
		}
	case warnHidden:
		out.Message = fmt.Sprintf("Hidden text (%s): “%s”.", w.Value, w.Text)
	case warnMisleading:
		out.Message = fmt.Sprintf("A link says %s and leads to %s.", w.Text, w.Value)
	case warnRecipient:
		out.Message = fmt.Sprintf("This inbox has neither written to nor received mail from %s.", w.Value)
	case warnAmount:
		out.Message = fmt.Sprintf("The message names an amount of money: %s.", w.Value)
	case warnFile:
		out.Message = fmt.Sprintf("The attachment %s is of a type that can run programs or hide other content.", w.Value)
	case warnSender:
		out.Message = fmt.Sprintf("The sender of the original message, %s, is not verified.", w.Value)
	case warnSimulated:
		out.Message = fmt.Sprintf("The original message was simulated with a key: %s did not send it.", w.Value)
	case warnFirst:
		out.Message = fmt.Sprintf("The original message is the first contact with %s.", w.Value)
	case warnLink:
		out.Message = fmt.Sprintf("A link leads to %s.", w.Value)
	case store.WarnNotSent:
		out.Message = fmt.Sprintf("This draft was approved, and not sent: %s.", w.Value)
	default:
		out.Message = w.Value
	}
	return out
}

// GetDraftAttachment implements GET /v1/drafts/{draft_id}/attachments/{attachment_id}.
func (a *API) GetDraftAttachment(ctx context.Context, p gen.GetDraftAttachmentParams) (*gen.DraftAttachmentDownload, error) {
	d, err := a.draftOf(ctx, p.DraftID)
	if err != nil {
		return nil, err
	}
	if d.Content == nil {
		return nil, errExpired
	}
	at, _, err := findAttachment(d.Content.Attachments.V, p.AttachmentID)
	if err != nil {
		return nil, err
	}
	v := attachmentToAPI(at)
	link, expires, err := a.link(ctx, d.AccountID, d.ID, v.ID)
	if err != nil {
		return nil, err
	}
	return &gen.DraftAttachmentDownload{
		ID: v.ID, Filename: v.Filename, ContentType: v.ContentType, Size: v.Size, Inline: v.Inline, ContentID: v.ContentID,
		Object: "attachment", DraftID: d.ID, DownloadURL: link, ExpiresAt: expires,
	}, nil
}

// openDraftFile opens an attachment stored with a draft.
func (a *API) openDraftFile(ctx context.Context, f file) (io.ReadSeekCloser, string, error) {
	d, err := a.store.Draft(ctx, f.accountID, f.ownerID)
	if err != nil {
		return nil, "", err
	}
	if d.Content == nil {
		return nil, "", errNoAttachment
	}
	at, i, err := findAttachment(d.Content.Attachments.V, f.attachmentID)
	if err != nil {
		return nil, "", err
	}
	open := func() (io.ReadCloser, error) { return a.store.OpenDraftFile(ctx, d, i) }
	return &reopeningReader{open: open, size: at.Size}, attachmentName(at), nil
}
