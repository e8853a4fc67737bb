package htmltext

import (
	"testing"
)

func TestHTMLToText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"paragraphs", "<p>One</p><p>Two</p>", "One\n\nTwo"},
		{"blocks", "<div>One<div>Two</div>Three</div>", "One\nTwo\nThree"},
		{"white space is folded", " One \n\t <b>two</b>\n<i> three</i>", "One two three"},
		{"inline elements do not split words", "S<b>plit</b>ting", "Splitting"},
		{"line breaks", "One<br>Two<br><br>Three", "One\nTwo\n\nThree"},
		{"table cells", "<table><tr><td>Order<td>42</td><tr><th>Total<th>$5</table>", "Order 42\nTotal $5"},
		{"lists", "<ul><li>One<li>Two</ul>", "One\nTwo"},
		{"entities", "a&nbsp;&amp;&lt;b&gt; &euro;&#8364;&#x20AC; &bogus;", "a &<b> €€€ &bogus;"},
		{"preformatted", "<pre>a\n  b\n\nc</pre>", "a\nb\n\nc"},
		{"styles, scripts, titles, comments", "<title>T</title><style>p{}</style><script>x()</script><!-- c -->Text", "Text"},
		{"hidden by style", "<div style='DISPLAY : none !important'>No <p>no</p></div>Yes", "Yes"},
		{"hidden by attribute", "<p hidden>No</p>Yes", "Yes"},
		{"hidden by its size", "<div style='max-height:0;overflow:hidden'>No</div>Yes", "Yes"},
		{"invisible", "<span style='visibility:hidden'>No</span><span style=opacity:0>No</span>Yes", "Yes"},
		{"a font size of zero is layout", "<td style='font-size:0px'><p style='font-size:13px'>Yes</p></td>", "Yes"},
		{"a hidden cell ends with its row", "<table><tr><td style='display:none'>No<td>Yes<tr><td>Too</table>", "Yes\nToo"},
		{"hidden, with void elements inside", "<div style='display:none'><img><br>No</div>Yes", "Yes"},
		{"invisible characters", "4&#8203;8&shy;2", "482"},
		{"filler of previews", "Hello &zwnj;&nbsp;&zwnj;&nbsp;", "Hello"},
		{"a link", `<a href="https://example.com/x?a=1&amp;b=2">Read on</a>.`, "Read on <https://example.com/x?a=1&b=2>."},
		{"a link that shows its address", `<a href="https://example.com/">https://example.com/</a>`, "https://example.com/"},
		{"a link that leads nowhere", `<a href="#top">Top</a> <a href="mailto:a@b.c">Mail</a>`, "Top Mail"},
		{"relative links", `<head><base href="https://a.example/b/"><base href="https://z.example/"></head><a href="c?d=1">One</a> <a href="/e">Two</a> <a href="//f.example/g">Three</a> <a href="https://h.example/">Four</a>`,
			"One <https://a.example/b/c?d=1> Two <https://a.example/e> Three <https://f.example/g> Four <https://h.example/>"},
		{"targets that are not relative links", `<base href="https://a.example/"><a href="#b">One</a> <a href="mailto:a@b.c">Two</a> <a href="javascript:x()">Three</a>`, "One Two Three"},
		{"relative links to another scheme than https", `<base href="http://a.example/"><a href="b">One</a>`, "One"},
		{"relative links to nothing", `<a href="b">One</a>`, "One"},
		{"a quotation", "Yes<div>Ann wrote:</div><blockquote>One<br>Two<blockquote type=cite>Three</blockquote></blockquote>No", "Yes\nAnn wrote:\n>\n> One\n> Two\n> >\n> > Three\n\nNo"},
		{"an indented block is not a quotation", "Yes<blockquote>One</blockquote>", "Yes\n\nOne"},
		{"text alone", "a < b", "a < b"},
		{"a broken tag at the end", "Yes<div", "Yes"},
		{"stray end tags", "</div></p></table>Yes</b>", "Yes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Text(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVisibleTextHasNoAddresses(t *testing.T) {
	t.Parallel()
	if got := Read(`Please <a href="https://example.com/">read on</a>`, 0, OnlyVisible, nil).Plain(); got != "Please read on" {
		t.Errorf("got %q", got)
	}
}
