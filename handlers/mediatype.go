package handlers

import (
	"cmp"
	"mime"
	"path"
	"strings"

	"github.com/postroom/postroom/internal/mail"
)

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
