package handlers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/store"
)

// maxAttachmentBytes limits the decoded size of all attachments of a message
// together.
const maxAttachmentBytes = 40 << 20

// attachment is a file attached to a message. A stored one is streamed from storage
// while the message is written.
type attachment struct {
	compose.Attachment
	size int64
}

// stored returns attachments that open reads, by their index. If the content has been
// deleted, opening one fails with errExpired.
func stored(list []mail.Attachment, open func(i int) (io.ReadCloser, error)) []attachment {
	out := make([]attachment, len(list))
	for i, at := range list {
		out[i] = attachment{compose.Attachment{
			Filename: at.Filename, ContentType: at.ContentType, ContentID: goodContentID(at.ContentID), Inline: at.Inline,
			Open: func() (io.ReadCloser, error) {
				r, err := open(i)
				if errors.Is(err, store.ErrNotFound) {
					err = errExpired
				}
				return r, err
			},
		}, at.Size}
	}
	return out
}

// storedParts returns the attachments of a stored message.
func (a *API) storedParts(ctx context.Context, messageSeq int64, list []mail.Attachment) []attachment {
	return stored(list, func(i int) (io.ReadCloser, error) { return a.openPart(ctx, messageSeq, list[i].Part) })
}

// file returns the attachment in the form that a draft stores.
func (at attachment) file() store.DraftFile {
	open := at.Open
	if open == nil {
		open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(at.Content)), nil }
	}
	return store.DraftFile{Size: at.size, Open: open}
}

func outAttachments(in []attachment) []compose.Attachment {
	return mapped(in, func(at attachment) compose.Attachment { return at.Attachment })
}

// attachmentsFromAPI checks what the contract cannot: the total size, and null
// for bytes.
func attachmentsFromAPI(in []gen.MessageAttachmentInput) ([]attachment, error) {
	out := make([]attachment, 0, len(in))
	for i, at := range in {
		file, err := attachmentFromAPI(i, at)
		if err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return out, checkAttachments(out)
}

// emailAttachmentsFromAPI is attachmentsFromAPI for an email.
func emailAttachmentsFromAPI(in []gen.EmailAttachmentInput) ([]attachment, error) {
	return attachmentsFromAPI(mapped(in, func(at gen.EmailAttachmentInput) gen.MessageAttachmentInput {
		return gen.MessageAttachmentInput{Filename: at.Filename, Content: at.Content, ContentType: at.ContentType, ContentID: at.ContentId}
	}))
}

func attachmentFromAPI(i int, in gen.MessageAttachmentInput) (attachment, error) {
	name, content := in.Filename, in.Content
	if content == nil {
		return attachment{}, httpapi.Invalid(fieldPath("attachments", i, "content"), "must be base64 text")
	}
	if err := checkName(fieldPath("attachments", i, "filename"), &name); err != nil {
		return attachment{}, err
	}
	return attachment{compose.Attachment{
		Filename: name, ContentType: in.ContentType.Or(mediaType(name)), Content: content,
		ContentID: string(in.ContentID.Value), Inline: in.ContentID.Value != "",
	}, int64(len(content))}, nil
}

func checkAttachments(list []attachment) error {
	total := int64(0)
	for _, at := range list {
		total += at.size
	}
	if total > maxAttachmentBytes {
		return &httpapi.Error{
			Status: http.StatusBadRequest, Code: gen.ErrorCodeInvalidRequest, Param: "attachments",
			Message: "attachments may have at most 40 MB together, decoded",
		}
	}
	return nil
}

// mediaTypes are the types of common attachments that Go does not know on every
// system.
var mediaTypes = map[string]string{
	".csv":  "text/csv",
	".doc":  "application/msword",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".eml":  "message/rfc822",
	".gz":   "application/gzip",
	".ics":  "text/calendar",
	".log":  "text/plain",
	".md":   "text/markdown",
	".mp3":  "audio/mpeg",
	".mp4":  "video/mp4",
	".ods":  "application/vnd.oasis.opendocument.spreadsheet",
	".odt":  "application/vnd.oasis.opendocument.text",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".rtf":  "application/rtf",
	".txt":  "text/plain",
	".vcf":  "text/vcard",
	".wav":  "audio/wav",
	".xls":  "application/vnd.ms-excel",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".zip":  "application/zip",
}

// mediaType returns the media type for the extension of a file name.
func mediaType(filename string) string {
	ext := strings.ToLower(path.Ext(filename))
	known, _, _ := strings.Cut(mime.TypeByExtension(ext), ";")
	return cmp.Or(mediaTypes[ext], known, "application/octet-stream")
}

// extensions are for attachments that often have no name.
var extensions = map[string]string{
	"application/pdf": ".pdf", "image/gif": ".gif", "image/jpeg": ".jpg", "image/png": ".png",
	"message/rfc822": ".eml", "text/calendar": ".ics", "text/html": ".html", "text/plain": ".txt",
}

// attachmentName returns the name of an attachment, or one made from its type
// if it has none.
func attachmentName(at mail.Attachment) string {
	return cmp.Or(at.Filename, "attachment"+extensions[at.ContentType])
}
