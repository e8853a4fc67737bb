package safety

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// confusables maps letters and digits to the Latin small letter that they are drawn like. It is a
// choice of those that are seen in names of domains, mostly Latin, Greek, Cyrillic and Armenian,
// in the manner of Unicode's confusables.txt (UTS #39), which has many more.
var confusables = func() map[rune]rune {
	m := map[rune]rune{}
	for entry := range strings.FieldsSeq(`aаɑαａ bЬƅ cсϲⅽｃ dԁⅾɗ eеҽєｅё gɡցｇ hһհ iіıɩιїｉ jјϳ kκкⲕ lӏ1ⅼ|Ɩǀ nոռ oоο0օσⲟ๐٥ｏ pрρ⍴
		qԛգ rгᴦ sѕꜱ uυսʋ vνѵⅴ wԝѡա xхⅹ× yуүγ zᴢ fſք tτ`) {
		to, size := utf8.DecodeRuneInString(entry)
		for _, r := range entry[size:] {
			m[r] = to
		}
	}
	return m
}()

// Skeleton returns a domain as it looks: letters that are drawn alike are the same (UTS #39),
// and so are accented letters, "rn" and "m", and "vv" and "w".
func Skeleton(domain string) string {
	if plainName(domain) {
		return asDrawn.Replace(drawnASCII.Replace(domain))
	}
	if unicode, err := idna.ToUnicode(domain); err == nil && len(domain) < 256 {
		domain = unicode
	}
	var b strings.Builder
	for _, r := range strings.ToLower(domain) {
		if to, known := confusables[r]; known {
			r = to
		}
		b.WriteRune(r)
	}
	parts := strings.Split(b.String(), ".")
	for i, p := range parts {
		folded := strings.ReplaceAll(plaintext.FoldForSearch(strings.ReplaceAll(p, "-", "\u02d7")), " ", "-")
		if utf8.RuneCountInString(folded) >= utf8.RuneCountInString(p)-1 {
			parts[i] = folded
		}
	}
	return asDrawn.Replace(strings.Join(parts, "."))
}

var (
	asDrawn    = strings.NewReplacer("rn", "m", "vv", "w")
	drawnASCII = strings.NewReplacer("1", "l", "0", "o")
)

// plainName reports whether a domain has only small ASCII letters, digits and single hyphens
// between them. Almost all have, and their skeleton is simple.
func plainName(domain string) bool {
	for i := range len(domain) {
		c := domain[i]
		alone := c != '-' && c != '.' || i > 0 && i < len(domain)-1 && domain[i-1] != '-' && domain[i-1] != '.'
		if !alone || c >= utf8.RuneSelf || !plaintext.IsDigit(c) && !('a' <= c && c <= 'z') && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// publicMail are domains at which anyone can have an address. Being one letter away from one
// of them means nothing if the other is one too.
var publicMail = plaintext.WordSet("gmail.com|ymail.com|gmx.com|gmx.net|gmx.de|hotmail.com|outlook.com|yahoo.com|icloud.com|aol.com|proton.me|mail.com|email.com|web.de")

// shortName is the shortest name that is compared for being one letter away. Most ordinary words
// that differ in a letter, as apple and apply, are shorter.
const shortName = 6

// resembles reports whether a domain, with its skeleton, looks like another one: the skeletons
// are the same, or it is one letter away.
func resembles(domain, skeleton, known string) bool {
	if known == "" || domain == "" {
		return false
	}
	if skeleton == Skeleton(known) {
		return true
	}
	if !oneAway(domain, known) || publicMail[domain] && publicMail[known] {
		return false
	}
	suffixA, _ := publicsuffix.PublicSuffix(domain)
	suffixB, _ := publicsuffix.PublicSuffix(known)
	nameA, nameB := strings.TrimSuffix(domain, "."+suffixA), strings.TrimSuffix(known, "."+suffixB)
	return suffixA == suffixB && min(len(nameA), len(nameB)) >= shortName && oneAway(nameA, nameB)
}

// LookAlike returns the first of the known domains that a new one resembles, or that its full
// name contains, as "bank.example.evil.example" does. It returns an empty string if there is
// none, or if the domain is known.
func LookAlike(domain, full string, known []string) string {
	like, skeleton := "", Skeleton(domain)
	for _, k := range known {
		k = plaintext.Site(k)
		switch {
		case k == domain:
			return ""
		case like == "" && (resembles(domain, skeleton, k) || strings.Contains(k, ".") && strings.Contains("."+full+".", "."+k+".")):
			like = k
		}
	}
	return like
}

// NamedOther returns the domain that the display name of a sender names, if it is another
// site's than the address.
func NamedOther(from mail.Address) string {
	for field := range strings.FieldsSeq(plaintext.Truncate(from.Name, 500)) {
		field = strings.Trim(strings.ToLower(field), `<>()[]"',;`)
		host := plaintext.HostIn(field[strings.LastIndexByte(field, '@')+1:])
		if host != "" && strings.Contains(field, "@") && plaintext.Site(host) != plaintext.Site(domainOf(from.Email)) {
			return host
		}
	}
	return ""
}

// oneAway reports whether two names differ in one letter that is added, left out, replaced, or
// swapped with the next. Two different digits do not count: names are often numbered.
func oneAway(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:] && !plaintext.IsDigit(b[i])
	}
	if i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
		return true
	}
	return a[i+1:] == b[i+1:] && !(plaintext.IsDigit(a[i]) && plaintext.IsDigit(b[i]))
}
