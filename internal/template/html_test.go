package template_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/template"
)

// hostile are values that would break out of most places.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `" onmouseover="alert(1)`, `--><script>alert(1)</script>`,
	`</style><script>alert(1)</script>`, `</title><script>alert(1)</script>`, `]]><script>`, `&lt;script&gt;`, "a\r\nBcc: b@example.org",
	`javascript:alert(1)`, `JaVaScRiPt:alert(1)`, " \x01javascript:alert(1)", "java\nscript:alert(1)", "java\tscript:alert(1)", `vbscript:x`,
	`data:text/html,<script>alert(1)</script>`, `javascript&colon;alert(1)`, `&#106;avascript:alert(1)`, `red;background:url(//e.example)`,
	`expression(alert(1))`, `}body{display:none`, `\3c script`, `<![endif]--><script>`, `/><x`, `=`, ` x=y`, "`", `<!--`, `<`, `&`, `'`, `"`,
}

// places are templates with a variable in each allowed place.
var places = []string{
	`<p>{{x}}</p>`, `<a href="{{x}}">a</a>`, `<a href='{{x}}'>a</a>`, `<a HREF = "{{x}}">a</a>`, `<img src="{{x}}">`, `<a href="https://a.example/{{x}}">a</a>`,
	`<a href="?q={{x}}">a</a>`, `<p title="{{x}}">`, `<p title='a {{x}} b'>`, `<td style="color: {{x}}">a</td>`, `<style>p{color:{{x}}}</style>`, `<!-- {{x}} -->a`,
	`<title>{{x}}</title>a`, `<textarea>{{x}}</textarea>a`, `<!--[if mso]><a href="{{x}}">a</a><![endif]-->b`, `<noscript><a href="{{x}}">a</a></noscript>`,
	`<a href="{{x}}{{x}}">a</a>`, `<svg><a xlink:href="{{x}}"/></svg>`, `<body background="{{x}}">`, `a > b {{x}} < c`, `<form action=" {{x}}">`,
	`<a href="java{{x}}">a</a>`, `<a href="{{x}}:{{x}}">a</a>`, `<a href="&#x20;{{x}}">`, `<a href={{x}}>a</a>`, `<a href= {{x}} title={{x}}>a</a>`, `<td style=color:{{x}}>a`, `<img src={{x}}/>`,
	`<p style="font-family:'{{x}}'">`, `<style>p{font:"{{x}}"}</style>`, `<xmp>{{x}}</xmp>`, `<plaintext>{{x}}`, `{{#if x}}<b title="{{x}}">{{x}}</b>{{else}}<a href="{{x}}">{{/if}}`, `<ul>{{#each l}}<li><a href="{{this}}">{{x}}</a>{{/each}}</ul>`,
}

// TestHostileValues checks that in every place a value changes neither the elements nor the
// attributes of a message, and adds no scheme that runs code. Row T2 of docs/testing.md.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	for _, src := range places {
		harmless := rendered(t, src, "https")
		for _, value := range hostile {
			got := rendered(t, src, value)
			if want, have := skeleton(t, harmless), skeleton(t, got); want != have {
				t.Errorf("%s with %q became %s\nwith the elements %s\nwant              %s", src, value, got, have, want)
			}
			wantNoScript(t, got)
		}
	}
}

func rendered(t *testing.T, src, value string) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"x": value, "l": []string{value, value}})
	if err != nil {
		t.Fatal(err)
	}
	out, missing, err := render(t, template.Source{HTML: src}, string(data))
	if err != nil || missing != nil {
		t.Fatalf("%s: %v %v", src, missing, err)
	}
	return out.HTML
}

// skeleton returns a document without its texts and attribute values. It parses nested
// comments and plain text like the programs that show them.
func skeleton(t *testing.T, doc string) string {
	t.Helper()
	root, err := html.ParseWithOptions(strings.NewReader(doc), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			b.WriteString("<" + n.Data)
			for _, a := range n.Attr {
				b.WriteString(" " + a.Key)
			}
			b.WriteString(">")
		case html.CommentNode:
			b.WriteString("<!>")
		}
	}
	return b.String()
}

// wantNoScript checks the schemes of links like a browser.
func wantNoScript(t *testing.T, doc string) {
	t.Helper()
	doc = strings.NewReplacer("<!--[if mso]>", "", "<![endif]-->", "").Replace(doc)
	root, err := html.ParseWithOptions(strings.NewReader(doc), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			value := strings.ToLower(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(a.Val))
			value = strings.TrimLeftFunc(value, func(r rune) bool { return r <= ' ' })
			for _, scheme := range []string{"javascript:", "vbscript:", "data:"} {
				if a.Key != "title" && strings.HasPrefix(value, scheme) {
					t.Errorf("%s has the address %q", doc, a.Val)
				}
			}
			if a.Key == "style" && strings.ContainsAny(a.Val, `;(){}\`) {
				t.Errorf("%s has the style %q", doc, a.Val)
			}
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	tests := []struct{ src, value, want string }{
		{`<a href="{{x}}">`, "https://a.example/?a=1&b=2", `<a href="https://a.example/?a=1&amp;b=2">`},
		{`<a href="{{x}}">`, "HTTPS://a.example", `<a href="HTTPS://a.example">`},
		{`<a href="{{x}}">`, "mailto:a@b.example", `<a href="mailto:a@b.example">`},
		{`<a href="{{x}}">`, "/path:x", `<a href="/path:x">`},
		{`<a href="{{x}}">`, "//host/x", `<a href="//host/x">`},
		{`<a href="{{x}}">`, "", `<a href="">`},
		{`<a href="{{x}}">`, "javascript:alert(1)", `<a href="#">`},
		{`<a href="java{{x}}">`, "script:alert(1)", `<a href="#">`},
		{`<a href="{{x}}:alert(1)">`, "javascript", `<a href="#">`},
		{`<a href="{{x}}://h/">`, "https", `<a href="https://h/">`},
		{`<a href="myapp://open/{{x}}">`, "javascript:1", `<a href="myapp://open/javascript:1">`},
		{`<img src="data:image/png;base64,{{x}}">`, "aGk=", `<img src="data:image/png;base64,aGk=">`},
		{`<a href="{{{x}}}">`, "https://a.example/?a=1&amp;b=2", `<a href="https://a.example/?a=1&amp;b=2">`},
		{`<a href="{{{x}}}">`, "&#106;avascript:alert(1)", `<a href="#">`},
		{`<p style="color: {{x}}">`, "#ff00aa", `<p style="color: #ff00aa">`},
		{`<p style="color: {{x}}">`, "red;top:0", `<p style="color: ">`},
		{`<p style="font-family: {{x}}">`, `'Open Sans', Arial`, `<p style="font-family: &#39;Open Sans&#39;, Arial">`},
		{`<style>p{font-family: {{x}}}</style>`, `"Open Sans", Arial`, `<style>p{font-family: "Open Sans", Arial}</style>`},
		{`<style>p{font-family: {{x}}}</style>`, `"Open Sans`, `<style>p{font-family: }</style>`},
		{`<a href={{x}}>`, "https://h/?a b", `<a href="https://h/?a b">`},
		{`<a href=myapp://open/{{x}} title={{x}}>`, "1 2", `<a href="myapp://open/1 2" title="1 2">`},
		{`<a href={{x}}>`, "javascript:alert(1)", `<a href="#">`},
		{`<td width={{x}}>`, `1" onclick="f()`, `<td width="1&#34; onclick=&#34;f()">`},
	}
	for _, tt := range tests {
		if got := rendered(t, tt.src, tt.value); got != tt.want {
			t.Errorf("%s with %q: got %s, want %s", tt.src, tt.value, got, tt.want)
		}
	}
}

func TestPlacesWithoutVariables(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		`<script>var x = "{{x}}"</script>`, `<SCRIPT>{{x}}</SCRIPT>`, `<a onclick="f('{{x}}')">`, `<iframe srcdoc="{{x}}">`, `<a href="javascript:f('{{x}}')">`,
		`<a href=" java&#10;script:{{x}}">`, `<a title=a"{{x}}>`, `<a {{x}}>`, `<a {{x}}="y">`, `<{{x}}>`, `</{{x}}>`, `<a{{x}}>`, `<!DOCTYPE {{x}}>`,
		`<a href="{{x}}`, `<a href="x" {{x}}`, `<!--[if {{x}}]><p><![endif]-->`, `<!--[if mso]><script>{{x}}</script><![endif]-->`, `<noscript><p {{x}}></noscript>`,
		`<p title="a"{{x}}>`, `<a/{{x}}>`, `<a href="b" title='{{{x}}}>`,
	} {
		_, err := template.Parse(template.Source{HTML: src})
		if e := (*template.Error)(nil); !errors.As(err, &e) || e.Part != template.HTML {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// A bad template is refused when it is parsed, and the error names the place.
func TestRefusalsNameThePlace(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"<p>\n<b>ä</b> <a {{x}}>": "(line 2, column 13)", "a {{ b": "(line 1, column 3)", "<script>\n\n{{x}}</script>": "(line 3, column 1)",
	} {
		if _, err := template.Parse(template.Source{HTML: src}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
}

// FuzzTemplate compares the result of a hostile value with that of a harmless one.
func FuzzTemplate(f *testing.F) {
	for i, src := range places {
		f.Add(src, hostile[i%len(hostile)])
	}
	f.Fuzz(func(t *testing.T, src, value string) {
		if strings.Contains(src, "{{{") {
			return // these are inserted unescaped
		}
		if value == "" && strings.Contains(src, "#") {
			return // it decides {{#if}}
		}
		m, err := template.Parse(template.Source{HTML: src})
		if err != nil {
			return
		}
		data := func(v string) map[string]any {
			return map[string]any{"x": v, "l": []any{v, v}}
		}
		harmless, missing, err := m.Render(data("a"))
		if err != nil || len(missing) > 0 {
			return
		}
		got, _, err := m.Render(data(value))
		if err != nil {
			return
		}
		if want, have := skeleton(t, harmless.HTML), skeleton(t, got.HTML); want != have {
			t.Errorf("%q became %q\nwith the elements %s\nwant              %s", src, got.HTML, have, want)
		}
	})
}
