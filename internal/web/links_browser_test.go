package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/internal/mailhtml"
	"github.com/postroom/postroom/internal/web"
)

// coveredLinks are messages that hide where a link leads, or cover a trusted link
// with another.
var coveredLinks = map[string]string{
	"by a negative margin":        bad + `<p style="margin-top:-60px;background:#fff;height:90px">x</p>`,
	"by a margin in a sheet":      `<style>.c{margin:-80px 0 0 -5px!important;background:#fff}</style>` + bad + `<p class="c">xxxxxxxxxxxx<br>x<br>x<br>x</p>`,
	"by a margin to the left":     bad + `<span style="display:inline-block;margin-left:-500px;width:490px;background:#fff">x</span>`,
	"by a computed margin":        bad + `<p style="margin-top:calc(10px - 70px);background:#fff">x<br>x<br>x<br>x</p>`,
	"see-through":                 `<div style="opacity:0">` + bad + `</div>`,
	"see-through in a link":       `<a href="https://evil.example/" style="opacity:0.01">www.bank.example</a>`,
	"cut off":                     `<div style="height:18px;width:60px;overflow:hidden">` + bad + `</div>`,
	"cut off by a sheet":          `<style>div{max-height:5px!important;overflow-y:clip!important}</style><div>` + bad + `</div>`,
	"by an outline":               bad + `<br><b style="outline:60px solid #fff">x</b>`,
	"by a shadow":                 bad + `<br><b style="display:inline-block;box-shadow:0 0 0 90px #fff">x</b>`,
	"far from the text":           `<a href="https://evil.example/">www.bank.example<br><br><br><br><br><br><br><br><br><br></a>`,
	"with a hidden part":          `<a href="https://evil.example/"><i style="display:none">www.</i>bank.example</a>`,
	"no room":                     `<div style="width:0;height:0;line-height:0;white-space:nowrap">` + bad + `</div><p>xxxxxxxxxxxxxxxxx</p>`,
	"a link over a margin":        good + `<a href="https://evil.example/" style="display:block;height:60px;margin-top:-50px"></a>`,
	"a see-through link":          `<div style="height:20px">` + good + `</div><a href="https://evil.example/" style="display:block;height:60px;margin-top:-60px;opacity:0">x</a>`,
	"a link over a flat box":      `<div style="height:0">` + good + `</div><a href="https://evil.example/" style="display:inline-block;width:300px;height:30px"></a>`,
	"a link over a box cut off":   `<div style="max-height:0">` + good + `</div><a href="https://evil.example/" style="display:inline-block;width:300px;height:30px"></a>`,
	"a link over a narrow box":    `<span style="display:inline-block;width:0;white-space:nowrap">` + good + `</span><a href="https://evil.example/" style="display:inline-block;width:300px;height:30px"></a>`,
	"a link over flat lines":      `<p style="line-height:0">` + good + `<br><a href="https://evil.example/">xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx</a></p>`,
	"a link that is moved":        good + `<br><a href="https://evil.example/" style="vertical-align:20px;padding-left:300px"></a>`,
	"a link by a negative indent": good + `<a href="https://evil.example/" style="display:inline-block;width:300px;text-indent:-300px">xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx</a>`,
}

const (
	bad  = `<a href="https://evil.example/">www.bank.example</a>`
	good = `<a href="https://bank.example/" id="good">bank.example</a>`
)

// The mark that says where a link leads can be seen, and a link that is seen is the
// one that a click reaches, whatever the styles of the mail.
func TestBrowserLinksAreNotCovered(t *testing.T) {
	s := openSQLite(t)
	b := s.browseSignedOut(t)
	b.elsewhere = true
	for name, source := range coveredLinks {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			c := mailhtml.Clean(source, mailhtml.Options{})
			_, _ = fmt.Fprintf(w, `<!doctype html><link rel=icon href="data:,"><style>%s</style><style>%s</style><body>%s`, web.FrameStyle, c.Style, c.Body)
		}))
		b.do(chromedp.Navigate(srv.URL))
		reached, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`(() => {
				const e = document.querySelector('.postroom-leads-to') || document.querySelector('#good');
				const hits = [...e.getClientRects()].filter((r) => r.width > 1).map((r) => [0.1, 0.5, 0.9].every((part) => {
					const at = document.elementFromPoint(r.left + r.width * part, r.top + r.height / 2);
					return at && e.contains(at);
				}));
				let seen = hits.length > 0 && hits.every(Boolean) && e.checkVisibility({opacityProperty: true, visibilityProperty: true});
				const text = document.createRange();
				text.selectNodeContents(e.parentElement.id ? e : e.parentElement);
				if (text.getBoundingClientRect().height > 200) seen = false; // the mark is far from the text
				return seen ? '' : e.outerHTML + ' in ' + document.body.innerHTML;
			})()`))
		srv.Close()
		must(t, err)
		if reached != "" {
			t.Errorf("%s: covered: %s", name, reached)
		}
	}
}
