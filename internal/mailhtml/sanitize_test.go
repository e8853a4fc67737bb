package mailhtml_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/cputime"
	"github.com/postroom/postroom/internal/mailhtml"
	"github.com/postroom/postroom/internal/mailhtml/hostilemail"
)

func TestSanitizeKeepsOrdinaryContent(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`<p>Please.</p>`,
		`<p>It's "5 &lt; 6" &amp; more</p>`,
		`<table width="600" bgcolor="#ffffff"><tr><td align="center" style="opacity:0.9;height:20px;overflow:hidden;margin:-2px">x</td></tr></table>`,
		`<a href="https://shop.example/?a=1&amp;b=2">www.other.example</a> <a href="mailto:ann@out.example">Ann</a> <a href="#top">top</a>`,
		`<img src="cid:logo@mail.example" alt="Logo" width="20"><img src="https://a.example/1.png"><img src="data:image/png;base64,AAAA">`,
		"<style>\n.a > b:hover{color:red;opacity:0.5}\n@media (max-width:600px){.w{width:100%!important}\n}\n</style><p class=\"a\">x</p>",
	} {
		if d := cmp.Diff(source, mailhtml.Sanitize(source).HTML); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
}

func TestSanitizeSaysWhatItRemoves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ source, html, what, text string }{
		{`a<noscript>SECRET</noscript>b`, `ab`, `<noscript>`, `SECRET`},
		{`a<!--[if mso]><p>SECRET</p><![endif]-->b`, `ab`, `<!--[if]>`, `[if mso]><p>SECRET</p><![endif]`},
		{`a<svg><text>SECRET</text></svg>b`, `ab`, `<svg>`, `SECRET`},
		{`a<textarea>SECRET</textarea>b`, `ab`, `<textarea>`, `SECRET`},
		{`a<select><option>SECRET</select>b`, `ab`, `<select>`, `SECRET`},
		{`a<input value="SECRET">b`, `ab`, `<input>`, `SECRET`},
		{`a<video src=x>SECRET</video>b`, `ab`, `<video>`, `x SECRET`},
		{`a<object data=x>SECRET</object>b`, `ab`, `<object>`, `x SECRET`},
		{`a<canvas>SECRET</canvas>b`, `ab`, `<canvas>`, `SECRET`},
		{`a<math><mtext>SECRET</mtext></math>b`, `ab`, `<math>`, `SECRET`},
		{`a<iframe srcdoc="SECRET"></iframe>b`, `ab`, `<iframe>`, `SECRET`},
		{`a<xmp>SECRET</xmp>b`, `ab`, `<xmp>`, `SECRET`},
		{`<title>SECRET</title>ab`, `ab`, `<title>`, `SECRET`},
		{`a<form action="/x"><button>c</button></form>b`, `acb`, `<form>`, ``},
		{`a<!-- SECRET -->b`, `ab`, `<!-- -->`, `SECRET`},
		{`<p onclick="SECRET">ab</p>`, `<p>ab</p>`, `attribute onclick`, `SECRET`},
		{`<a href="javascript:SECRET">ab</a>`, `<a>ab</a>`, `address of a link`, `javascript:SECRET`},
		{`<img src="file:SECRET">ab`, `<img>ab`, `address of an image`, `file:SECRET`},
		{`<p style="position:fixed">ab</p>`, `<p>ab</p>`, `style position`, ``},
		{`<style>@import "SECRET";p:before{content:"SECRET"}</style>ab`, `ab`, `style @import`, ``},
	} {
		got := mailhtml.Sanitize(tt.source)
		if got.HTML != tt.html || strings.Contains(got.HTML, "SECRET") {
			t.Errorf("%s became %s", tt.source, got.HTML)
		}
		if len(got.Removed) == 0 || got.Removed[0].What != tt.what || got.Removed[0].Text != tt.text {
			t.Errorf("%s: removed is %+v, want %s with %q", tt.source, got.Removed, tt.what, tt.text)
		}
	}
	if got := mailhtml.Sanitize(`<!doctype html><html><head><meta charset=utf-8></head><body bgcolor=white><p>x</p></body></html>`); len(got.Removed) != 0 {
		t.Errorf("of an ordinary document: %+v", got.Removed)
	}
}

func TestSanitizeFindsHiddenText(t *testing.T) {
	t.Parallel()
	hidden := map[string]string{
		`<p style="display:none">SECRET</p>`:                                                                             "display",
		`<p style="display:none"><b style="display:block">SECRET</b></p>`:                                                "display",
		`<p style="visibility:hidden">SECRET</p>`:                                                                        "display",
		`<style>.x{display:none!important}</style><p class="a X" style="display:block">SECRET</p>`:                       "display",
		`<style>div.y b{display:none}</style><div class=y><p><b>SECRET</b></p></div>`:                                    "display",
		`<style>div > p > b{display:none}</style><div><p><b>SECRET</b></p></div>`:                                        "display",
		`<style>#i{display:none}</style><p id=i>SECRET</p>`:                                                              "display",
		`<style>*{display:none}</style>SECRET<p>SECRET</p>`:                                                              "display",
		`<p style="opacity:.4"><b style="opacity:10%">SECRET</b></p>`:                                                    "opacity",
		`<p style="font-size:0">SECRET</p>`:                                                                              "size",
		`<p style="font:1px Arial">SECRET</p>`:                                                                           "size",
		`<p style="font-size:50%"><b style="font-size:.4em">SECRET</b></p>`:                                              "size",
		strings.Repeat("<small>", 9) + `SECRET`:                                                                          "size",
		`<p style="line-height:0">SECRET</p>`:                                                                            "size",
		`<p style="letter-spacing:-1em">SECRET</p>`:                                                                      "size",
		`<p style="color:#fff">SECRET</p>`:                                                                               "colour",
		`<p style="color:white">SECRET</p>`:                                                                              "colour",
		`<p style="color:fffffe">SECRET</p>`:                                                                             "colour",
		`<p style="color:rgb(255 255 250)">SECRET</p>`:                                                                   "colour",
		`<p style="color:hsl(0,0%,99%)">SECRET</p>`:                                                                      "colour",
		`<p style="color:transparent">SECRET</p>`:                                                                        "colour",
		`<p style="color:rgba(0,0,0,.05)">SECRET</p>`:                                                                    "colour",
		`<font color="#FFFFFF">SECRET</font>`:                                                                            "colour",
		`<table bgcolor="#000"><tr><td style="color:#010101">SECRET</td></tr></table>`:                                   "colour",
		`<p style="background-color:#fff;background-image:url(https://a.example/x);color:#fff">SECRET</p>`:               "colour",
		`<p style="background-image:url(https://a.example/x);background-color:#fff;color:#fff">SECRET</p>`:               "colour",
		`<table bgcolor="#ffffff" background="https://a.example/x"><tr><td style="color:#fff">SECRET</td></tr></table>`:  "colour",
		`<table background="https://a.example/x" bgcolor="#ffffff"><tr><td style="color:#fff">SECRET</td></tr></table>`:  "colour",
		`<table style="background:#123 url(https://a.example/x)"><tr><td style="color:#112233">SECRET</td></tr></table>`: "colour",
		`<style>td{color:white}</style><table><tr><td>SECRET</td></tr></table>`:                                          "colour",
		`<p style="text-indent:-9999px">SECRET</p>`:                                                                      "off screen",
		`<p style="margin-left:-999px">SECRET</p>`:                                                                       "off screen",
		`<p style="padding-left:200em">SECRET</p>`:                                                                       "off screen",
		`<div style="max-height:0;overflow:hidden">SECRET</div>`:                                                         "clipped",
		`<div style="overflow:hidden;width:1px">SECRET</div>`:                                                            "clipped",
		`<style>@media (max-width:600px){.m{display:none}}</style><p class=m>SECRET</p>`:                                 "display, for some readers",
		`<style>@media print{p{color:#fff}}</style><p>SECRET</p>`:                                                        "colour, for some readers",
		`<style>.d{display:none}@media (max-width:600px){.d{display:block}}</style><p class=d>SECRET</p>`:                "display",
		`<style>p:first-child{font-size:0}</style><p>SECRET</p>`:                                                         "size, for some readers",
		`<style>p[class]{font-size:0}</style><p class=a>SECRET</p>`:                                                      "size, for some readers",
		`<style>b + p{font-size:0}</style><p>SECRET</p>`:                                                                 "size, for some readers",
	}
	for source, why := range hidden {
		got := mailhtml.Sanitize("Hello " + source)
		if len(got.Hidden) == 0 || got.Hidden[0].Why != why || !strings.Contains(got.Hidden[0].Text, "SECRET") {
			t.Errorf("%s: hidden is %+v, want %q", source, got.Hidden, why)
		}
		page := mailhtml.Clean(got.HTML, mailhtml.Options{Reveal: true})
		if !strings.Contains(page.Body, `:</b> SECRET</span>`) {
			t.Errorf("%s: shown as %s", source, page.Body)
		}
		for _, style := range []string{"display:none", "visibility", "opacity:.", "@media", "-999"} {
			if strings.Contains(page.Style+page.Body, style) {
				t.Errorf("%s: shown with %s: %s %s", source, style, page.Style, page.Body)
			}
		}
	}
	for _, source := range []string{
		`<p style="display:none">` + strings.Repeat("&nbsp;&zwnj;&#847;", 10) + `</p>`,
		`<table bgcolor="#336699"><tr><td style="padding:20px 40px"><a href="https://a.example/" style="color:#ffffff;display:inline-block">Go</a></td></tr></table>`,
		`<style>.b a{color:#fff}.b{background:#369}a:hover{color:#fff}@media (max-width:600px){.w{width:100%!important}}</style><p class=b><a href="https://a.example/">Go</a></p><a href="https://a.example/">x</a>`,
		`<p style="color:#999;font-size:11px;line-height:14px">Unsubscribe</p><hr style="height:1px;overflow:hidden">`,
		`<table style="background-image:url(https://a.example/x.png)"><tr><td style="color:#fff">On a picture</td></tr></table>`,
		`<style>.x{color:#fff}p.x{color:#000}</style><p class=x>x</p>`,
	} {
		if got := mailhtml.Sanitize(source); len(got.Hidden) != 0 {
			t.Errorf("%s: %+v is not hidden", source, got.Hidden)
		}
	}
}

func TestSanitizeListsLinks(t *testing.T) {
	t.Parallel()
	got := mailhtml.Sanitize(`<a href="https://a.example/x">one</a><a href="https://a.example/x">two</a><a href="https://evil.example/">www.bank.com</a><a href="mailto:a@b.example">m</a><a href="#x">x</a>`)
	want := []mailhtml.Link{
		{URL: "https://a.example/x", Host: "a.example"}, {URL: "https://evil.example/", Host: "evil.example", Says: "www.bank.com"}, {URL: "mailto:a@b.example"},
	}
	if d := cmp.Diff(want, got.Links); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Sanitizing a second time changes nothing, and the result is as harmless as what Clean
// shows.
func TestSanitizeTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	for _, m := range hostilemail.All(target) {
		checkSanitized(t, m.HTML)
	}
	checkSanitized(t, strings.Repeat(`"&<p>`, 400_000))
	checkSanitized(t, "a&#13;b\r\nc<p title=\"&#13;\">")
}

func FuzzSanitize(f *testing.F) {
	for _, m := range hostilemail.All(target) {
		if len(m.HTML) < 10_000 {
			f.Add(m.HTML)
		}
	}
	f.Fuzz(checkSanitized)
}

func checkSanitized(t *testing.T, source string) {
	once := mailhtml.Sanitize(source)
	if twice := mailhtml.Sanitize(once.HTML); twice.HTML != once.HTML || len(twice.Removed) != 0 {
		t.Errorf("%.2000q\nbecame %.2000q\nand then %.2000q without %+v", source, once.HTML, twice.HTML, twice.Removed)
	}
	checkHarmless(t, mailhtml.Clean(once.HTML, mailhtml.Options{Reveal: true}))
	checkHarmless(t, mailhtml.Clean(once.HTML, shown))
}

// The time to sanitize and to reveal grows only with the length.
func TestSanitizeIsLinear(t *testing.T) { //nolint:paralleltest // it measures the time of this process
	for name, unit := range map[string][2]string{
		"rules and elements":  {`<style>` + strings.Repeat(`.a .b .c{color:red}`, 500) + `</style>`, `<p class="c b a">x`},
		"deep":                {``, `<div class="a b c">x`},
		"many classes":        {`<style>` + strings.Repeat(`.a.b.c.d.e.f.g{color:red}`, 500) + `</style>`, `<p class="a b c d e f">x</p>`},
		"hidden":              {``, `<p style="display:none">x</p>`},
		"links":               {``, `<a href="https://a.example/x">x`},
		"nested media":        {`<style>`, `@media print{p{color:red}`},
		"open brackets":       {`<style>`, `p{a:([`},
		"comments":            {`<style>`, `/*`},
		"styles":              {`<p style="`, `margin:1px;`},
		"selectors":           {`<style>`, `a>`},
		"conditional comment": {``, `<!--[if`},
	} {
		took := func(n int) float64 {
			source := unit[0] + strings.Repeat(unit[1], n/len(unit[1]))
			before := cputime.Used()
			mailhtml.Clean(mailhtml.Sanitize(source).HTML, mailhtml.Options{Reveal: true})
			return (cputime.Used() - before).Seconds()
		}
		took(32 << 10)
		small, large := took(64<<10), took(512<<10)
		if large > 24*small+0.25 {
			t.Errorf("%s: %.3f s for 64 KB, %.3f s for 512 KB", name, small, large)
		}
	}
}
