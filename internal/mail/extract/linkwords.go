package extract

import (
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Kinds of words in and before a link, and of parts of its address.
const (
	actionWord wordKind = 1 << iota // asks to do what the message was sent for
	pointWord                       // only points ("here"); the context says what to do
	restWord                        // of a link that is not the purpose of the message
	footerWord                      // of a footer link
	doneWord                        // says that an action is done: "confirmed"
	unlessWord                      // begins a condition that usually does not hold: "if this wasn't you"
)

// linkParts are parts of paths and queries, by kind.
var linkParts = map[wordKind]string{
	actionWord: `verif|confirm|conferma|activat|activar|attivazion|validat|reset|magic|login|signin|sign-in|sign_in|auth/|auth?|auth=|authenti|authori|invit|accept|recover|onetime|one-time|otp|token|approve|optin|opt-in|bestaetig|best%c3%a4tig|aktivier|double-opt
		|register|signup|sign-up|emailverif|emailconfirm|oauth|passwordreset|password-reset|useractiv|sso`,
	footerWord: `unsub|optout|opt-out|opt_out|abmelden|abbestell|desabon|desinscri|email-preferences|email_preferences|preferences|notification-settings|manage-subscription|manage_subscription|subscription-center
		|privacy|privacy-policy|terms|legal|imprint|impressum|datenschutz|cookies|view-in-browser|viewinbrowser|view_online|webversion|faq`,
}

// socialHosts are the usual hosts of footer links.
var socialHosts = []string{
	"twitter.com", "x.com", "facebook.com", "instagram.com", "linkedin.com", "youtube.com", "tiktok.com", "pinterest.com", "threads.net", "mastodon.social", "bsky.app", "reddit.com", "snapchat.com", "vk.com", "ok.ru", "weibo.com", "t.me", "line.me", "xing.com",
	"threads.com", "apps.apple.com", "itunes.apple.com", "play.google.com",
}

// knownLinkWords and knownLinkParts are built on first use and then only read.
var (
	knownLinkWords = sync.OnceValue(func() *wordTable { return tableOf(linkSections).stems() })
	knownLinkParts = sync.OnceValue(func() *wordTable {
		t := &wordTable{}
		for kind, list := range linkParts {
			t.addAll(kind, strings.Split(list, "|"))
		}
		return t.stems()
	})
)

// stems makes all words of a table match as prefixes, and sorts it.
func (t *wordTable) stems() *wordTable {
	for _, list := range t {
		for i := range list {
			list[i].stem = true
		}
	}
	t.sort()
	return t
}

// kindsIn returns the kinds of all words of the table in a lower-case text.
func (t *wordTable) kindsIn(text string) (kinds wordKind) {
	inWord := false
	for i := 0; i < len(text); {
		e := t.match(text[i:], inWord)
		if e != nil {
			kinds |= e.kind
			i += len(e.text)
			inWord = !e.anywhere
			continue
		}
		inWord = isWordByte(text[i])
		i++
	}
	return kinds
}

// isWordByte reports whether c belongs to a letter or digit. All non-ASCII
// bytes count as letters.
func isWordByte(c byte) bool { return plaintext.IsAlnum(c) || c >= 0x80 }
