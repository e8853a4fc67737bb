package web

import (
	"fmt"
	"html"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mailhtml"
)

// sandbox lets the document of a message open links in new windows. The document
// runs no scripts and, outside a frame of the dashboard, has an opaque origin.
const sandbox = "allow-popups allow-popups-to-escape-sandbox"

// sameOrigin lets the page measure the document in its frame. It gives the
// document nothing, because only scripts can use an origin, and it runs none.
const sameOrigin = " allow-same-origin"

// framePolicy lets the document of a message use inline styles and images of the
// sources given. Everything else is blocked.
const framePolicy = "default-src 'none'; img-src %s; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; " +
	"frame-ancestors 'self'; sandbox " + sandbox

// ownImages are those that the dashboard serves. The user may also ask for the
// remote images of a message, which the browser loads over https.
const ownImages, remoteImages = "'self' data:", "'self' data: https:"

// maxRemoteAddress is the maximum length of a remote image's URL in bytes.
const maxRemoteAddress = 4 << 10

// frameStyle is the default style of a message. The message's own style follows
// it; then frameLinks, which the message cannot override, shows where links lead.
const (
	frameStyle = `:root{color-scheme:light}html{background:#fff}body{margin:0;padding:14px;color:#191c2b;overflow-wrap:anywhere;` +
		`font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}img{max-width:100%}pre{white-space:pre-wrap;font:inherit;margin:0}` +
		`img[data-left-out]{content:url("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>");background:#eef0f7;border-radius:3px}` +
		`img[data-left-out]:not([width],[style*=width]){width:6em;height:2em}img[data-left-out]:is([width="0"],[width="1"],[height="0"],[height="1"]){width:0;height:0}`
	frameLinks = `a[href]:is(:hover,:focus-visible)::after{content:attr(title)!important;position:fixed!important;left:0!important;bottom:0!important;` +
		`z-index:9!important;max-width:100%!important;padding:3px 10px!important;background:#191c2b!important;color:#fff!important;` +
		`font:12px/1.5 system-ui,sans-serif!important;overflow-wrap:anywhere!important;border-radius:0 6px 0 0!important;display:block!important}`
)

// mailSource is the content of a document: a message or a draft.
type mailSource struct {
	ID          string // msg_, drf_ or em_; empty for the preview of a template
	Title       string
	Lead        string // lines above the content
	Text, HTML  string
	Attachments []gen.Attachment
	// Draft marks a draft, which is shown in full, with the text that its styles
	// hide.
	Draft bool
}

func (m mailSource) path() string {
	if strings.HasPrefix(m.ID, "drf_") {
		return "/approvals/" + m.ID
	}
	if strings.HasPrefix(m.ID, "em_") {
		return "/emails/content/" + m.ID
	}
	return "/messages/" + m.ID
}

func messageSource(m *gen.Message) mailSource {
	return mailSource{ID: m.ID, Title: m.Subject, Text: m.Text.Or(""), HTML: m.HTML.Or(""), Attachments: m.Attachments}
}

// emailSource has no attachments: the API serves none of an email.
func emailSource(e *gen.Email) mailSource {
	return mailSource{ID: e.ID, Title: e.Subject, Text: e.Text.Or(""), HTML: e.HTML.Or("")}
}

func draftSource(dr *gen.Draft) mailSource {
	return mailSource{ID: dr.ID, Title: dr.Subject, Text: dr.Text.Or(""), HTML: dr.HTML.Or(""), Attachments: dr.Attachments, Draft: true}
}

// clean sanitizes the HTML of a message. With remote it keeps the remote images.
func (p *page) clean(m mailSource, remote bool) mailhtml.Page {
	o := mailhtml.Options{Reveal: m.Draft, Inline: func(contentID string) string {
		for _, at := range m.Attachments {
			if at.ContentID.Or("") != "" && strings.Trim(at.ContentID.Value, "<>") == contentID {
				return p.imageLink(m.ID, at.ID)
			}
		}
		return ""
	}}
	if remote {
		o.Remote = func(address string) string {
			if len(address) > maxRemoteAddress {
				return ""
			}
			if rest, plain := strings.CutPrefix(address, "http://"); plain {
				return "https://" + rest
			}
			return address
		}
	}
	return mailhtml.Clean(m.HTML, o)
}

// asksRemote reports whether the request asks for the remote images of a message,
// with a value that only this session can have.
func (p *page) asksRemote(m mailSource) bool {
	asked := p.r.URL.Query().Get("remote")
	return asked != "" && p.signedAs(asked, p.remoteMark(m.ID))
}

// remoteAsk returns the signed value of the "remote" parameter for a message.
func (p *page) remoteAsk(mail string) string { return p.d.sign(p.remoteMark(mail)) }

func (p *page) remoteMark(mail string) string { return fmt.Sprintf("remote %x %s", p.session(), mail) }

// showFrame writes the document of a message that a frame shows.
func (p *page) showFrame(m mailSource) error {
	if p.r.URL.Query().Get("part") == "text" {
		m.HTML = ""
	}
	return p.showDocument(m, p.asksRemote(m))
}

// showText writes a document with only a text.
func (p *page) showText(text string) error { return p.showDocument(mailSource{Text: text}, false) }

// showDocument writes the document that a frame shows. With remote it has remote images.
func (p *page) showDocument(m mailSource, remote bool) error {
	body, style := pre(m.Text), ""
	if m.HTML != "" {
		c := p.clean(m, remote)
		body, style = c.Body, c.Style
	}
	if m.Lead != "" {
		body = pre(m.Lead) + "<hr>" + body
	}
	h := p.w.Header()
	policy := fmt.Sprintf(framePolicy, ownImages)
	switch {
	case remote: // the opaque origin keeps cookies from the hosts of the images
		policy = fmt.Sprintf(framePolicy, remoteImages)
	case p.r.Header.Get("Sec-Fetch-Dest") == "iframe": // only our own pages may frame it
		policy += sameOrigin
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("X-DNS-Prefetch-Control", "off")
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(p.w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">`+
		`<title>%s</title><style>%s</style><style>%s</style><style>%s</style></head><body>%s</body></html>`,
		html.EscapeString(m.Title), frameStyle, style, frameLinks, body) // the client may have disconnected
	return nil
}

func pre(text string) string { return "<pre>" + html.EscapeString(text) + "</pre>" }

// frame describes the iframe that shows a message.
type frame struct {
	Src, Title string
	// Height is an estimate in pixels: the page cannot measure the document. Whole means
	// that the frame is as high as that, because nothing of the message may be hidden.
	Height int
	Whole  bool
	// Blocked is the number of remote images that are not shown. Ask is the value
	// that requests them.
	Blocked int
	Ask     string
	// Shown reports whether the remote images are shown.
	Shown bool
	// Cut reports whether the message was truncated.
	Cut bool
}

// longText is the size in bytes above which text is shown in a frame and not in
// the page itself.
const longText = 16 << 10

// frameOf returns the frame of a message, or nil when its text fits into the
// page.
func (p *page) frameOf(m mailSource, remote bool) *frame {
	f := &frame{Src: m.path() + "/view", Title: "Message “" + m.Title + "”", Whole: m.Draft}
	if m.HTML == "" {
		if len(m.Text) <= longText {
			return nil
		}
		f.Src += "?part=text"
		f.Height = heightOf(len(m.Text), strings.Count(m.Text, "\n"), 0)
		return f
	}
	c := p.clean(m, false)
	breaks := 0
	for _, tag := range lineEnds {
		breaks += strings.Count(c.Body, tag)
	}
	f.Height, f.Blocked, f.Cut = heightOf(c.Text, breaks, c.Images), c.Blocked, c.Cut
	if c.Blocked > 0 {
		f.Ask = p.remoteAsk(m.ID)
		if remote {
			f.Shown, f.Src = true, f.Src+"?remote="+f.Ask
		}
	}
	return f
}

// lineEnds are the elements that start a new line.
var lineEnds = []string{"<br", "<p", "<div", "<tr", "<li", "<h"}

// heightOf estimates the height of a message generously, in pixels, between bounds. A
// message may hide its end on purpose, so the page also warns that there may be more.
func heightOf(text, breaks, images int) int {
	const line, perLine, picture, margin, lowest, highest = 21, 60, 200, 120, 180, 20_000
	return min(max(margin+line*(text/perLine+breaks)+picture*images, lowest), highest)
}
