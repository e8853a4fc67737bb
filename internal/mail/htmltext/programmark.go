package htmltext

import "bytes"

// programMark returns the marker for the class or id of an element with which
// email clients wrap a quotation or a signature, or "".
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

// Marker lines in the text of a page where an email client put a quotation or a
// signature. They contain a NUL, which does not occur in other text.
const (
	QuoteMark     = "\x00quote"
	SignatureMark = "\x00signature"
)
