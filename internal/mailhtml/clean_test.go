package mailhtml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mailhtml"
)

// shown are the addresses under which the tests show images.
var shown = mailhtml.Options{
	Inline: func(id string) string {
		if id == "logo@mail.example" {
			return "/inline"
		}
		return ""
	},
	Remote: func(u string) string { return "/remote?" + strings.TrimPrefix(u, "https://") },
}

// mark returns the mark before the text of a link that names another site than host.
func mark(host string) string {
	return `<span class="postroom-leads-to" style="` + markStyle + `">(leads to ` + host + `) </span>`
}

const markStyle = "all:initial!important;position:relative!important;z-index:2147483647!important;" +
	"color:#b3232f!important;background:#fff!important;font:600 13px/1.5 system-ui,sans-serif!important"

func TestClean(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, source, want, style string }{
		{name: "text is text", source: "a < b &amp; c > d", want: "a &lt; b &amp; c &gt; d"},
		{
			name: "ordinary content stays", source: `<table width=600 bgcolor="#ffffff"><tr><td align=center><b>Hi</b><br></td></tr></table>`,
			want: `<table width="600" bgcolor="#ffffff"><tr><td align="center"><b>Hi</b><br></td></tr></table>`,
		},
		{name: "what is open is closed", source: "<p><b>x", want: "<p><b>x</b></p>"},
		{name: "an end without a beginning", source: "</table>x</p>", want: "x"},
		{name: "a cell is not closed by its content", source: "<b><table><tr><td></b>x</td></tr></table></b>", want: "<b><table><tr><td>x</td></tr></table></b>"},
		{name: "unknown elements lose their tags", source: "<o:p>x</o:p><blink>y</blink>", want: "xy"},
		{name: "elements that run or are parsed differently are removed", source: "a<script>x</script><svg><b>x</b></svg><textarea>x</textarea><noscript><i>x</i></noscript>b", want: "ab"},
		{
			name: "a link opens a new window and shows its target", source: `<a href="HTTPS://shop.example/a?b=1&amp;c=2" target=_top title="bank">x</a>`,
			want: `<a href="https://shop.example/a?b=1&amp;c=2" title="https://shop.example/a?b=1&amp;c=2" target="_blank" rel="noopener noreferrer nofollow">x</a>`,
		},
		{
			name: "a link that names another site has a mark", source: `<a href="https://evil.example/">www.bank.com</a>`,
			want: `<a href="https://evil.example/" title="https://evil.example/" target="_blank" rel="noopener noreferrer nofollow">` + mark("evil.example") + `www.bank.com</a>`,
		},
		{
			name: "such a link contains only text", source: `<a href="https://evil.example/"><br><br><b style="display:none">www.</b><i>bank.com</i><br>`,
			want: `<a href="https://evil.example/" title="https://evil.example/" target="_blank" rel="noopener noreferrer nofollow">` + mark("evil.example") + `www.bank.com</a>`,
		},
		{
			name: "a comment separates the text around it", source: `<style>/*x*/td/**/p{col/**/or:red;color:dark/**/red;margin:1/*x*/0px}</style><p style="color:/*a*//*b*/red">x</p>`,
			want: `<p style="color:red">x</p>`, style: "td p{color:dark red;margin:1 0px}\n",
		},
		{
			name: "brackets that are not balanced", source: `<style>a]b[c{color:red}@media ){({color:red}}@media )(x){b{color:red}}i{color:rgb(1,2}3);font-size:9px}u{color:red}</style>`,
			style: "i{font-size:9px}\nu{color:red}\n",
		},
		{
			name: "nothing moves back, is clipped or transparent", source: `<p style="margin:1px -1px;margin-left:calc(1px - 9px);text-indent:-9px;letter-spacing:-1em;vertical-align:-9px;` +
				`opacity:0;overflow:hidden;overflow-x:clip;max-height:0;text-overflow:clip;outline:9px solid;box-shadow:0 0 9px 9px;text-shadow:0 0;white-space:nowrap;table-layout:fixed">x</p>`,
			want: `<p>x</p>`,
		},
		{
			name: "a box is as high as its content", source: `<style>div,img{height:1px}p img{height:auto}td.x{height:2px}</style><p style="height:0"><img style="height:3px">x</p>`,
			want: `<p style="min-height:0"><img data-left-out="" style="height:3px">x</p>`, style: "div,img{min-height:1px}\np img{height:auto}\ntd.x{height:2px}\n",
		},
		{
			name: "a box is as wide as a word", source: `<p style="width:0;max-width:5%;flex-basis:min(1px,2px);width:50%;max-width:600px"><img style="width:1px"></p>`,
			want: `<p style="width:50%;max-width:600px"><img data-left-out="" style="width:1px"></p>`,
		},
		{
			name: "lines are as high as their letters", source: `<p style="line-height:0;line-height:50%;line-height:1.4;line-height:9px;line-height:NORMAL;font:9px/0 Arial;font:9px / 2px Arial;font:9px/1.5 Arial">x</p>`,
			want: `<p style="line-height:1.4;line-height:max(0.9em,9px);line-height:NORMAL;font:9px / max(0.9em,2px) Arial;font:9px/1.5 Arial">x</p>`,
		},
		{
			name: "a link through a counter of the same owner has no mark", source: `<a href="https://click.bank.com/x">https://www.bank.com</a>`,
			want: `<a href="https://click.bank.com/x" title="https://click.bank.com/x" target="_blank" rel="noopener noreferrer nofollow">https://www.bank.com</a>`,
		},
		{
			name: "letters that look like others", source: `<a href="https://аpple.com/">x</a>`,
			want: `<a href="https://xn--pple-43d.com/" title="https://xn--pple-43d.com/" target="_blank" rel="noopener noreferrer nofollow">x</a>`,
		},
		{name: "a place in the message", source: `<a href="#top">x</a>`, want: `<a href="#top">x</a>`},
		{name: "a link that does not lead to the web", source: `<a href="java&#10;script:x">a</a><a href="/x">b</a><a href="https://a@b.example">c</a>`, want: `<a>a</a><a>b</a><a>c</a>`},
		{
			name: "an email address", source: `<a href="mailto:ann@mail.example">x</a>`,
			want: `<a href="mailto:ann@mail.example" title="mailto:ann@mail.example" target="_blank" rel="noopener noreferrer nofollow">x</a>`,
		},
		{name: "links are not nested", source: `<a href="#a">a<a href="#b">b</a></a>`, want: `<a href="#a">a</a><a href="#b">b</a>`},
		{name: "an image of the message", source: `<img src="cid:logo@mail.example" alt="Logo" width=20>`, want: `<img src="/inline" alt="Logo" width="20">`},
		{name: "an image that the message does not contain", source: `<img src="cid:other" alt="x">`, want: `<img data-left-out="" alt="x">`},
		{name: "a remote image", source: `<img srcset="https://a.example/1.png 1x, https://a.example/2.png 2x">`, want: `<img src="/remote?a.example/1.png">`},
		{
			name: "a background", source: `<p style="background: #fff URL( 'https://a.example/&quot;x.png' ) no-repeat; color:red">x</p>`,
			want: `<p style="background:#fff url(&#34;/remote?a.example/%22x.png&#34;) no-repeat;color:red">x</p>`,
		},
		{name: "an image in its address", source: `<img src="data:image/png;base64,AAAA"><img src="data:image/svg+xml;base64,AAAA">`, want: `<img src="data:image/png;base64,AAAA"><img data-left-out="">`},
		{
			name: "styles that do more than show", source: `<p style="position:fixed;width:expression(x);font:12px/1.5 'Open Sans',sans-serif;margin:1px;behavior:url(x);color:\72 ed">x</p>`,
			want: `<p style="font:12px/1.5 &#34;Open Sans&#34;,sans-serif;margin:1px">x</p>`,
		},
		{
			name: "a style sheet", source: `<style>@import "x";p, .a > b:hover{color:red;content:"x"}@media (max-width:600px){.w{width:100%!important}}i::before{color:red}x{y:z}</style>x`, want: "x",
			style: "p, .a > b:hover{color:red}\n@media (max-width:600px){.w{width:100%!important}\n}\n",
		},
		{name: "a style sheet that is a comment", source: "<style><!-- p{color:red} --></style>", style: "p{color:red}\n"},
		{name: "a style sheet cannot select what Clean adds", source: "<style>.postroom-leads-to{display:none}</style>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := mailhtml.Clean(tt.source, shown)
			if d := cmp.Diff(tt.want, got.Body); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if d := cmp.Diff(tt.style, got.Style); d != "" {
				t.Errorf("style: -want +got:\n%s", d)
			}
		})
	}
}

// Removed content is counted, each address once.
func TestRemoteContentIsCounted(t *testing.T) {
	t.Parallel()
	source := `<img src="https://a.example/1.png"><img src="https://a.example/1.png"><td background="//a.example/2.png">
		<p style="background:url(http://a.example/3.png)"><style>@import url(https://a.example/x.css); p{list-style:url(https://a.example/4.png)}
		@font-face{src:url(https://a.example/f.woff)}</style><link rel=stylesheet href="https://a.example/y.css"><video poster="https://a.example/v"></video>`
	without := mailhtml.Clean(source, mailhtml.Options{})
	if without.Blocked != 4 {
		t.Errorf("blocked %d; want 4", without.Blocked)
	}
	if strings.Contains(without.Body+without.Style, "a.example") {
		t.Errorf("remote content is shown without a request: %s %s", without.Body, without.Style)
	}
	with := mailhtml.Clean(source, shown)
	if with.Blocked != 0 || strings.Count(with.Body+with.Style, "/remote?") != 5 {
		t.Errorf("blocked %d of %s %s", with.Blocked, with.Body, with.Style)
	}
}

// A message that repeats one of its own images requests it once, and does not become many
// times larger.
func TestImagesOfTheMailAreBounded(t *testing.T) {
	t.Parallel()
	asked := 0
	o := mailhtml.Options{Inline: func(id string) string {
		asked++
		return "/" + strings.Repeat("x", 300)
	}}
	source := strings.Repeat(`<img src=cid:a><p style="background:url(cid:a)">`, 20_000)
	if got := mailhtml.Clean(source, o); asked != 1 || len(got.Body) > 3*len(source) {
		t.Errorf("requested %d times; %d bytes became %d", asked, len(source), len(got.Body))
	}
	asked, source = 0, ""
	for i := range 5_000 {
		source += fmt.Sprintf("<img src=cid:%d>", i)
	}
	if mailhtml.Clean(source, o); asked > 1000 {
		t.Errorf("requested %d images", asked)
	}
}
