package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
)

// links serves the links in sent mail. They are for people and mail clients and
// not part of the contract: the token is the credential, no key is needed, and
// responses are HTML pages.
func (a *API) links(next http.Handler) http.Handler {
	if a.cfg.Feedback == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix, serve := range map[string]func(http.ResponseWriter, *http.Request, string){
			feedback.UnsubscribePath: a.unsubscribe,
			feedback.OpenPath:        a.opened,
			feedback.ClickPath:       a.clicked,
		} {
			if token, ok := strings.CutPrefix(r.URL.Path, prefix); ok {
				serve(w, r, token)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// unsubscribe shows a confirmation page for the link in a marketing email and
// unsubscribes on POST: by the button, or with one click by a mail client (RFC
// 8058 section 3.2). Scanners that follow links send only GET.
func (a *API) unsubscribe(w http.ResponseWriter, r *http.Request, token string) {
	ctx := r.Context()
	sub, ok := a.cfg.Feedback.ReadUnsubscribe(token)
	switch {
	case !ok:
		a.refuseLink(w, r)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		a.writePage(ctx, w, r, http.StatusOK, linkPage{
			Title: "Unsubscribe?", Text: "You will get no more marketing mail from this sender at", Email: sub.Email, Button: "Unsubscribe",
		})
	case r.Method == http.MethodPost:
		if err := a.store.Unsubscribe(ctx, sub.Account, sub.Message, sub.Email, mail.CanonicalAddress(sub.Email)); err != nil {
			a.WriteError(ctx, w, a.Classify(ctx, err))
			return
		}
		a.log.InfoContext(ctx, "unsubscribed", "request_id", httpapi.RequestID(ctx))
		a.writePage(ctx, w, r, http.StatusOK, linkPage{
			Title: "You are unsubscribed", Text: "There will be no more marketing mail from this sender at", Email: sub.Email,
		})
	default:
		a.refuseMethod(ctx, w, "GET, HEAD, POST")
	}
}

// refuseLink responds to an invalid link. Guesses count against the client
// address, like bad keys.
func (a *API) refuseLink(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if err := a.LimitAddress(ctx); err != nil {
		a.WriteError(ctx, w, a.Classify(ctx, err))
		return
	}
	a.writePage(ctx, w, r, http.StatusNotFound, linkPage{
		Title: "This link does not work", Text: "It may have been cut off. Please use the link in the mail.",
	})
}

func (a *API) refuseMethod(ctx context.Context, w http.ResponseWriter, allowed string) {
	w.Header().Set("Allow", allowed)
	a.WriteError(ctx, w, &httpapi.Error{
		Status: http.StatusMethodNotAllowed, Code: gen.ErrorCodeMethodNotAllowed, Message: "this link takes " + allowed,
	})
}

// linkPage is the content of a page.
type linkPage struct {
	Title, Text, Email string
	Button             string // of a form that posts to the same page; empty for none
	Style              template.CSS
}

// linkStyle needs no other resources and follows the reader's color scheme.
const linkStyle = `
:root{color-scheme:light dark}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:light-dark(#f4f4f5,#18181b);color:light-dark(#18181b,#f4f4f5);font:17px/1.5 system-ui,sans-serif}
main{box-sizing:border-box;width:min(26rem,100% - 2rem);padding:2rem;border-radius:1rem;background:light-dark(#fff,#27272a);text-align:center}
h1{margin:0 0 1rem;font-size:1.4rem}
p{margin:0 0 1.5rem;overflow-wrap:anywhere}
p:last-child{margin:0}
button{width:100%;min-height:3rem;border:0;border-radius:.6rem;background:#2563eb;color:#fff;font:inherit;font-weight:600;cursor:pointer}
button:focus-visible{outline:3px solid #93c5fd;outline-offset:2px}
`

// The form posts the same field as the one-click request of a mail client.
var linkTemplate = template.Must(template.New("link").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{{.Title}}</title>
<style>{{.Style}}</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}{{with .Email}} <strong>{{.}}</strong>.{{end}}</p>
{{with .Button}}<form method="post"><input type="hidden" name="List-Unsubscribe" value="One-Click"><button>{{.}}</button></form>
{{end}}</main>
</body>
</html>
`))

var linkPolicy = func() string {
	sum := sha256.Sum256([]byte(linkStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

func (a *API) writePage(ctx context.Context, w http.ResponseWriter, r *http.Request, status int, p linkPage) {
	p.Style = linkStyle
	var body bytes.Buffer
	if err := linkTemplate.Execute(&body, p); err != nil {
		a.WriteError(ctx, w, a.Classify(ctx, err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", linkPolicy)
	secureLink(h)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes()) // the client may have disconnected
	}
}

// secureLink prevents caching, indexing and referrer leaks of a response that
// depends on a token.
func secureLink(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
}
