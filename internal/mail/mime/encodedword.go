package mime

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// decodeWords decodes the encoded words (RFC 2047) of an unfolded header value
// to valid UTF-8. It joins characters that programs split between adjacent
// words of one charset. Raw 8-bit text is read as UTF-8 or windows-1252.
func decodeWords(s string) string {
	if !strings.Contains(s, "=?") {
		if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
			return s
		}
		return guessUTF8([]byte(s))
	}
	var d wordDecoder
	for s != "" {
		at := strings.Index(s, "=?")
		if at < 0 {
			break
		}
		w, ok := cutWord(s[at:])
		if !ok {
			if w.unterminated {
				break // no later word is terminated either
			}
			d.plain(s[:at+2])
			s = s[at+2:]
			continue
		}
		if at > 0 {
			d.between(s[:at])
		}
		d.word(w)
		s = w.rest
	}
	d.plain(s)
	return d.out.String()
}

// An encodedWord is "=?charset?encoding?text?=".
type encodedWord struct {
	charset      string
	text         []byte // transfer encoding undone
	rest         string // what follows the word
	unterminated bool
}

// maxCharset is longer than any charset name.
const maxCharset = 64

// cutWord splits the encoded word at the start of s from the rest.
func cutWord(s string) (w encodedWord, ok bool) {
	body := s[2:]
	q := strings.IndexByte(plaintext.Truncate(body, maxCharset), '?')
	if q <= 0 || len(body) < q+3 || body[q+2] != '?' {
		return w, false
	}
	charset, _, _ := strings.Cut(body[:q], "*") // RFC 2231 adds a language
	enc, text := body[q+1]|0x20, body[q+3:]
	if enc != 'q' && enc != 'b' {
		return w, false
	}
	text, rest, ok := strings.Cut(text, "?=")
	if !ok {
		return encodedWord{unterminated: true}, false
	}
	w = encodedWord{charset: strings.ToLower(charset), rest: rest}
	if enc == 'q' {
		w.text = decodeQ(text)
	} else {
		w.text = decodeB(text)
	}
	return w, true
}

// maxEncodedWord is longer than any valid or common encoded word.
const maxEncodedWord = 1000

// encodedWordLen returns the length of the encoded word at the start of s, or
// 0.
func encodedWordLen(s string) int {
	s = s[:min(len(s), maxEncodedWord)]
	if !strings.HasPrefix(s, "=?") {
		return 0
	}
	w, ok := cutWord(s)
	if !ok {
		return 0
	}
	return len(s) - len(w.rest)
}

// decodeQ decodes the "Q" encoding of RFC 2047 section 4.2.
func decodeQ(s string) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '_':
			out = append(out, ' ')
		case c == '=' && i+2 < len(s) && plaintext.IsHex(s[i+1]) && plaintext.IsHex(s[i+2]):
			out = append(out, plaintext.Unhex(s[i+1])<<4|plaintext.Unhex(s[i+2]))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return out
}

// decodeB decodes base64, skipping invalid characters if it is malformed.
func decodeB(s string) []byte {
	if out, err := base64.StdEncoding.DecodeString(s); err == nil {
		return out
	}
	var d base64Decoder
	return d.finish(d.decode(nil, []byte(s)))
}

// wordDecoder joins decoded words. It buffers their bytes until another charset
// or plain text follows.
type wordDecoder struct {
	out     strings.Builder
	charset string
	held    []byte
	hasHeld bool
}

// between adds the text between two words. White space alone is dropped (RFC
// 2047 section 6.2).
func (d *wordDecoder) between(s string) {
	if d.hasHeld && strings.Trim(s, " \t") == "" {
		return
	}
	d.plain(s)
}

func (d *wordDecoder) plain(s string) {
	d.flush()
	if s == "" {
		return
	}
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		d.out.WriteString(s)
	} else {
		d.out.WriteString(guessUTF8([]byte(s)))
	}
}

func (d *wordDecoder) word(w encodedWord) {
	if d.hasHeld && d.charset != w.charset {
		d.flush()
	}
	d.charset, d.hasHeld = w.charset, true
	d.held = append(d.held, w.text...)
}

func (d *wordDecoder) flush() {
	if d.hasHeld {
		d.out.WriteString(ToUTF8(d.held, d.charset))
		d.held, d.hasHeld = d.held[:0], false
	}
}
