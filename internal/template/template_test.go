package template_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/template"
)

// render renders a message with data as JSON.
func render(t *testing.T, src template.Source, data string) (template.Source, []string, error) {
	t.Helper()
	m, err := template.Parse(src)
	if err != nil {
		return template.Source{}, nil, err
	}
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		t.Fatal(err)
	}
	return m.Render(values)
}

func TestRender(t *testing.T) {
	t.Parallel()
	const data = `{"name":"Ana & <Ben>","n":1.50,"big":12345678901234567890,"yes":true,"no":false,"empty":"","nil":null,
		"order":{"number":7,"ship-to":{"city":"Łódź"}},"a.b":"flat","списо́к":"ok","list":[1],"2nd":"second"}`
	tests := []struct {
		name, src, html, text string // src rendered as html and as text
	}{
		{"no variables", "Hello, { name } }}", "Hello, { name } }}", "Hello, { name } }}"},
		{"escaped only in html", "{{name}}", "Ana &amp; &lt;Ben&gt;", "Ana & <Ben>"},
		{"spaces", "{{ name }}{{\tn\n}}", "Ana &amp; &lt;Ben&gt;1.50", "Ana & <Ben>1.50"},
		{"unescaped", "{{{name}}} {{{ name }}}", "Ana & <Ben> Ana & <Ben>", "Ana & <Ben> Ana & <Ben>"},
		{"numbers keep their spelling", "{{n}} {{big}}", "1.50 12345678901234567890", "1.50 12345678901234567890"},
		{"true and false", "{{yes}} {{no}}", "true false", "true false"},
		{"an empty string is not missing", "[{{empty}}]", "[]", "[]"},
		{"paths", "{{order.number}} {{order.ship-to.city}}", "7 Łódź", "7 Łódź"},
		{"names of any script", "{{списо́к}} {{2nd}}", "ok second", "ok second"},
		{"side by side", "{{n}}{{n}}", "1.501.50", "1.501.50"},
		{"a brace too many is text", "{{n}}} {{{n}}}}", "1.50} 1.50}", "1.50} 1.50}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, missing, err := render(t, template.Source{HTML: tt.src, Text: tt.src}, data)
			if err != nil || missing != nil {
				t.Fatalf("missing %v, error %v", missing, err)
			}
			if d := cmp.Diff(template.Source{HTML: tt.html, Text: tt.text}, out); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMissingVariablesAreListedOnce(t *testing.T) {
	t.Parallel()
	out, missing, err := render(t, template.Source{
		Subject: "{{b}}{{a}}", HTML: "[{{b}}{{nil}}]", Text: "{{order.x}}{{n.x}}{{a.b}}",
	}, `{"nil":null,"order":{},"n":1,"a.b":"flat"}`)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"b", "a", "nil", "order.x", "n.x", "a.b"}, missing); d != "" {
		t.Error(d)
	}
	if out.HTML != "[]" {
		t.Errorf("rendered %q", out.HTML)
	}
}

// TestPayloads checks that code of other template languages is text or refused, and that a
// value is never parsed as a template. Row T1 of docs/testing.md.
func TestPayloads(t *testing.T) {
	t.Parallel()
	literal := []string{
		"${7*7}", "#{7*7}", "<%= 7*7 %>", "<% system('id') %>", "{%if 1%}x{%endif%}", "{#x#}", "*{7*7}", "@(7*7)", "[[${7*7}]]", "~[7*7]",
		"$name", "%name%", ":name", "{name}", "{ {name}}", "{\u200b{name}}", "&#123;&#123;name}}", "\\x7b\\x7bname}}", "#set($x=7)$x",
		"<#assign x=7>${x}", "`id`", "$(id)", "<?php echo 7 ?>", "<!--#exec cmd=id-->", "}}name{", "{$name}", "{php}7{/php}",
	}
	for _, src := range literal {
		out, missing, err := render(t, template.Source{HTML: src, Text: src}, `{"name":"Ana","x":"y"}`)
		if err != nil || missing != nil || out.HTML != src || out.Text != src {
			t.Errorf("%q became %+v, missing %v, %v", src, out, missing, err)
		}
	}
	refused := []string{
		"{{.}}", "{{}}", "{{ }}", "{{{}}}", "{{range .}}x{{end}}", "{{if x}}", "{{#each x}}", "{{/each}}", "{{> partial}}", "{{! note}}",
		"{{&name}}", "{{^name}}", "{{=<% %>=}}", "{{.name}}", "{{name.}}", "{{a..b}}", "{{$name}}", "{{@index}}", "{{7*7}}", "{{'a'}}",
		`{{"a"}}`, "{{name | upper}}", "{{name()}}", "{{a[0]}}", "{{a/b}}", "{{../name}}", "{{a{{b}}}}", "{{{a{{b}}}}}", "{{{{name}}}}",
		"{{{name}}", "{{name}", "{{name", "{{", "{{ name", "{{name }x}", "{{a b}}", "{{printf \"%v\" .}}", "{{call .x}}", "{{name\x00}}", "{{\u200bname}}",
	}
	for _, src := range refused {
		for part, mail := range map[template.Part]template.Source{
			template.Subject: {Subject: src}, template.HTML: {HTML: src}, template.Text: {Text: src},
		} {
			_, err := template.Parse(mail)
			var e *template.Error
			if !errors.As(err, &e) || e.Part != part || e.Variable != "" {
				t.Errorf("%q as %s: %v", src, part, err)
			}
		}
	}
	for _, src := range []string{"{{constructor}}", "{{__proto__}}", "{{toString}}", "{{name.length}}", "{{constructor.prototype}}", "{{this}}", "{{self}}"} {
		if out, missing, err := render(t, template.Source{Text: src}, `{"name":"Ana"}`); err != nil || len(missing) != 1 || out.Text != "" {
			t.Errorf("%q became %+v, missing %v, %v", src, out, missing, err)
		}
	}
	for _, value := range []string{"{{name}}", "{{{secret}}}", "{{", "}}", "{{secret", "secret}}", "${secret}"} {
		data, err := json.Marshal(map[string]string{"name": value, "secret": "s3cret"})
		if err != nil {
			t.Fatal(err)
		}
		for _, src := range []string{"{{name}}", "{{{name}}}", "{{name}}{{name}}", "{{{name}}}}}", "{ {{name}}"} {
			out, _, err := render(t, template.Source{Subject: src, HTML: src, Text: src}, string(data))
			if err != nil || strings.Contains(out.Subject+out.HTML+out.Text, "s3cret") || !strings.Contains(out.Text, value) {
				t.Errorf("%q with %q became %+v, %v", src, value, out, err)
			}
		}
	}
}

func TestValuesThatCannotBeInserted(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`"a\r\nBcc: b@example.org"`, `"a\nb"`, `"a\rb"`, `"a\tb"`, `"\u0000"`, `"\u0085"`, `"\u2028"`, `"\u2029"`, `"\u007f"`,
	} {
		_, _, err := render(t, template.Source{Subject: "Hello, {{o.x}}", Text: "t"}, `{"o":{"x":`+value+`}}`)
		var e *template.Error
		if !errors.As(err, &e) || e.Variable != "o.x" || e.Part != template.Subject {
			t.Errorf("%s in a subject: %v", value, err)
		}
		if out, _, err := render(t, template.Source{Text: "{{x}}"}, `{"x":`+value+`}`); err != nil || out.Text == "" {
			t.Errorf("%s in a text: %q, %v", value, out.Text, err)
		}
	}
	for _, value := range []string{`{}`, `[]`, `["a"]`, `{"a":1}`} {
		_, _, err := render(t, template.Source{Text: "{{x}}"}, `{"x":`+value+`}`)
		if e := (*template.Error)(nil); !errors.As(err, &e) || e.Variable != "x" {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestLargeRendering checks that a rendered part that is too long is refused in little time
// and memory. Row T3 of docs/testing.md.
func TestLargeRendering(t *testing.T) {
	t.Parallel()
	const uses = 1000
	filler := strings.Repeat("a", 1_000_000/uses-len("{{x}}"))
	data := map[string]any{"x": strings.Repeat("<", 100_000)}
	for part, src := range map[template.Part]template.Source{
		template.HTML: {HTML: strings.Repeat(filler+"{{x}}", uses)},
		template.Text: {Text: strings.Repeat(filler[:400]+"{{x}}", uses)},
	} {
		began := time.Now()
		m, err := template.Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = m.Render(data)
		if e := (*template.Error)(nil); !errors.As(err, &e) || e.Part != part || e.Variable != "" {
			t.Errorf("%s: %v", part, err)
		}
		t.Logf("%s: %s", part, time.Since(began))
	}
	for n, ok := range map[int]bool{10_000: true, 10_001: false} {
		if _, err := template.Parse(template.Source{HTML: strings.Repeat("{{x}}", n)}); (err == nil) != ok {
			t.Errorf("%d variables: %v", n, err)
		}
	}
	for _, tt := range []struct {
		src, value string
		ok         bool
	}{
		{"{{x}}", strings.Repeat("ä", 998), true},
		{"{{x}}", strings.Repeat("ä", 999), false},
		{"{{x}}b", strings.Repeat("ä", 998), false},
	} {
		m, err := template.Parse(template.Source{Subject: tt.src})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.Render(map[string]any{"x": tt.value}); (err == nil) != tt.ok {
			t.Errorf("a subject %s with %d characters: %v", tt.src, len(tt.value)/2, err)
		}
	}
}
