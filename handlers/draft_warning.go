package handlers

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mailhtml"
	"github.com/postroom/postroom/store"
)

// Codes of draft warnings.
const (
	warnRemoved    = "html_removed"
	warnHidden     = "hidden_text"
	warnMisleading = "misleading_link"
	warnRecipient  = "new_recipient"
	warnLink       = "link"
)

// maxWarnedLinks limits how many links in the text of a draft are listed.
const maxWarnedLinks = 50

// webAddress matches an http or https URL in plain text.
var webAddress = regexp.MustCompile(`https?://[^\s<>"]+`)

// settleHTML sanitizes the HTML of a draft, so that the approved content is
// what is sent, and replaces the warnings about the content. It keeps the
// warnings in before that are about recipients.
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
		if w.Code == warnRecipient {
			ws = append(ws, w)
		}
	}
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
func (a *API) newRecipients(ctx context.Context, s submission) ([]store.Warning, error) {
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
	case warnLink:
		out.Message = fmt.Sprintf("A link leads to %s.", w.Value)
	default:
		out.Message = w.Value
	}
	return out
}
