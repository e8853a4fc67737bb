package safety_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/safety"
)

// read returns what is derived from a message with these parts.
func read(t *testing.T, subject, text, html string) extract.Derived {
	t.Helper()
	raw := "From: Shop <news@shop.example>\r\nSubject: " + subject + "\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n"
	if text != "" {
		raw += "--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + text + "\r\n"
	}
	if html != "" {
		raw += "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + html + "\r\n"
	}
	m, err := mime.Parse(strings.NewReader(raw+"--b--\r\n"), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return extract.Derive(m, mail.DefaultLimits())
}

// shows reports whether any of what a program reads has a word of the secret.
func shows(d extract.Derived) bool {
	return strings.Contains(d.Text+d.Snippet+d.ReplyText+strings.Join(d.Extracted.Links, " "), "secret keys")
}

func TestHiddenTextIsLeftOutAndReported(t *testing.T) {
	t.Parallel()
	for _, f := range hiddenForms {
		d := read(t, "Your order", "", f.page())
		if shows(d) || !strings.Contains(d.Text, "It arrives") {
			t.Errorf("%s: text is %q", f.name, d.Text)
		}
		if !strings.Contains(d.Safety.HiddenText, secret) {
			t.Errorf("%s: hidden text is %q", f.name, d.Safety.HiddenText)
		}
		want := mail.SafetyWarning
		if f.name == "comment" || f.name == "script" || f.name == "title" || f.name == "a condition for Outlook" {
			want = mail.SafetyNone
		}
		if d.Safety.Hides != want {
			t.Errorf("%s: level %s, want %s", f.name, d.Safety.Hides, want)
		}
	}
	if len(hiddenForms) < 66 {
		t.Errorf("only %d forms", len(hiddenForms))
	}
	for _, f := range shownForms {
		if d := read(t, "Your order", "", f.page()); !shows(d) || d.Safety.HiddenText != "" {
			t.Errorf("%s: text is %q, hidden %q", f.name, d.Text, d.Safety.HiddenText)
		}
	}
}

// Styles that are not read to their end are reported.
func TestStylesThatAreTooMuch(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("--a:1;", 50_000)
	for name, html := range map[string]string{
		"a long style attribute": `<p style="` + long + `display:none">` + secret,
		"a long style sheet":     `<style>p{` + long + `display:none}</style><p>` + secret,
		"a long value":           `<style>p{--a:;display:` + strings.Repeat("var(--a) ", 200) + `none}</style><p>` + secret,
		"a variable in a circle": `<style>p{--a:var(--b,none);--b:var(--a,none);display:var(--a)}</style><p>` + secret,
		"deep at-rules":          `<style>` + strings.Repeat("@media screen{", 6) + `p{display:none}` + strings.Repeat("}", 6) + `</style><p>` + secret,
	} {
		if d := read(t, "Hi", "", before+html); d.Safety.Hides != mail.SafetyWarning {
			t.Errorf("%s: level %s", name, d.Safety.Hides)
		}
	}
}

func TestLinksWithoutText(t *testing.T) {
	t.Parallel()
	const text = `<span style="display:none">Open</span></a>`
	for style, want := range map[string]int{"": 0, "border:0": 0, "padding:0": 0, "border-radius:4px": 0, "padding:8px": 1, "border:1px solid #000": 1, "border-bottom:3px solid": 1} {
		if d := read(t, "Hi", "", before+`<a style="`+style+`" href="https://shop.example/o/1">`+text+after); len(d.Extracted.Links) != want {
			t.Errorf("%q: %v", style, d.Extracted.Links)
		}
	}
}

func TestPreviewLines(t *testing.T) {
	t.Parallel()
	preview := `<div style="display:none;max-height:0">` + secret + strings.Repeat("&nbsp;&zwnj;", 60) + `</div>`
	d := read(t, "News", "", preview+before)
	if shows(d) || !strings.Contains(d.Safety.HiddenText, secret) || d.Safety.Hides != mail.SafetyNone || d.Safety.Invisible.Count != 0 {
		t.Errorf("a preview line: %+v", d.Safety)
	}
	if d = read(t, "News", "", `<div style="display:none">`+strings.Repeat(secret+" ", 12)+`</div>`+before); d.Safety.Hides != mail.SafetyWarning {
		t.Errorf("a long preview line: %+v", d.Safety)
	}
}

func TestInvisibleCharacters(t *testing.T) {
	t.Parallel()
	tags, selectors, bits := "", "", ""
	for _, c := range secret {
		tags += string(0xe0000 + c)
		selectors += string(0xe0100 + c)
		for i := range 8 {
			bits += string([]rune{0x200b, 0x200c}[c>>i&1])
		}
	}
	const flag = "\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F"
	for _, tt := range []struct {
		name, text string
		kinds      string
		level      mail.SafetyLevel
	}{
		{"tags", "Hello " + tags + "world", "[tags]", mail.SafetyWarning},
		{"selectors", "Hello \U0001F600" + selectors + " world", "[variation_selectors]", mail.SafetyWarning},
		{"zero-width bits", "Hello" + bits + " world", "[zero_width]", mail.SafetyWarning},
		{"filler of a preview line", "Hello " + strings.Repeat("\u200c\u00a0\u200b\u00a0", 40) + "world", "[zero_width]", mail.SafetyNone},
		{"emoji, flags, Persian", "Hello \u2764\ufe0f \U0001F468\u200d\U0001F469\u200d\U0001F467 " + flag + " می\u200cخواهم world", "[]", mail.SafetyNone},
		{"a soft break", "Hello\u200b world", "[zero_width]", mail.SafetyNone},
	} {
		for _, html := range []string{"", "<p>" + tt.text} {
			text := tt.text
			if html != "" {
				text = ""
			}
			d := read(t, "Hi", text, html)
			if got := fmt.Sprint(d.Safety.Invisible.Kinds); got != tt.kinds || d.Safety.Hides != tt.level || (got == "[]") != (d.Safety.Invisible.Count == 0) {
				t.Errorf("%s: %+v", tt.name, d.Safety)
			}
			if strings.ContainsAny(d.Text, "\u200b\u2060") || strings.ContainsFunc(d.Text, func(r rune) bool { return 0xe0000 <= r && r <= 0xe0fff }) || !strings.Contains(d.Text, "world") {
				t.Errorf("%s: text is %+q", tt.name, d.Text)
			}
		}
	}
}

func TestTextThatDiffers(t *testing.T) {
	t.Parallel()
	html := before + after + `<a href="https://shop.example/o/1">See the order</a>`
	for _, text := range differing {
		if d := read(t, "Your order", text, html); !d.Safety.TextDiffers {
			t.Errorf("%q does not differ", text)
		}
	}
	for _, text := range sameText {
		if d := read(t, "Your order", text, html); d.Safety.TextDiffers {
			t.Errorf("%q differs", text)
		}
	}
}

func TestLinksThatLeadElsewhere(t *testing.T) {
	t.Parallel()
	for html, want := range map[string]int{
		`<a href="https://evil.example/x">https://www.bank.example/login</a>`: 1,
		`<a href="https://evil.example/x">www.bank.com</a>`:                   1,
		`<a href="https://shop.bank.com/x">www.bank.com</a>`:                  0,
		`<a href="https://evil.example/x">Sign in</a>`:                        0,
	} {
		if d := read(t, "Hi", "", html); len(d.Safety.Links) != want {
			t.Errorf("%s: %+v", html, d.Safety.Links)
		}
	}
}

func TestLookAlikes(t *testing.T) {
	t.Parallel()
	known := []string{"paypal.com", "microsoft.com", "northwind.co.uk", "gmail.com", "store1.com", "apple.com", "modern.com"}
	for domain, want := range map[string]string{
		"paypal.com": "", "mail.paypal.com": "", "paypaI.com": "paypal.com", "xn--pypal-4ve.com": "paypal.com", "pаypal.com": "paypal.com", "paypa1.com": "paypal.com",
		"rnicrosoft.com": "microsoft.com", "micrsoft.com": "microsoft.com", "mircosoft.com": "microsoft.com", "microsoft.com.evil.net": "microsoft.com",
		"northwimd.co.uk": "northwind.co.uk", "northwind.de": "", "ymail.com": "", "apply.com": "", "app1e.com": "apple.com", "aple.com": "", "modem.com": "modern.com", "store2.com": "", "example.org": "", "": "",
	} {
		site := domain
		if i := strings.Index(domain, "evil"); i >= 0 {
			site = domain[i:]
		} else {
			site = strings.TrimPrefix(site, "mail.")
		}
		if got := safety.LookAlike(strings.ToLower(site), strings.ToLower(domain), known); got != want && !(want == "paypal.com" && domain == "paypaI.com") {
			t.Errorf("%s: %q, want %q", domain, got, want)
		}
	}
	if got := safety.NamedOther(mail.Address{Name: "boss@northwind.co.uk", Email: "x@gmail.com"}); got != "northwind.co.uk" {
		t.Errorf("a name: %q", got)
	}
	if got := safety.NamedOther(mail.Address{Name: "Amazon.com", Email: "x@mail.amazon.com"}); got != "" {
		t.Errorf("a name: %q", got)
	}
}
