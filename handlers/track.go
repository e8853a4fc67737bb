package handlers

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/store"
)

// track adds tracking of opens and clicks to the HTML of an email. It skips
// emails that are never sent and those with several recipients: all get the
// same message, so an open would not identify one of them.
func (a *API) track(s *submission, id, html string) string {
	opens, clicks := a.cfg.TrackOpens, a.cfg.TrackClicks
	if !s.isEmail || s.testMode || html == "" || a.cfg.Feedback == nil || !opens && !clicks || len(s.to)+len(s.cc)+len(s.bcc) != 1 {
		return html
	}
	t := feedback.Tracked{Account: s.account, ID: id}
	link, pixel := func(string) string { return "" }, ""
	if clicks {
		link = func(target string) string {
			if !feedback.IsWeb(target) {
				return ""
			}
			return a.cfg.BaseURL.JoinPath(feedback.ClickPath, a.cfg.Feedback.Click(t, target)).String()
		}
	}
	if opens {
		pixel = a.cfg.BaseURL.JoinPath(feedback.OpenPath, a.cfg.Feedback.Open(t)).String()
	}
	return compose.RewriteLinks(html, link, pixel)
}

// pixel is a transparent GIF of one pixel.
var pixel, _ = base64.StdEncoding.DecodeString("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")

// opened serves the tracking pixel and records the open.
func (a *API) opened(w http.ResponseWriter, r *http.Request, token string) {
	t, ok := a.cfg.Feedback.ReadOpen(token)
	if !a.follows(w, r, ok) {
		return
	}
	a.engaged(r, t, store.Report{Status: store.RecipientOpened})
	secureLink(w.Header())
	w.Header().Set("Content-Type", "image/gif")
	_, _ = w.Write(pixel) // the client may have disconnected
}

// clicked redirects to the target in the signed token and records the click.
// The redirect works even if recording fails.
func (a *API) clicked(w http.ResponseWriter, r *http.Request, token string) {
	t, target, ok := a.cfg.Feedback.ReadClick(token)
	if !a.follows(w, r, ok) {
		return
	}
	a.engaged(r, t, store.Report{Status: store.RecipientClicked, Link: target})
	secureLink(w.Header())
	w.Header().Set("Location", target)
	w.WriteHeader(http.StatusFound)
}

// follows reports whether a request follows a tracking link. It refuses others:
// those with an invalid token or another method.
func (a *API) follows(w http.ResponseWriter, r *http.Request, valid bool) bool {
	switch {
	case !valid:
		a.refuseLink(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		a.refuseMethod(r.Context(), w, "GET, HEAD")
	default:
		return true
	}
	return false
}

// engageTimeout limits how long recording may delay the reader.
const engageTimeout = 3 * time.Second

// engaged records an open or a click. It ignores HEAD.
func (a *API) engaged(r *http.Request, t feedback.Tracked, report store.Report) {
	if r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), engageTimeout)
	defer cancel()
	sent, err := a.store.SentEmail(ctx, t.Account, t.ID)
	if err == nil && sent.Engagements < store.MaxEngagements {
		report.RecipientSeq, report.MessageSeq = sent.RecipientSeq, sent.MessageSeq
		report.Bot = isMachine(r) || sent.HandedOverAt == nil || a.now().Sub(sent.HandedOverAt.Time) < tooSoon
		err = a.store.RecordReport(ctx, report)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) && r.Context().Err() == nil { // not if the email is deleted or the client has disconnected
		a.log.WarnContext(ctx, "open or click not recorded", "error", err, "request_id", httpapi.RequestID(ctx))
	}
}

// tooSoon is the time after delivery in which an open or click counts as
// automatic: mail servers follow links at once.
const tooSoon = 2 * time.Second

// machines are words in the User-Agent of crawlers, scanners, previews and
// tools.
var machines = []string{
	"bot", "crawl", "spider", "slurp", "preview", "prefetch", "scan", "monitor", "headless", "facebookexternalhit", "proofpoint",
	"barracuda", "mimecast", "curl/", "wget/", "python", "java/", "go-http-client", "okhttp", "libwww", "httpclient",
}

// isMachine reports whether a request is automatic, so that a person may never
// see the response.
func isMachine(r *http.Request) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		value := strings.ToLower(r.Header.Get(name))
		if strings.Contains(value, "prefetch") || strings.Contains(value, "preview") || strings.Contains(value, "prerender") {
			return true
		}
	}
	agent := strings.ToLower(r.UserAgent())
	if agent == "" || agent == "mozilla/5.0" { // Apple Mail prefetches all images as Mozilla/5.0
		return true
	}
	return slices.ContainsFunc(machines, func(word string) bool { return strings.Contains(agent, word) })
}
