package handlers

import (
	"context"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// checkView refuses a key that may read codes only and asks for more. The
// operations with a view list httpapi.CodesRead among their scopes.
func checkView(ctx context.Context, v gen.OptMessageView) error {
	if v.Value == gen.MessageViewCode || mayReadMessages(httpapi.Caller(ctx)) {
		return nil
	}
	return httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key lacks the scope read; with "+httpapi.CodesRead+" set view=code")
}

func mayReadMessages(k store.Key) bool { return httpapi.HasScope(k.Scopes.V, "read") }

// The sender controls all that a view of codes contains, so each value has a
// shape that leaves no room for sentences.
var (
	codeShape  = regexp.MustCompile(`^[A-Za-z0-9-]{4,12}$`)
	localShape = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+/=?^_{|}~.-]{1,64}$`)
	hostShape  = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+$`)
)

const (
	// maxCodes is the maxItems of ReceivedCode.codes.
	maxCodes = 10
	// maxCodeLink bounds the link, in bytes.
	maxCodeLink = 2048
	maxHost     = 253
)

// codeResult returns what GET .../messages/wait and GET /v1/messages/{id} return
// with view=code. A nil message is a timeout.
func codeResult(m *store.Message, next gen.WaitNext) *gen.CodeResult {
	out := &gen.CodeResult{Object: "code_result", TimedOut: m == nil, Code: gen.NilReceivedCode{Null: true}, Next: next}
	if m != nil {
		out.Code = gen.NewNilReceivedCode(receivedCode(*m))
	}
	return out
}

func receivedCode(m store.Message) gen.ReceivedCode {
	out := gen.ReceivedCode{
		Otp: gen.NilString{Null: true}, Codes: []string{}, ActionLink: gen.NilString{Null: true}, From: gen.NilString{Null: true},
		Auth: gen.NilAuthResults{Null: true}, MessageID: m.ID, ReceivedAt: m.CreatedAt.Time,
	}
	host := ""
	if from := m.Addresses.V.From; from != nil {
		if local, domain, ok := plainAddress(from.Email); ok {
			out.From, host = gen.NewNilString(local+"@"+domain), domain
		}
	}
	if m.ExpiredAt != nil || m.Content == nil || m.Direction != store.DirectionIn {
		return out
	}
	c := *m.Content
	out.Auth = authToAPI(c)
	if c.Extracted == nil {
		return out
	}
	out.Otp, out.Codes = plainCodes(c.Extracted.V)
	if link, linkHost := plainLink(c.Extracted.V.ActionLink); link != "" {
		out.ActionLink = gen.NewNilString(link)
		genuine := c.Auth != nil && (c.Auth.V.DMARC == "pass" || c.Auth.V.Internal == "pass")
		out.SameSite = genuine && sameSite(linkHost, host)
	}
	return out
}

// plainCodes returns the codes that look like codes. A code without a digit may
// be a word, so only the certain code may lack one.
func plainCodes(x mail.Extraction) (otp gen.NilString, codes []string) {
	otp, codes = gen.NilString{Null: true}, []string{}
	certain := ""
	if x.OTP != nil && codeShape.MatchString(*x.OTP) {
		certain = *x.OTP
		otp = gen.NewNilString(certain)
	}
	for _, c := range x.Codes {
		if len(codes) < maxCodes && codeShape.MatchString(c) && (c == certain || strings.ContainsAny(c, "0123456789")) {
			codes = append(codes, c)
		}
	}
	return otp, codes
}

// plainAddress splits an address into its parts. It refuses quoted local parts,
// which may contain spaces, and literal addresses.
func plainAddress(email string) (local, domain string, ok bool) {
	local, domain, ok = strings.Cut(email, "@")
	domain = strings.ToLower(domain)
	return local, domain, ok && localShape.MatchString(local) && len(domain) <= maxHost && hostShape.MatchString(domain)
}

// plainLink returns an http or https link in ASCII, and its host; "" if it is
// neither.
func plainLink(raw *string) (link, host string) {
	if raw == nil {
		return "", ""
	}
	u, err := url.Parse(*raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", ""
	}
	host = strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if _, err := netip.ParseAddr(host); err != nil && !hostShape.MatchString(host) {
		return "", ""
	}
	u.RawQuery = escapeSpaces(u.RawQuery)
	link = u.String()
	if len(link) > maxCodeLink || strings.IndexFunc(link, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return "", ""
	}
	return link, host
}

// escapeSpaces escapes what url.Parse leaves as it is in a query.
func escapeSpaces(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c > '~' || c == '"' || c == '<' || c == '>' {
			b.WriteString(url.QueryEscape(string([]byte{c})))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// sameSite reports whether two hosts belong to one registrable domain.
func sameSite(a, b string) bool {
	siteA, errA := publicsuffix.EffectiveTLDPlusOne(a)
	siteB, errB := publicsuffix.EffectiveTLDPlusOne(b)
	return errA == nil && errB == nil && siteA == siteB
}

// waitNext returns what the next wait should pass. After a match that is the
// message, after a timeout what this call passed.
func waitNext(m *store.Message, after gen.OptString, since time.Time) gen.WaitNext {
	next := gen.WaitNext{After: gen.NilString{Null: true}, Since: since}
	if id, ok := after.Get(); ok {
		next.After = gen.NewNilString(id)
	}
	if m != nil {
		next.After = gen.NewNilString(m.ID)
	}
	return next
}
