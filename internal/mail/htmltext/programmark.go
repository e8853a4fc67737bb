package htmltext

import (
	"bytes"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// programMark returns the marker for the class, id or name of an element with
// which email clients wrap a quotation or a signature, or "".
func programMark(name []byte) string {
	for _, known := range []string{"gmail_quote", "gmail_attr", "divRplyFwdMsg", "yahoo_quoted", "moz-cite-prefix", "protonmail_quote", "zmail_extra", "OLK_SRC_BODY_SECTION", "reply-intro", "tutanota_quote", "ms-outlook-mobile-reference-message",
		"mail-editor-reference-message", "messageReplySection", "appendonsend"} {
		if bytes.Contains(name, []byte(known)) {
			return QuoteMark
		}
	}
	for _, known := range []string{"gmail_signature", "moz-signature", "protonmail_signature_block", "messageSignatureSection", "Zm-_Id_-Sgn"} {
		if bytes.Contains(name, []byte(known)) {
			return SignatureMark
		}
	}
	for word := range bytes.FieldsSeq(name) {
		if endsWithSignature(word) {
			return SignatureMark
		}
	}
	return ""
}

// endsWithSignature reports whether the last word of an identifier is
// "signature", as in "composer_signature" and "AppleMailSignature", but not in
// "esignature".
func endsWithSignature(name []byte) bool {
	rest, ok := bytes.CutSuffix(name, []byte("ignature"))
	if !ok || len(rest) == 0 {
		return false
	}
	before, first := rest[:len(rest)-1], rest[len(rest)-1]
	return first == 'S' || first == 's' && (len(before) == 0 || !plaintext.IsAlnum(before[len(before)-1]))
}

// Marker lines in the text of a page where an email client put a quotation or a
// signature. They contain a NUL, which does not occur in other text.
const (
	QuoteMark     = "\x00quote"
	SignatureMark = "\x00signature"
)
