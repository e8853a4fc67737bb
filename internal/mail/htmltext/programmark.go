package htmltext

import "bytes"

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
		if n := len(word) - len("signature"); n >= 0 && bytes.EqualFold(word[n:], []byte("signature")) {
			return SignatureMark // "Signature", "composer_signature", "AppleMailSignature"
		}
	}
	return ""
}

// Marker lines in the text of a page where an email client put a quotation or a
// signature. They contain a NUL, which does not occur in other text.
const (
	QuoteMark     = "\x00quote"
	SignatureMark = "\x00signature"
)
