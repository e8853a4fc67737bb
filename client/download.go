package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/postroom/postroom/gen"
)

// Raw returns the bytes of a message as they came, or as they were sent. The
// caller closes them.
func (c *Client) Raw(ctx context.Context, messageID string) (io.ReadCloser, error) {
	res, err := c.GetMessageRaw(ctx, gen.GetMessageRawParams{MessageID: messageID})
	if err != nil {
		return nil, err
	}
	return c.Download(ctx, res.Location)
}

// Attachment returns what is known of an attachment, and its bytes, which the
// caller closes.
func (c *Client) Attachment(ctx context.Context, messageID, attachmentID string) (*gen.AttachmentDownload, io.ReadCloser, error) {
	a, err := c.GetAttachment(ctx, gen.GetAttachmentParams{MessageID: messageID, AttachmentID: attachmentID})
	if err != nil {
		return nil, nil, err
	}
	body, err := c.Download(ctx, a.DownloadURL)
	return a, body, err
}

// Download returns the bytes behind a signed link, which may lead to where the
// server keeps them. The key is not sent there. The caller closes the bytes.
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
