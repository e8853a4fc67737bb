package message

import (
	"strings"
	"unicode"
)

// A leafPart is a part that is not a multipart.
type leafPart struct {
	number      int
	media       mediaValue // Content-Type; text/plain when there is none
	disposition mediaValue // Content-Disposition
	encoding    string     // Content-Transfer-Encoding
	contentID   string     // without angle brackets
	parent      string     // subtype of the multipart around it, "" for none
	first       bool       // the first part of that
}

// readPartHeader reads the fields that describe a part. Of a field that
// comes twice the first counts.
func readPartHeader(header []byte) leafPart {
	var p leafPart
	fields(header, p.read)
	return p
}

func (p *leafPart) read(f field) {
	if len(f.name) < len("content-id") || f.name[0]|0x20 != 'c' {
		return
	}
	switch {
	case p.media.kind == "" && f.is("content-type"):
		p.media = parseMedia(f.unfolded())
	case p.disposition.kind == "" && f.is("content-disposition"):
		p.disposition = parseMedia(f.unfolded())
	case p.encoding == "" && f.is("content-transfer-encoding"):
		p.encoding, _, _ = strings.Cut(f.unfolded(), ";")
	case p.contentID == "" && f.is("content-id"):
		p.contentID = oneLine(strings.Trim(validUTF8([]byte(f.unfolded())), "<> \t"))
	}
}

// filename returns the name that the part gives itself, made safe.
func (p *leafPart) filename() string {
	name := p.disposition.get("filename")
	if name == "" {
		name = p.media.get("name")
	}
	return safeFilename(name)
}

// kind returns the media type. A part that has none is text, in a digest a
// mail (RFC 2046 section 5.1.5).
func (p *leafPart) kind() string {
	switch kind := p.media.kind; {
	case kind == "" && p.parent == "digest":
		return "message/rfc822"
	case kind == "" || kind == "text" || kind == "plain":
		return "text/plain"
	case kind == "html":
		return "text/html"
	case !isMediaType(kind):
		return "application/octet-stream"
	default:
		return kind
	}
}

// unflow returns the text of the part with the lines that it says are one.
func (p *leafPart) unflow(text string) string {
	if p.media.kind != "text/plain" || !strings.EqualFold(p.media.raw("format"), "flowed") {
		return text
	}
	return unflow(text, strings.EqualFold(p.media.raw("delsp"), "yes"))
}

// isMediaType reports whether s is "type/subtype" of RFC 2045 section 5.1.
func isMediaType(s string) bool {
	if len(s) > 127 || strings.Count(s, "/") != 1 || s[0] == '/' || s[len(s)-1] == '/' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"[]?=`, r)
	}) < 0
}

// isShown reports whether a part is text of the mail rather than a file that
// is attached to it.
func (p *leafPart) isShown(kind, name string) bool {
	switch {
	case kind != "text/plain" && kind != "text/html", p.disposition.kind == "attachment":
		return false
	case p.parent == "related" && !p.first: // what the text refers to
		return false
	}
	return p.disposition.kind == "inline" || !p.isNamedFile(name)
}

// isNamedFile reports whether a part of text has a name of its own, other
// than one given to the whole text. Such a file may be shown too, if it is
// "inline", but is listed as an attachment all the same.
func (p *leafPart) isNamedFile(name string) bool {
	return name != "" && p.parent != "" && p.parent != "alternative"
}

// isInline reports whether the HTML of the mail shows the part.
func (p *leafPart) isInline() bool {
	switch p.disposition.kind {
	case "inline":
		return true
	case "":
		return p.contentID != "" && p.parent == "related"
	}
	return false
}

// maxFilename is what file systems allow, in bytes.
const maxFilename = 255

// safeFilename returns the base name of a path of any system, without control
// characters and the marks that turn the direction of writing, by which
// "exe.gpj" can be shown as "jpg.exe".
func safeFilename(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || isInvisible(r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	if name == "." || name == ".." {
		return ""
	}
	if len(name) <= maxFilename {
		return name
	}
	// The extension tells what it is, so the middle goes.
	ext := ""
	if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= 20 {
		ext = name[i:]
	}
	return head(name, maxFilename-len(ext)) + ext
}
