package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/postroom/postroom/gen"
)

// Raw returns the raw message, as received or as sent. The caller must close
// it.
func (c *Client) Raw(ctx context.Context, messageID string) (io.ReadCloser, error) {
	res, err := c.GetMessageRaw(ctx, gen.GetMessageRawParams{MessageID: messageID})
	if err != nil {
		return nil, err
	}
	return c.Download(ctx, res.Location)
}

// Attachment returns the metadata and the content of an attachment. The caller
// must close the content.
func (c *Client) Attachment(ctx context.Context, messageID, attachmentID string) (*gen.AttachmentDownload, io.ReadCloser, error) {
	a, err := c.GetAttachment(ctx, gen.GetAttachmentParams{MessageID: messageID, AttachmentID: attachmentID})
	if err != nil {
		return nil, nil, err
	}
	body, err := c.Download(ctx, a.DownloadURL)
	return a, body, err
}

// Download returns the content at a signed link, which may be outside the
// server. The request does not contain the key. The caller must close the
// content.
func (c *Client) Download(ctx context.Context, link url.URL) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("postroom: download: %w", err)
	}
	res, err := c.caller.Do(r)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	return res.Body, nil
}
