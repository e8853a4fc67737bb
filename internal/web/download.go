package web

import (
	"context"
	"net/url"
	"strings"

	"github.com/postroom/postroom/gen"
)

// attachmentLink returns the download link of an attachment and its size. mail is
// the id of a message or a draft.
func (d *Dashboard) attachmentLink(ctx context.Context, mail, attachment string) (url.URL, int64, error) {
	if strings.HasPrefix(mail, "drf_") {
		at, err := d.api.GetDraftAttachment(ctx, gen.GetDraftAttachmentParams{DraftID: mail, AttachmentID: attachment})
		if err != nil {
			return url.URL{}, 0, err
		}
		return at.DownloadURL, at.Size, nil
	}
	at, err := d.api.GetAttachment(ctx, gen.GetAttachmentParams{MessageID: mail, AttachmentID: attachment})
	if err != nil {
		return url.URL{}, 0, err
	}
	return at.DownloadURL, at.Size, nil
}

// downloadAttachment redirects to the download link of an attachment.
func (d *Dashboard) downloadAttachment(p *page) error {
	link, _, err := d.attachmentLink(p.ctx(), p.r.PathValue("mail"), p.r.PathValue("attachment"))
	if err != nil {
		return err
	}
	return p.goTo(d.near(link))
}

// downloadRaw redirects to the raw message.
func (d *Dashboard) downloadRaw(p *page) error {
	raw, err := d.api.GetMessageRaw(p.ctx(), gen.GetMessageRawParams{MessageID: p.r.PathValue("mail")})
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
