package mime

import (
	"strings"
	"unicode"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// A leafPart is a part that is not a multipart.
type leafPart struct {
	number      int
	media       MediaType // Content-Type; text/plain when there is none
	disposition MediaType // Content-Disposition
	encoding    string    // Content-Transfer-Encoding
	contentID   string    // without angle brackets
	parent      string    // subtype of the multipart around it, "" for none
	first       bool      // the first part of that
}

// readPartHeader reads the fields that describe a part. Of a field that
// comes twice the first counts.
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
		p.encoding, _, _ = strings.Cut(f.Unfolded(), ";")
	case p.contentID == "" && f.Is("content-id"):
		p.contentID = plaintext.OneLine(strings.Trim(ValidUTF8([]byte(f.Unfolded())), "<> \t"))
	}
}

// filename returns the name that the part gives itself, made safe.
func (p *leafPart) filename() string {
	name := p.disposition.get("filename")
	if name == "" {
		name = p.media.get("name")
	}
	return SafeFilename(name)
}

// kind returns the media type. A part that has none is text, in a digest a
// mail (RFC 2046 section 5.1.5).
func (p *leafPart) kind() string {
	switch kind := p.media.Kind; {
	case kind == "" && p.parent == "digest":
		return "message/rfc822"
	case kind == "" || kind == "text" || kind == "plain":
		return "text/plain"
	case kind == "html":
		return "text/html"
	case !IsMediaType(kind):
		return "application/octet-stream"
	default:
		return kind
	}
}

// unflow returns the text of the part with the lines that it says are one.
func (p *leafPart) unflow(text string) string {
	if p.media.Kind != "text/plain" || !strings.EqualFold(p.media.Raw("format"), "flowed") {
		return text
	}
	return unflow(text, strings.EqualFold(p.media.Raw("delsp"), "yes"))
}

// IsMediaType reports whether s is "type/subtype" of RFC 2045 section 5.1.
func IsMediaType(s string) bool {
	if len(s) > 127 || strings.Count(s, "/") != 1 || s[0] == '/' || s[len(s)-1] == '/' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"[]?=`, r)
	}) < 0
}

// isShown reports whether a part is text of the message rather than a file that
// is attached to it.
func (p *leafPart) isShown(kind, name string) bool {
	switch {
	case kind != "text/plain" && kind != "text/html", p.disposition.Kind == "attachment":
		return false
	case p.parent == "related" && !p.first: // what the text refers to
		return false
	}
	return p.disposition.Kind == "inline" || !p.isNamedFile(name)
}

// isNamedFile reports whether a part of text has a name of its own, other
// than one given to the whole text. Such a file may be shown too, if it is
// "inline", but is listed as an attachment all the same.
func (p *leafPart) isNamedFile(name string) bool {
	return name != "" && p.parent != "" && p.parent != "alternative"
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

// MaxFilename is what file systems allow, in bytes.
const MaxFilename = 255

// SafeFilename returns the base name of a path of any system, without control
// characters and the marks that turn the direction of writing, by which
// "exe.gpj" can be shown as "jpg.exe".
func SafeFilename(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || plaintext.IsInvisible(r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	if name == "." || name == ".." {
		return ""
	}
	if len(name) <= MaxFilename {
		return name
	}
	// The extension shows the type of the file, so cut the middle.
	ext := ""
	if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= 20 {
		ext = name[i:]
	}
	return plaintext.Truncate(name, MaxFilename-len(ext)) + ext
}
