// Package safety reads the facts of a received message that a reader should know before
// believing it: text that a person does not see, and senders and links that are not what they
// say. docs/safety.md states the rules.
package safety

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

const (
	// maxHiddenText is how much hidden text is kept, in characters.
	maxHiddenText = 500
	// maxPreview is how long a preview line may be, in characters without spaces.
	maxPreview = 300
	// fewWords is how many hidden words are ordinary.
	fewWords = 3
	// fewOwnWords is how many words of the plain text may be missing in the HTML.
	// fewMissing is how many of one sentence may be missing.
	fewOwnWords, fewMissing = 4, 4
	// maxRead is how much of a text is compared, in bytes.
	maxRead = 256 << 10
	// maxLinks is how many misleading links are kept.
	maxLinks = 10
)

// Read returns the facts in the content of a message. page is its HTML, or nil. The facts
// about its sender are not set yet, and neither is the level.
func Read(m *mime.Message, page *htmltext.Page) mail.Safety {
	s := mail.Safety{Hides: mail.SafetyNone, ReplyToDiffers: replyToDiffers(m.Addresses)}
	invisible := m.Invisible
	if page != nil {
		shown := words{}
		if m.Text != "" || len(page.Hidden) > 0 {
			shown = wordsOf(string(page.Text[:min(len(page.Text), maxRead)]), m.Subject)
		}
		s.HiddenText, s.Hides = hidden(page, shown)
		s.TextDiffers = m.Text != "" && differs(m, page, shown)
		s.Links = links(page)
		invisible = invisible.Plus(page.Invisible)
	}
	if s.Invisible.Count = invisible.Count(); s.Invisible.Count > 0 {
		s.Invisible.Kinds = invisible.Kinds()
	}
	if m.Invisible.Hides() || page != nil && page.Invisible.Hides() {
		s.Hides = mail.SafetyWarning
	}
	return s
}

// words is a set of words, folded.
type words map[string]bool

func wordsOf(texts ...string) words {
	w := words{}
	for _, text := range texts {
		for word := range strings.FieldsSeq(plaintext.FoldForSearch(text)) {
			w[word] = true
		}
	}
	return w
}

// hidden returns the beginning of the hidden text of a page, what counts most first, and its
// level.
func hidden(page *htmltext.Page, shown words) (string, mail.SafetyLevel) {
	level := mail.SafetyNone
	if page.TooComplex {
		level = mail.SafetyWarning
	}
	preview, count := 0, 0
	var first, rest strings.Builder
	for _, h := range page.Hidden {
		text := plaintext.FoldSpace(plaintext.Visible(strings.ToValidUTF8(string(h.Text), "")))
		to := &rest
		ordinary := h.Why == "comment" || h.Why == "<title>" || h.Why == "<script>"
		if h.First && !ordinary {
			preview += letters(text)
			ordinary = preview <= maxPreview
		}
		if n := unshown(text, shown); !ordinary && n > 0 {
			if count, to = count+n, &first; count > fewWords {
				level = mail.SafetyWarning
			} else if level == mail.SafetyNone {
				level = mail.SafetyNotice
			}
		}
		if to.Len() < 8*maxHiddenText {
			if to.Len() > 0 {
				to.WriteByte(' ')
			}
			to.WriteString(text)
		}
	}
	out := []rune(strings.TrimSpace(first.String() + " " + rest.String()))
	return string(out[:min(len(out), maxHiddenText)]), level
}

func letters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// unshown returns how many different words of a hidden text are not shown elsewhere: none if
// it only repeats what is shown, as the copy for small screens does.
func unshown(text string, shown words) int {
	n, all := 0, wordsOf(text)
	for w := range all {
		if !shown[w] {
			n++
		}
	}
	if n > fewWords && 10*n <= len(all) {
		return fewWords // a copy with a few words of its own
	}
	return n
}

// differs reports whether the plain text says what the HTML does not show: a sentence, a long
// number, or a link to a site that neither the HTML nor the sender has.
func differs(m *mime.Message, page *htmltext.Page, shown words) bool {
	sites := map[string]bool{}
	if m.From != nil {
		sites[plaintext.Site(domainOf(m.From.Email))] = true
	}
	var digits strings.Builder
	digits.WriteString(plaintext.Digits(string(page.Text)))
	for _, l := range page.Links {
		host, _, _ := plaintext.SplitURL(l.Href)
		sites[plaintext.Site(host)] = true
		digits.WriteString(plaintext.Digits(l.Href))
		for w := range wordsOf(page.LinkText(&l)) {
			shown[w] = true
		}
	}
	all, own := digits.String(), 0
	for sentence := range strings.FieldsFuncSeq(plaintext.Truncate(m.Text, maxRead), endsSentence) {
		var plain strings.Builder
		for field := range strings.FieldsSeq(sentence) {
			at := strings.Index(strings.ToLower(field), "http")
			if at >= 0 && plaintext.SchemeLen(field[at:]) > 0 {
				host, _, _ := plaintext.SplitURL(field[at:])
				if host = strings.TrimRight(host, ">)].,\"'"); host != "" && !sites[plaintext.Site(host)] && !bytes.Contains(page.Text, []byte(host)) {
					return true
				}
				continue
			}
			if strings.Contains(field, "@") {
				continue
			}
			plain.WriteString(field)
			plain.WriteByte(' ')
			if d := plaintext.Digits(field); len(d) >= 4 && !strings.Contains(all, d) {
				return true
			}
		}
		said, missing := 0, 0
		for w := range strings.FieldsSeq(plaintext.FoldForSearch(plain.String())) {
			if said++; !shown[w] {
				missing++
			}
		}
		if 2*missing > said || missing > fewMissing {
			own += missing
		}
	}
	return own > fewOwnWords
}

func endsSentence(r rune) bool {
	return r == '\n' || r == '!' || r == '?' || r == '。' || r == ';'
}

// links returns the links whose text names another site than they lead to.
func links(page *htmltext.Page) (found []mail.MisleadingLink) {
	for i := range page.Links {
		l := &page.Links[i]
		if !plaintext.IsWebLink(l.Href) {
			continue
		}
		says := plaintext.HostIn(page.LinkText(l))
		if says == "" {
			continue
		}
		host, _, _ := plaintext.SplitURL(l.Href)
		if host = plaintext.ASCIIHost(host); host != "" && plaintext.Site(says) != plaintext.Site(host) && len(found) < maxLinks {
			found = append(found, mail.MisleadingLink{Says: says, URL: plaintext.Truncate(l.Href, 500)})
		}
	}
	return found
}

// replyToDiffers reports whether replies go to another site than the sender's.
func replyToDiffers(a mail.Addresses) bool {
	if a.From == nil {
		return false
	}
	for _, to := range a.ReplyTo {
		if plaintext.Site(domainOf(to.Email)) != plaintext.Site(domainOf(a.From.Email)) {
			return true
		}
	}
	return false
}

func domainOf(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}
