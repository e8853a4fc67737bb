package handlers

import (
	"context"
	"io"
	"time"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/store"
)

// DueRules returns the rules that the store applies to a scheduled email when
// it is due. mailDomain is the mail domain of the installation.
func DueRules(s *store.Store, mailDomain string) store.DueRules {
	a := &API{store: s}
	return store.DueRules{MailDomain: mailDomain, Fold: mail.FoldAddress, Draft: a.draftOfEmail}
}

// draftOfEmail returns the draft that replaces a scheduled email if its inbox
// now requires approval. The store keeps its tags, metadata and category.
func (a *API) draftOfEmail(ctx context.Context, e store.Email) (store.NewDraft, error) {
	n := store.NewDraft{Draft: store.Draft{
		Addresses: e.Addresses, Subject: e.Subject, Refs: e.Refs, Content: &store.DraftContent{Headers: store.JSON[[][2]string]{V: [][2]string{}}},
	}}
	if b := e.Content.Body; b != nil {
		n.Content.Text, n.Content.HTML = b.V.Text, b.V.HTML
	}
	var files []attachment
	for _, at := range e.Content.Attachments.V {
		files = append(files, stored(compose.Attachment{
			Filename: at.Filename, ContentType: at.ContentType, ContentID: goodContentID(at.ContentID), Inline: at.Inline,
		}, at.Size, func() (io.ReadCloser, error) { return a.openPart(ctx, e.Seq, at.Part) }))
	}
	for _, at := range files {
		n.Files = append(n.Files, at.file())
	}
	n.Content.Attachments.V = heldAttachments(files, time.Now())
	recipients, err := a.newRecipients(ctx, submission{
		inbox: store.Inbox{Seq: *e.FromInbox}, testMode: e.TestMode, to: fromStore(e.Addresses.V.To), cc: fromStore(e.Addresses.V.Cc),
		bcc: fromStore(e.Addresses.V.Bcc),
	})
	settleHTML(n.Content, recipients)
	return n, err
}
