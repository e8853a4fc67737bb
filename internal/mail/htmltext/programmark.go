package htmltext

import "bytes"

// programMark returns the mark for the class or the id of an element that a
// mail program puts about what it quotes, or about a signature, "" for others.
func programMark(name []byte) string {
	for _, known := range []string{"gmail_quote", "gmail_attr", "divRplyFwdMsg", "yahoo_quoted", "moz-cite-prefix", "protonmail_quote", "zmail_extra", "OLK_SRC_BODY_SECTION", "reply-intro", "tutanota_quote", "ms-outlook-mobile-reference-message"} {
		if bytes.Contains(name, []byte(known)) {
			return QuoteMark
		}
	}
	for _, known := range []string{"gmail_signature", "moz-signature", "protonmail_signature_block", "ms-outlook-mobile-signature"} {
		if bytes.Contains(name, []byte(known)) {
			return SignatureMark
		}
	}
	return ""
}

// Lines that stand in the text of a page where an email client put what it
// quotes, or the signature of the writer. They have a NUL, which no text has.
const (
	QuoteMark     = "\x00quote"
	SignatureMark = "\x00signature"
)
