package handlers

import (
	"context"
	"io"

	"github.com/postroom/postroom/gen"
)

// GetDraftAttachment implements GET /v1/drafts/{draft_id}/attachments/{attachment_id}.
func (a *API) GetDraftAttachment(ctx context.Context, p gen.GetDraftAttachmentParams) (*gen.DraftAttachmentDownload, error) {
	d, err := a.draftOf(ctx, p.DraftID)
	if err != nil {
		return nil, err
	}
	if d.Content == nil {
		return nil, errExpired
	}
	i := indexAttachment(d.Content.Attachments.V, p.AttachmentID)
	if i < 0 {
		return nil, errNoAttachment
	}
	v := attachmentToAPI(d.Content.Attachments.V[i])
	link, expires, err := a.link(d.AccountID, d.ID, v.ID)
	if err != nil {
		return nil, err
	}
	return &gen.DraftAttachmentDownload{
		ID: v.ID, Filename: v.Filename, ContentType: v.ContentType, Size: v.Size, Inline: v.Inline, ContentID: v.ContentID,
		Object: "attachment", DraftID: d.ID, DownloadURL: link, ExpiresAt: expires,
	}, nil
}

// openDraftFile opens an attachment stored with a draft.
func (a *API) openDraftFile(ctx context.Context, f file) (io.ReadSeekCloser, string, error) {
	d, err := a.store.Draft(ctx, f.accountID, f.ownerID)
	if err != nil {
		return nil, "", err
	}
	if d.Content == nil {
		return nil, "", errNoAttachment
	}
	i := indexAttachment(d.Content.Attachments.V, f.attachmentID)
	if i < 0 {
		return nil, "", errNoAttachment
	}
	at := d.Content.Attachments.V[i]
	open := func() (io.ReadCloser, error) { return a.store.OpenDraftFile(ctx, d, i) }
	return &reopeningReader{open: open, size: at.Size}, attachmentName(at), nil
}
