package handlers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

// RawMail is a message that a client composed, with its envelope.
type RawMail struct {
	MailFrom string
	RcptTo   []string // valid addresses
	// Host and With are the server and the protocol for the Received field.
	Host, With string
	// Open returns the message. Every line ends with CRLF.
	Open func() (io.ReadSeeker, error)
}

// Submitted is the result of Submit.
type Submitted struct {
	ID       string // of the message, email or draft
	Held     bool   // it is a draft that needs approval
	Repeated bool   // the same submission was accepted before
}

// rawMail is a message that a client composed, and what was read from it.
type rawMail struct {
	*compose.Raw
	parsed *mime.Message
	host   string
	with   string
}

// Login checks that a client at ip may submit mail with a key. Its error is a
// *httpapi.Error.
func (s *Service) Login(ctx context.Context, key string, ip netip.Addr) error {
	_, k, err := s.api.WithKey(ctx, key, ip)
	if err == nil && !httpapi.HasScope(k.Scopes.V, "emails:send") { // send includes it
		err = httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key lacks the scope send or emails:send")
	}
	return err
}

// Submit sends a message that a client composed, as SendMessage and SendEmail send
// theirs. It is a message of the inbox with its From address, if the key may send
// from it and no option makes it an email. The same message to the same recipients
// is sent once within store.CachedResponseTTL. The error is a *httpapi.Error.
func (s *Service) Submit(ctx context.Context, key string, ip netip.Addr, m RawMail) (Submitted, error) {
	ctx, k, err := s.api.WithKey(ctx, key, ip)
	if err != nil {
		return Submitted{}, err
	}
	done, err := s.api.submitRaw(ctx, k, m)
	if err != nil {
		return Submitted{}, s.api.Classify(ctx, err)
	}
	return done, nil
}

func (a *API) submitRaw(ctx context.Context, k store.Key, m RawMail) (Submitted, error) {
	raw, err := a.readRaw(m)
	if err != nil {
		return Submitted{}, err
	}
	o, err := optionsOf(raw.Options)
	if err != nil {
		return Submitted{}, err
	}
	s := &submission{account: k.AccountID, kind: store.DraftNew, raw: raw}
	if s.inbox, err = a.inboxOfRaw(ctx, k, raw, o); err != nil {
		return Submitted{}, err
	}
	operation := gen.SendMessageOperation
	if s.isEmail = s.inbox.Seq == 0; s.isEmail {
		operation = gen.SendEmailOperation
	}
	if ctx, err = a.Permit(ctx, k, operation); err != nil {
		return Submitted{}, err
	}
	if err := a.checkSenderField(ctx, raw); err != nil {
		return Submitted{}, err
	}
	s.fromRaw(m)
	if err := checkAttachments(s.attachments); err != nil {
		return Submitted{}, err
	}
	send := func(ctx context.Context) (any, error) {
		if s.isEmail {
			return a.sendRawEmail(ctx, s, o)
		}
		return a.submit(ctx, s)
	}
	var v any
	var repeated bool
	if once, ok := onceOf(k, m, raw, o); ok {
		v, repeated, err = a.RunOnce(ctx, once, o.key == "", send)
	} else {
		v, err = send(ctx)
	}
	if err != nil {
		return Submitted{}, err
	}
	switch v := v.(type) {
	case *gen.Draft:
		return Submitted{ID: v.ID, Held: true, Repeated: repeated}, nil
	case *gen.Message:
		return Submitted{ID: v.ID, Repeated: repeated}, nil
	case *gen.EmailCreated:
		return Submitted{ID: v.ID, Repeated: repeated}, nil
	}
	return Submitted{}, errors.New("unexpected result of a submission")
}

// checkSenderField refuses a field Sender with an address that the caller may not send
// from.
func (a *API) checkSenderField(ctx context.Context, raw *rawMail) error {
	if raw.Sender == nil || mail.FoldAddress(raw.Sender.Email) == mail.FoldAddress(raw.From.Email) {
		return nil
	}
	err := a.checkNotNotices(raw.Sender.Email)
	if err == nil {
		_, err = a.sender(ctx, *raw.Sender)
	}
	return renamed(err, func(param string) string { return cmp.Or(map[string]string{"from": "sender"}[param], param) })
}

// rawBudget is the processor time for reading a submitted message.
const rawBudget = 500 * time.Millisecond

// readRaw reads a submitted message. It removes authentication results in our name
// (RFC 8601 section 5) or in that of the author: no server has checked the message yet.
func (a *API) readRaw(m RawMail) (*rawMail, error) {
	r, err := m.Open()
	if err != nil {
		return nil, err
	}
	raw := &rawMail{host: m.Host, with: m.With}
	if raw.Raw, err = compose.ReadRaw(r); err != nil {
		return nil, composeError(err)
	}
	_, domain := cutAddress(raw.From.Email)
	ours := []string{a.cfg.Hostname, a.cfg.MailDomain, m.Host, domain}
	raw.Remove(func(f mime.Field) bool { return forgedResults(f, ours) })
	whole, err := raw.Reader()
	if err != nil {
		return nil, err
	}
	lim := mail.DefaultLimits()
	lim.Budget = cpubudget.New(rawBudget)
	lim.Budget.Run(func() { raw.parsed, err = mime.Parse(whole, lim) })
	return raw, err
}

// inboxOfRaw returns the inbox whose message this is. An email need not have one, and the
// rules of emails refuse the inbox of another.
func (a *API) inboxOfRaw(ctx context.Context, k store.Key, raw *rawMail, o rawOptions) (in store.Inbox, err error) {
	if o.isEmail || !httpapi.HasScope(k.Scopes.V, "send") {
		return in, nil
	}
	name, domain := cutTag(raw.From.Email)
	in, err = a.store.InboxAt(ctx, a.domainOwner(k, domain), name+"@"+domain)
	if errors.Is(err, store.ErrNotFound) {
		return store.Inbox{}, nil
	}
	if in.AccountID != k.AccountID || in.Status == store.InboxDeleted || !sees(k, in.ID) {
		in = store.Inbox{}
	}
	return in, err
}

// fromRaw fills in what the message and its envelope say.
func (s *submission) fromRaw(m RawMail) {
	p := s.raw.parsed
	s.from = s.raw.From
	s.subject, s.text, s.html = truncateRunes(p.Subject, maxRawSubject), p.Text, p.HTML
	s.replyTo = fromStore(p.ReplyTo)
	s.refs = store.References{InReplyTo: p.InReplyTo, References: p.References}
	p.To, p.Cc = fromStore(p.To), fromStore(p.Cc)
	for _, rcpt := range m.RcptTo {
		a := mail.Address{Email: rcpt}
		switch {
		case names(p.To, &a):
			s.to = append(s.to, a)
		case names(p.Cc, &a):
			s.cc = append(s.cc, a)
		default:
			s.bcc = append(s.bcc, a)
		}
	}
	s.attachments = stored(p.Attachments, func(i int) (io.ReadCloser, error) {
		r, err := m.Open()
		if err != nil {
			return nil, err
		}
		part, err := mime.OpenPart(r, p.Attachments[i].Part, mail.DefaultLimits())
		return io.NopCloser(part), err
	})
}

// names reports whether list has the address a, and gives a the name in it.
func names(list []mail.Address, a *mail.Address) bool {
	i := slices.IndexFunc(list, func(b mail.Address) bool { return strings.EqualFold(a.Email, b.Email) })
	if i >= 0 {
		a.Name = list[i].Name
	}
	return i >= 0
}

// maxRawSubject is how many characters of a subject are stored: as many as a
// request may have.
const maxRawSubject = 998

func truncateRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// sendRawEmail sends an email. With a template, the message is composed again from
// the template, and the client's text is not used.
func (a *API) sendRawEmail(ctx context.Context, s *submission, o rawOptions) (any, error) {
	if err := into(&s.inbox)(a.sender(ctx, s.from)); err != nil {
		return nil, err
	}
	if o.email.Template.Set {
		s.raw = nil
		if s.subject != "" {
			o.email.Subject.SetTo(s.subject)
		}
	}
	if err := a.compile(ctx, s, &o.email); err != nil {
		return nil, named(err)
	}
	return a.enqueueEmail(ctx, s)
}

// rawOptions are the options that a message sets by header fields: those of an email, and
// an idempotency key.
type rawOptions struct {
	isEmail bool // only emails have one of them
	email   gen.EmailSend
	key     string
}

// optionsOf reads the options. A field that is not an option is refused.
func optionsOf(fields [][2]string) (rawOptions, error) {
	o := rawOptions{}
	for _, f := range fields {
		if err := o.set(f[0], f[1]); err != nil {
			return o, err
		}
		o.isEmail = o.isEmail || f[0] != "idempotency-key"
	}
	return o, nil
}

// optionNames are the header fields of the fields of an email that they set.
var optionNames = map[string]string{"metadata": "X-Postroom-Metadata", "data": "X-Postroom-Variables"}

// named puts the name of the header field into an error about an option.
func named(err error) error {
	return renamed(err, func(param string) string {
		field := param[:strings.IndexFunc(param+".", func(r rune) bool { return r == '.' || r == '[' })]
		return cmp.Or(optionNames[field], field) + param[len(field):]
	})
}

const (
	maxTags        = 50
	maxIdempotency = 255
)

func (o *rawOptions) set(name, value string) error {
	bad := func(reason string) error { return httpapi.Invalid("X-Postroom-"+name, "%s", reason) }
	switch name {
	case "tag":
		tag, text, ok := strings.Cut(value, "=")
		tag, text = strings.TrimSpace(tag), strings.TrimSpace(text)
		if !ok || tag == "" || len([]rune(tag)) > maxTagName || len(o.email.Tags.Value.Tags) == maxTags {
			return bad("must have the form name=value, with a name of at most 40 characters, at most 50 times")
		}
		if !o.email.Tags.Set {
			o.email.Tags.SetTo(gen.NewTagsEmailTags(gen.Tags{}))
		}
		v, err := json.Marshal(text)
		o.email.Tags.Value.Tags[tag] = jx.Raw(v)
		return err
	case "metadata":
		if o.email.Metadata.UnmarshalJSON([]byte(value)) != nil {
			return bad("must be a JSON object")
		}
	case "category":
		c := gen.EmailSendCategory(value)
		if c.Validate() != nil {
			return bad("must be transactional or marketing")
		}
		o.email.Category.SetTo(c)
	case "template":
		o.email.Template.SetTo(value)
	case "variables":
		if o.email.Data.UnmarshalJSON([]byte(value)) != nil {
			return bad("must be a JSON object")
		}
	case "scheduled-at":
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return bad("must be a time such as 2026-01-31T09:00:00Z")
		}
		o.email.ScheduledAt.SetTo(at)
	case "idempotency-key":
		if value == "" || len(value) > maxIdempotency {
			return bad("must have 1 to 255 characters")
		}
		o.key = value
	default:
		return bad("is not an option")
	}
	return nil
}

const (
	// submissionOperation is the scope of the idempotency keys of submissions.
	submissionOperation = "SUBMIT"
	// submissionKeyBytes are the bytes of the hash in the key of a submission.
	submissionKeyBytes = 16
)

// onceOf returns what identifies a submission, and whether anything does. A client
// that repeats one composes it again or not, so with a key the content is compared,
// and without one the Message-ID.
func onceOf(k store.Key, m RawMail, raw *rawMail, o rawOptions) (store.Once, bool) {
	rcpts := mapped(m.RcptTo, mail.FoldAddress)
	slices.Sort(rcpts)
	envelope := append([]string{m.MailFrom}, slices.Compact(rcpts)...)
	once := store.Once{AccountID: k.AccountID, Operation: submissionOperation, Key: o.key}
	if k.Mode == store.KeyTest {
		once.Operation = "test " + submissionOperation
	}
	p := raw.parsed
	switch {
	case o.key != "":
		once.BodyHash = hashOf(append(envelope, raw.From.Email, p.Subject, p.Text, p.HTML)...)
	case raw.HeaderID != "":
		// No client can choose this key. A short one keeps the index small, in which each
		// submission writes at another place.
		sum := hashOf(append(envelope, raw.HeaderID, k.ID)...)
		once.Key, once.BodyHash = "\x01"+base64.RawStdEncoding.EncodeToString(sum[:submissionKeyBytes]), []byte{}
	default:
		return once, false
	}
	return once, true
}

func hashOf(texts ...string) []byte {
	h := sha256.New()
	e := json.NewEncoder(h)
	for _, t := range texts {
		_ = e.Encode(t) // never fails
	}
	return h.Sum(nil)
}
