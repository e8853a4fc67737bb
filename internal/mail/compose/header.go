package compose

import (
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// foldAt is the recommended maximum length of a header line (RFC 5322 section
// 2.1.1).
const foldAt = 78

// headerWriter writes header fields and folds them between words.
type headerWriter struct {
	w   wireWriter
	col int
}

func (h *headerWriter) start(name string) {
	h.w.put(name, ":")
	h.col = len(name) + 1
}

// word writes a space and a word, folding the line before it if needed.
func (h *headerWriter) word(s string, first bool) {
	if h.col+1+len(s) > foldAt && !first {
		h.w.put("\r\n")
		h.col = 0
	}
	h.w.put(" ", s)
	h.col += 1 + len(s)
}

func (h *headerWriter) end() { h.w.put("\r\n") }

// words writes a field that consists of words.
func (h *headerWriter) words(name string, words []string) {
	h.start(name)
	for i, w := range words {
		h.word(w, i == 0)
	}
	h.end()
}

// field writes a field with a value and parameters.
func (h *headerWriter) field(name, value string, params ...string) {
	words := append([]string{value}, params...)
	for i := range words[:len(words)-1] {
		words[i] += ";"
	}
	h.words(name, words)
}

// addresses writes a field of mailboxes, or nothing if the list is empty.
func (h *headerWriter) addresses(name string, list ...mail.Address) {
	if len(list) == 0 {
		return
	}
	var words []string
	for i, a := range list {
		words = append(words, phrase(a.Name)...)
		email := a.Email
		if a.Name != "" {
			email = "<" + headerEmail(email) + ">"
		} else {
			email = headerEmail(email)
		}
		if i < len(list)-1 {
			email += ","
		}
		words = append(words, email)
	}
	h.words(name, words)
}

// writeHeader writes the message header except the fields of the body.
func (o *Outgoing) writeHeader(h *headerWriter) {
	h.field("Date", o.Date.Format(time.RFC1123Z))
	h.addresses("From", o.From)
	if o.Sender != nil {
		h.addresses("Sender", *o.Sender)
	}
	h.addresses("Reply-To", o.ReplyTo...)
	h.addresses("To", o.To...)
	h.addresses("Cc", o.Cc...)
	h.words("Subject", unstructured(o.Subject))
	h.field("Message-ID", o.HeaderID)
	if len(o.InReplyTo) > 0 {
		h.words("In-Reply-To", o.InReplyTo)
	}
	if len(o.References) > 0 {
		h.words("References", o.References)
	}
	for _, f := range o.Headers {
		h.words(f[0], unstructured(f[1]))
	}
	h.field("MIME-Version", "1.0")
}

// unstructured returns s as the words of a field: unchanged if that preserves
// it, else as encoded words (RFC 2047).
func unstructured(s string) []string {
	s = strings.ReplaceAll(s, "\t", " ")
	plain := plaintext.IsASCII(s) && !strings.Contains(s, "=?")
	words := strings.Split(s, " ")
	for _, w := range words {
		if w == "" && len(words) > 1 || len(w) > maxLine-foldAt {
			plain = false
		}
	}
	if plain {
		return words
	}
	return encodeWords(s)
}

// phrase returns a display name as atoms, a quoted string or encoded words.
func phrase(name string) []string {
	name = plaintext.FoldSpace(name)
	if name == "" {
		return nil
	}
	words := strings.Split(name, " ")
	atoms := true
	for _, w := range words {
		if len(w) > foldAt-10 {
			return encodeWords(name)
		}
		atoms = atoms && isAtom(w)
	}
	switch {
	case !plaintext.IsASCII(name) || strings.Contains(name, "=?"):
		return encodeWords(name)
	case atoms:
		return words
	}
	return strings.Split(`"`+quoteEscaper.Replace(name)+`"`, " ")
}

func isAtom(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || !mail.IsAtomText(rune(s[i])) {
			return false
		}
	}
	return s != ""
}

// headerEmail returns an address with its domain in ASCII form, which every
// mail system supports.
func headerEmail(email string) string {
	at := strings.LastIndexByte(email, '@')
	if plaintext.IsASCII(email[at+1:]) {
		return email
	}
	ascii, err := idna.Lookup.ToASCII(email[at+1:])
	if err != nil {
		return email // check has validated it
	}
	return email[:at+1] + ascii
}
