package mime

import (
	"strings"
	"unicode"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// A leafPart is a part that is not a multipart.
type leafPart struct {
	number      int
	media       MediaType // Content-Type; text/plain if missing
	disposition MediaType // Content-Disposition
	encoding    string    // Content-Transfer-Encoding
	contentID   string    // without angle brackets
	parent      string    // subtype of the parent multipart, or ""
	root        bool      // the text of its parent, a related multipart
	first       bool      // no text of the message came before
}

// readPartHeader reads the fields that describe a part. The first occurrence of
// a field counts.
func readPartHeader(header []byte) leafPart {
	var p leafPart
	Fields(header, p.read)
	return p
}

func (p *leafPart) read(f Field) {
	if len(f.Name) < len("content-id") || f.Name[0]|0x20 != 'c' {
		return
	}
	switch {
	case p.media.Kind == "" && f.Is("content-type"):
		p.media = ParseMedia(f.Unfolded())
	case p.disposition.Kind == "" && f.Is("content-disposition"):
		p.disposition = ParseMedia(f.Unfolded())
	case p.encoding == "" && f.Is("content-transfer-encoding"):
		p.encoding = strings.Trim(FirstToken(decodeWords(f.Unfolded())), `"`)
	case p.contentID == "" && f.Is("content-id"):
		p.contentID = cleanContentID(f.Unfolded())
	}
}

// cleanContentID returns a Content-ID without angle brackets and white space.
func cleanContentID(s string) string {
	s = plaintext.OneLine(decodeWords(s))
	return strings.Trim(strings.Join(strings.Fields(s), ""), "<>")
}

// filename returns the safe form of the part's file name, or "".
func (p *leafPart) filename() string {
	name := p.disposition.get("filename")
	if name == "" {
		name = p.media.get("name")
	}
	return SafeFilename(name)
}

// kind returns the media type. Without one, it is text/plain, or message/rfc822
// in a digest (RFC 2046 section 5.1.5).
func (p *leafPart) kind() string {
	switch kind := p.media.Kind; {
	case kind == "" && p.parent == "digest":
		return "message/rfc822"
	case kind == "" || kind == "text" || kind == "plain":
		return "text/plain"
	case kind == "html" || kind == "application/xhtml+xml":
		return "text/html"
	case !IsMediaType(kind):
		return "application/octet-stream"
	default:
		return kind
	}
}

// unflow joins the lines of format=flowed text.
func (p *leafPart) unflow(text string) string {
	if p.media.Kind != "text/plain" || !strings.EqualFold(p.media.Raw("format"), "flowed") {
		return text
	}
	return unflow(text, strings.EqualFold(p.media.Raw("delsp"), "yes"))
}

// IsMediaType reports whether s has the form "type/subtype" (RFC 2045 section
// 5.1).
func IsMediaType(s string) bool {
	if len(s) > 127 || strings.Count(s, "/") != 1 || s[0] == '/' || s[len(s)-1] == '/' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"[]?=`, r)
	}) < 0
}

// isShown reports whether a part is text of the message rather than an
// attachment.
func (p *leafPart) isShown(kind, name string) bool {
	switch {
	case !isText(kind), p.disposition.Kind == "attachment":
		return false
	case p.parent == "related" && !p.root: // the text refers to it
		return false
	}
	return p.disposition.Kind == "inline" || p.first && p.disposition.Kind == "" || !p.isNamedFile(name)
}

// isText reports whether parts of this media type can be the text of a message.
func isText(kind string) bool { return kind == "text/plain" || kind == "text/html" }

// isNamedFile reports whether a text part is a named file. An alternative, the
// root of a related multipart or the whole message is not one, even if it has a
// name, and the first HTML is not one by its Content-Type alone. A named file with
// disposition "inline", and the first plain text without a disposition, is shown and
// also listed as an attachment.
func (p *leafPart) isNamedFile(name string) bool {
	switch {
	case name == "", p.parent == "", p.parent == "alternative", p.root && p.kind() == "text/html":
		return false
	}
	return !p.first || p.kind() != "text/html" || p.disposition.Kind != ""
}

// isRoot reports whether a leaf of a related multipart is its text: the one that
// the multipart names, else the first of its kind, but not plain text after HTML.
func (p *leafPart) isRoot(parent *openMultipart) bool {
	switch kind := p.kind(); {
	case parent.subtype != "related" || p.disposition.Kind == "attachment":
		return false
	case parent.start != "" && parent.start == p.contentID:
		return true
	case kind == "text/html":
		return !parent.html
	default:
		return kind == "text/plain" && !parent.plain && !parent.html
	}
}

// isOtherForm reports whether the part is the HTML of the message in a form for few
// programs, AMP or watches, rather than a file.
func (p *leafPart) isOtherForm(kind, name string) bool {
	return p.parent == "alternative" && name == "" && p.disposition.Kind != "attachment" &&
		(kind == "text/x-amp-html" || kind == "text/watch-html")
}

// isInline reports whether the HTML of the message shows the part.
func (p *leafPart) isInline() bool {
	switch p.disposition.Kind {
	case "inline":
		return true
	case "":
		return p.contentID != "" && p.parent == "related"
	}
	return false
}

// MaxFilename is the maximum length of a file name in bytes, as in most file
// systems.
const MaxFilename = 255

// SafeFilename returns the base name of a Unix or Windows path, without control
// characters and bidirectional marks, which could show "exe.gpj" as "jpg.exe".
func SafeFilename(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || plaintext.IsInvisible(r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, plaintext.Visible(name))
	name = strings.TrimSpace(name)
	if name == "." || name == ".." {
		return ""
	}
	if len(name) <= MaxFilename {
		return name
	}
	// Cut before the extension, which shows the type of the file.
	ext := ""
	if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= 20 {
		ext = name[i:]
	}
	return plaintext.Truncate(name, MaxFilename-len(ext)) + ext
}
