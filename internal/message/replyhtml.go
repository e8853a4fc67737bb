package message

import (
	"bytes"
	"strings"

	"github.com/postroom/postroom/internal/cpubudget"
)

// Lines that stand in the text of a page where a mail program put what it
// quotes, or the signature of the writer. They have a NUL, which no text has.
const (
	quoteMark     = "\x00quote"
	signatureMark = "\x00signature"
)

// programMark returns the mark for the class or the id of an element that a
// mail program puts about what it quotes, or about a signature, "" for others.
func programMark(name []byte) string {
	for _, known := range []string{"gmail_quote", "gmail_attr", "divRplyFwdMsg", "yahoo_quoted", "moz-cite-prefix", "protonmail_quote", "zmail_extra", "OLK_SRC_BODY_SECTION", "reply-intro", "tutanota_quote", "ms-outlook-mobile-reference-message"} {
		if bytes.Contains(name, []byte(known)) {
			return quoteMark
		}
	}
	for _, known := range []string{"gmail_signature", "moz-signature", "protonmail_signature_block", "ms-outlook-mobile-signature"} {
		if bytes.Contains(name, []byte(known)) {
			return signatureMark
		}
	}
	return ""
}

// HTMLReplyText is [ReplyText] of an HTML mail. It knows what is quoted also by
// the elements that mail programs put it into, in whatever language they write
// above it.
func HTMLReplyText(html string) string { return htmlReplyText(html, nil) }

func htmlReplyText(html string, budget *cpubudget.Budget) string {
	marked := plainCells(readPage(html, 0, withMarks, budget).text)
	above, below, found := strings.Cut(marked, quoteMark+"\n")
	above = withoutMarks(strings.Replace(above, signatureMark+"\n", "-- \n", 1))
	below = withoutMarks(below)
	if !found || replyText(above, budget) == "" {
		return replyText(above+below, budget)
	}
	return replyText(above+"-----Original Message-----\n"+below, budget)
}

// withoutMarks returns a text without the marks.
func withoutMarks(text string) string {
	return strings.NewReplacer(quoteMark+"\n", "", signatureMark+"\n", "", quoteMark, "", signatureMark, "").Replace(text)
}
