package compose

import (
	"strings"
	"testing"
)

func TestRewriteLinks(t *testing.T) {
	t.Parallel()
	link := func(target string) string {
		if !strings.HasPrefix(target, "http") {
			return ""
		}
		return "https://mail.example/t?a=1&b=" + target
	}
	tests := []struct{ name, src, want string }{
		{
			"a link", `<p>See <A class=x HREF='http://a.example/?x=1&amp;y=2'>here</A></p>`,
			`<p>See <a class="x" href="https://mail.example/t?a=1&amp;b=http://a.example/?x=1&amp;y=2">here</A></p>`,
		},
		{
			"an area and a closed one", `<area href="http://a.example"><a href=http://b.example />`,
			`<area href="https://mail.example/t?a=1&amp;b=http://a.example"><a href="https://mail.example/t?a=1&amp;b=http://b.example"/>`,
		},
		{"links that are not to web pages", `<a href="mailto:a@b.example">x</a><a href='#top'>y</a><a name=z>z</a>`, ""},
		{"URLs that are not links", `<link href="http://a.example"><img src="http://a.example"><base href="http://a.example"><form action="http://a.example">`, ""},
		{"text that looks like one", `<!-- <a href="http://a.example"> --><style><a href="http://a.example"></style><title><a href="http://a.example"></title>`, ""},
		{"two targets", `<a href="#x" href="http://a.example">x</a>`, ""},
		{"broken", `<p>1 < 2 <a href="http://a.example`, ""},
		{"two targets, the first of the web", `<a href="http://a.example" href="javascript:x">x</a>`, `<a href="https://mail.example/t?a=1&amp;b=http://a.example">x</a>`},
	}
	for _, tt := range tests {
		if tt.want == "" {
			tt.want = tt.src
		}
		if got := RewriteLinks(tt.src, link, ""); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestPixelIsAtTheEnd(t *testing.T) {
	t.Parallel()
	const pixel = `<img src="https://mail.example/o?a&amp;b" width="1" height="1" alt="" style="border:0">`
	none := func(string) string { return "" }
	for src, want := range map[string]string{
		"<html><body>Hi</BODY></html>\n": "<html><body>Hi" + pixel + "</BODY></html>\n",
		"Hi":                             "Hi" + pixel,
		"<p>a</body>b</body>":            "<p>a</body>b" + pixel + "</body>",
	} {
		if got := RewriteLinks(src, none, "https://mail.example/o?a&b"); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

func TestRewritingIsBounded(t *testing.T) {
	t.Parallel()
	src := strings.Repeat(`<a href="http://a.example">x</a>`, 5000)
	n := 0
	got := RewriteLinks(src, func(string) string { n++; return "https://mail.example/" + strings.Repeat("x", 100) }, "")
	if n != 1000 || len(got) > len(src)+1000*200 {
		t.Errorf("%d links were changed", n)
	}
}
