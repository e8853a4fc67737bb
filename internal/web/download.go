package web

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/postroom/postroom/gen"
)

// attachment returns a file. mail is the id of a message or a draft.
func (d *Dashboard) attachment(ctx context.Context, mail, attachment string) (*gen.AttachmentDownload, error) {
	if !strings.HasPrefix(mail, "drf_") {
		return d.api.GetAttachment(ctx, gen.GetAttachmentParams{MessageID: mail, AttachmentID: attachment})
	}
	at, err := d.api.GetDraftAttachment(ctx, gen.GetDraftAttachmentParams{DraftID: mail, AttachmentID: attachment})
	if err != nil {
		return nil, err
	}
	return &gen.AttachmentDownload{DownloadURL: at.DownloadURL, Size: at.Size, Filename: at.Filename, ContentType: at.ContentType}, nil
}

// downloadAttachment redirects to the download link of an attachment.
func (d *Dashboard) downloadAttachment(p *page) error {
	at, err := d.attachment(p.ctx(), p.id(), p.r.PathValue("attachment"))
	if err != nil {
		return err
	}
	return p.goTo(d.near(at.DownloadURL))
}

// hasText reports whether the text of an attachment of this type can be shown.
func hasText(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); kind {
	case "application/json", "application/xml", "message/rfc822":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}

// filePage shows the text of an attachment.
type filePage struct {
	Name, Kind     string
	Back, Download string // URL paths
	Size           int64
	Text           string
	Cut            bool // only the beginning is shown
	Problem        string
}

// showText shows the text of an attachment: never what it would do elsewhere, but
// the text that it holds.
func (d *Dashboard) showText(p *page) error {
	mail := p.id()
	at, err := d.attachment(p.ctx(), mail, p.r.PathValue("attachment"))
	if err != nil {
		return err
	}
	v := filePage{
		Name: at.Filename, Kind: at.ContentType, Size: at.Size, Back: mailSource{ID: mail}.path(), Download: strings.TrimSuffix(p.r.URL.Path, "/text"),
	}
	if !hasText(at.ContentType) {
		v.Problem = "Files of this type have no preview. Download the file to open it."
		return p.show("file", v)
	}
	text, err := d.fileText(p.ctx(), at.DownloadURL)
	if err != nil {
		return err
	}
	v.Text, v.Cut = cutSource(strings.ToValidUTF8(text, "\ufffd"))
	return p.show("file", v)
}

// fileText returns the beginning of the file of a download link, one byte more than a
// page shows.
func (d *Dashboard) fileText(ctx context.Context, link url.URL) (string, error) {
	file, err := d.openFile(ctx, link)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it is in memory
	b, err := io.ReadAll(io.LimitReader(file, mostShown+1))
	return string(b), err
}

// downloadRaw redirects to the raw message.
func (d *Dashboard) downloadRaw(p *page) error {
	raw, err := d.api.GetMessageRaw(p.ctx(), gen.GetMessageRawParams{MessageID: p.id()})
	if err != nil {
		return err
	}
	return p.goTo(d.near(raw.Location))
}

// near removes the host from a link to this server, because the user may have
// reached it by another name.
func (d *Dashboard) near(link url.URL) string {
	if link.Scheme == d.cfg.BaseURL.Scheme && link.Host == d.cfg.BaseURL.Host {
		return link.RequestURI()
	}
	return link.String()
}
