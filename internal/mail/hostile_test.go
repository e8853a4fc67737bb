package mail_test

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/cputime"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mailtest"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
)

// TestHostileMessages reads messages built to cost processor time or memory. A
// quadratic algorithm would take minutes. Memory counts all allocations, even
// if freed.
func TestHostileMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	mixed := "Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
	html := "Subject: x\r\nContent-Type: text/html\r\n\r\n"
	text := "Subject: Your code\r\n\r\n"
	tests := []struct {
		name string
		raw  string
		max  time.Duration
	}{
		{"M1: 10,000 nested multiparts", mailtest.Nested(10_000, "\r\n", "text"), 500 * time.Millisecond},
		{"M1: 10,000 nested messages", strings.Repeat("Content-Type: message/rfc822\r\n\r\n", 10_000) + "text", 500 * time.Millisecond},
		{"M1: 10,000 nested messages in multiparts", strings.Repeat("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n", 10_000) + "text", 500 * time.Millisecond},
		{"M2: 10,000 parts", mixed + strings.Repeat("--b\r\n\r\nx\r\n", 10_000) + "--b--\r\n", time.Second},
		{"M2: 100,000 parts", mixed + strings.Repeat("--b\r\n\r\nx\r\n", 100_000) + "--b--\r\n", time.Second},
		{"M2: 100,000 attachments", mixed + strings.Repeat("--b\r\nContent-Type: a/b\r\n\r\nx\r\n", 100_000) + "--b--\r\n", time.Second},
		{"M3: 100,000 fields", strings.Repeat("X: y\r\n", 100_000) + "\r\nx", 500 * time.Millisecond},
		{"M3: 100,000 fields of the text's charset", strings.Repeat("Subject: \xe1\r\n", 80_000) + "Content-Type: text/plain; charset=koi8-r\r\n\r\nx", 500 * time.Millisecond},
		{"M3: a field of 210 KB", "X-Long: " + strings.Repeat("x", 210<<10) + "\r\nSubject: x\r\n\r\nx", 500 * time.Millisecond},
		{"M3: one folded field of 1 MB", "Subject: " + strings.Repeat("x\r\n ", 200_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M3: 90,000 addresses", "To: " + strings.Repeat("a@b.c, ", 90_000) + "d@e.f\r\n\r\nx", 500 * time.Millisecond},
		{"M3: 60,000 encoded words", "Subject: " + strings.Repeat("=?a?q?b?= ", 60_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M3: encoded words that do not end", "Subject: " + strings.Repeat("=?a?q?", 150_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M3: encoded words of no encoding", "Subject: " + strings.Repeat("=?a?x?", 150_000) + "?=\r\n\r\nx", 500 * time.Millisecond},
		{"M3: quotes, comments and brackets without end", "To: " + strings.Repeat(`"(<`, 300_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M3: brackets with quotes in them", "To: " + strings.Repeat(`<"\"`, 200_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M3: comments in one address", "To: " + strings.Repeat("(a)b", 200_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M3: colons after an address", "To: " + strings.Repeat("a", 400_000) + "@" + strings.Repeat(":", 400_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M3: identifiers without end", "References: " + strings.Repeat("<", 900_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M3: 100,000 parameters", "Content-Type: a/b" + strings.Repeat("; name*9=x", 90_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M3: parentheses in a media type", "Content-Type: " + strings.Repeat("(a)", 300_000) + "\r\n\r\nx", 500 * time.Millisecond},
		{"M4: 20 MB of base64 garbage", mixed + "--b\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\n" + strings.Repeat("=!a*", 5<<20), 2 * time.Second},
		{"M4: 20 MB of quoted-printable garbage", mixed + "--b\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" + strings.Repeat("=x= ", 5<<20), 2 * time.Second},
		{"M4: 20 MB of base64 garbage as text", "Subject: x\r\nContent-Transfer-Encoding: base64\r\n\r\n" + strings.Repeat("=!a*", 5<<20), 2 * time.Second},
		{"M4: 20 MB of uuencode garbage", "Subject: x\r\nContent-Transfer-Encoding: uuencode\r\n\r\nbegin 644 x\n" + strings.Repeat("M!!a*\n", 3<<20), 2 * time.Second},
		{"M4: 20 MB without an end boundary", mixed + "--b\r\n\r\n" + strings.Repeat("x\r\n", 7<<20), 2 * time.Second},
		{"M4: 20 MB of flowed text", "Subject: x\r\nContent-Type: text/plain; format=flowed\r\n\r\n" + strings.Repeat("> x \r\n", 3<<20), 2 * time.Second},
		{"M4: 20 MB of lines like delimiters", mailtest.Nested(100, "\r\n", strings.Repeat("--b\r\n", 4<<20)), 2 * time.Second},
		{"M4: boundaries of 900 characters, 100 deep", longBoundaries(), 2 * time.Second},
		{"M4: one line of 20 MB", text + strings.Repeat("x", 20<<20), 2 * time.Second},
		{"M8: 1 MB of unclosed elements", html + strings.Repeat("<div>x", 180_000), 500 * time.Millisecond},
		{"M8: 1 MB of unclosed quotations", html + strings.Repeat("<blockquote type=cite>x", 45_000), 500 * time.Millisecond},
		{"M8: 1 MB of end tags without a start", html + strings.Repeat("<div></p></b>", 80_000), 500 * time.Millisecond},
		{"M8: 1 MB of attributes", html + "<a " + strings.Repeat("href=x ", 150_000) + ">x</a>", 500 * time.Millisecond},
		{"M8: 1 MB of links", html + strings.Repeat("<a href=https://a.example/b>c</a>", 32_000), 500 * time.Millisecond},
		{"M8: 1 MB of open brackets", html + strings.Repeat("<", 1<<20), 500 * time.Millisecond},
		{"M8: 1 MB of style", html + "<div style='" + strings.Repeat("a:b;", 1<<18) + "'>x", 500 * time.Millisecond},
		{"M8: 1 MB of style sheets", html + "<style>" + strings.Repeat(".a{display:none}", 1<<16) + "</style><p class=a>x", 500 * time.Millisecond},
		{"M8: 1 MB of blocks in a style sheet", html + "<style>" + strings.Repeat("@media{", 150_000) + "</style>x", 500 * time.Millisecond},
		{"M8: 1 MB of classes, some of them hidden", html + "<style>.a{display:none}</style>" + "<p class='" + strings.Repeat("b ", 1<<19) + "'>x", 500 * time.Millisecond},
		{"M8: 1 MB of marks of mail programs", html + strings.Repeat("<p class=gmail_quote>x", 48_000), 500 * time.Millisecond},
		{"M8: 20 MB of HTML", html + strings.Repeat("<p style=\"color:red\">Read <b>this</b> &amp; <a href=\"https://a.example/b\">that</a></p>\r\n", 256<<10), time.Second},
		{"M8: 1 MB of entities", html + strings.Repeat("&amp;", 200_000), 500 * time.Millisecond},
		{"M8: 1 MB in one comment", html + "<!--" + strings.Repeat("-", 1<<20), 500 * time.Millisecond},
		{"codes: 1 MB of numbers", text + strings.Repeat("code 482913 ", 90_000), time.Second},
		{"codes: 1 MB of numbers in lines", text + strings.Repeat("482913\r\n", 130_000), time.Second},
		{"codes: 1 MB of digits with spaces", text + strings.Repeat("1 ", 1<<19), time.Second},
		{"codes: 1 MB of digits with hyphens", text + strings.Repeat("1-", 1<<19), time.Second},
		{"codes: 1 MB of one word with points", text + strings.Repeat("a1.", 350_000), time.Second},
		{"codes: 1 MB of the word itself", text + strings.Repeat("code ", 200_000) + "482913", time.Second},
		{"codes: 1 MB of Chinese", text + strings.Repeat("验证码", 110_000) + "482913", time.Second},
		{"codes: 1 MB of single capitals", text + strings.Repeat("A 4 ", 1<<18), time.Second},
		{"codes: 1 MB of numbers in lines of shops", text + strings.Repeat("code 482913 promo\r\n", 55_000), time.Second},
		{"codes: 1 MB of numbers in one row", text + "code\r\n" + strings.Repeat("482913\t", 150_000), time.Second},
		{"codes: 1 MB of numbers in rows", text + strings.Repeat("code\t482913\t120448\r\n", 50_000), time.Second},
		{"links: 1 MB of addresses", text + strings.Repeat("https://a.example/b ", 50_000), time.Second},
		{"links: 1 MB of schemes", text + strings.Repeat("http://", 150_000), time.Second},
		{"links: brackets at the end", text + "https://a.example/" + strings.Repeat(")", 1<<20), time.Second},
		{"reply: 1 MB of colons", text + strings.Repeat("a 1:\r\n", 170_000), time.Second},
		{"reply: 1 MB of labels in one line", text + strings.Repeat("From: x ", 130_000), time.Second},
		{"reply: 1 MB of telephones", text + strings.Repeat("iphone\r\n", 130_000), time.Second},
		{"reply: 1 MB of labels", text + strings.Repeat("From: x\r\n\r\n", 95_000), time.Second},
		{"reply: 1 MB of quoted lines", text + strings.Repeat("> x\r\n", 200_000), time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if cputime.RaceDetector && len(tt.raw) > maxWithRace {
				t.Skip("too large for the race detector")
			}
			spent, allocated := measure(t, tt.raw)
			t.Logf("%d KB took %v and %d KB of memory", len(tt.raw)>>10, spent, allocated>>10)
			if most := tt.max * slowdown(); spent > most {
				t.Errorf("took %v, more than %v", spent, most)
			}
			most := uint64(150 << 20)
			if strings.HasPrefix(tt.name, "M1") {
				most = 64 << 20
			}
			if allocated > most {
				t.Errorf("allocated %d KB, more than %d", allocated>>10, most>>10)
			}
		})
	}
}

// maxWithRace is the maximum message size with the race detector on.
const maxWithRace = 2 << 20

// slowdown multiplies the time limits. With the race detector on, only
// quadratic time is detected.
func slowdown() time.Duration {
	if cputime.RaceDetector {
		return 10
	}
	return 1
}

// allocated returns the bytes that the process has allocated since its start.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// measure reads a message, extracts from it and renders it. It returns the
// processor time and memory used.
func measure(t *testing.T, raw string) (time.Duration, uint64) {
	t.Helper()
	runtime.GC() // so that earlier garbage does not count
	before, start := allocated(), cputime.Used()
	m, err := mime.Parse(strings.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	extract.CodesAndLinks(m.Subject, m.Text, m.HTML)
	reply.Text(m.Text, nil)
	plaintext.Snippet(m.Text)
	plaintext.FoldForSearch(m.Text)
	htmltext.Text(m.HTML)
	reply.TextOfPage(htmltext.Read(m.HTML, 0, htmltext.OnlyVisible, nil), nil)
	reply.NormalizeSubject(m.Subject)
	return cputime.Used() - start, allocated() - before
}

// longBoundaries is a message whose text lines nearly match each of 100 nested
// boundaries.
func longBoundaries() string {
	var b strings.Builder
	name := strings.Repeat("x", 900)
	for i := range 100 {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=%s%d\r\n\r\n--%s%d\r\n", name, i, name, i)
	}
	b.WriteString("\r\n")
	for range 20_000 {
		b.WriteString("--" + name + "\r\n")
	}
	return b.String()
}

// TestParseTakesLittleMemory reads a large attachment, which is not kept in
// memory.
func TestParseTakesLittleMemory(t *testing.T) {
	raw := []byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
		strings.Repeat(strings.Repeat("QUJD", 19)+"\r\n", 250_000) + "--b--\r\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if want := int64(19 * 3 * 250_000); len(m.Attachments) != 1 || m.Attachments[0].Size != want {
		t.Errorf("got %+v, want one of %d bytes", m.Attachments, want)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("a message of %d bytes took %d bytes of memory", len(raw), used)
	}
}
