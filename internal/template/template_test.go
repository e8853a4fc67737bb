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

func TestBlocks(t *testing.T) {
	t.Parallel()
	const data = `{"name":"Ana","vip":true,"none":null,"no":false,"zero":0.0,"empty":"","void":[],"order":{},"n":2,
		"items":[{"what":"Tea","price":3,"tags":["hot","<b>"]},{"what":"Pen","price":1.50,"name":"Bic","tags":[]}],"grid":[[1,2],[3]]}`
	tests := []struct {
		name, src, text, html string // html is text if it is empty
	}{
		{"if", "{{#if vip}}Dear{{/if}} {{name}}{{#if no}}!{{/if}}", "Dear Ana", ""},
		{"else", "{{#if no}}a{{else}}b{{/if}}{{#if vip}}c{{else}}d{{/if}}", "bc", ""},
		{"what counts as no", "{{#if none}}a{{/if}}{{#if no}}b{{/if}}{{#if zero}}c{{/if}}{{#if empty}}d{{/if}}{{#if void}}e{{/if}}{{#if x.y}}f{{/if}}.", ".", ""},
		{"what counts as yes", "{{#if name}}a{{/if}}{{#if n}}b{{/if}}{{#if items}}c{{/if}}{{#if order}}d{{/if}}", "abcd", ""},
		{"each", "{{#each items}}{{what}} {{price}}; {{/each}}", "Tea 3; Pen 1.50; ", ""},
		{"names of an item come first", "{{#each items}}{{name}} {{this.price}} {{/each}}{{name}}", "Ana 3 Bic 1.50 Ana", ""},
		{"this", "{{#each items}}{{#each tags}}[{{this}}]{{else}}none{{/each}}{{/each}}", "[hot][<b>]none", "[hot][&lt;b&gt;]none"},
		{"lists in lists", "{{#each grid}}({{#each this}}{{this}}{{/each}}){{/each}}", "(12)(3)", ""},
		{"an empty list", "{{#each void}}a{{else}}nothing{{/each}}{{#each void}}b{{/each}}", "nothing", ""},
		{"spaces", "{{ #if  vip }}a{{ else }}b{{ /if }}", "a", ""},
		{"tags alone on their lines", "Hi\n{{#each items}}\n- {{what}}\n  {{/each}}\n\n{{#if no}}\r\nx\n{{else}}\ny\n{{/if}}", "Hi\n- Tea\n- Pen\n\ny\n", ""},
		{"not alone", "a {{#if vip}}\nb{{/if}}\nc", "a \nb\nc", ""},
		{"else as a field", "{{{else}}}.", ".", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, missing, err := render(t, template.Source{HTML: tt.src, Text: tt.src}, strings.Replace(data, `{"name"`, `{"else":"","name"`, 1))
			if err != nil || missing != nil {
				t.Fatalf("missing %v, error %v", missing, err)
			}
			if d := cmp.Diff(template.Source{HTML: or(tt.html, tt.text), Text: tt.text}, out); d != "" {
				t.Error(d)
			}
		})
	}
	_, missing, err := render(t, template.Source{Text: "{{#each items}}{{what.x}}{{y}}{{#each tags}}{{this.z}}{{/each}}{{/each}}{{#each w}}{{/each}}{{#if v}}{{u}}{{/if}}"}, data)
	if d := cmp.Diff([]string{"items.what.x", "items.y", "items.tags.z", "w"}, missing); err != nil || d != "" {
		t.Error(d, err)
	}
	for _, src := range []string{"{{#each name}}{{/each}}", "{{#each items}}{{tags}}{{/each}}", "{{#each order}}{{/each}}"} {
		_, _, err := render(t, template.Source{Text: src}, data)
		if e := (*template.Error)(nil); !errors.As(err, &e) || e.Variable == "" {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// or returns a, or b if a is empty.
func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// A block that does not end, or that would change the place of what follows it, is refused
// when it is parsed.
func TestBlocksThatAreRefused(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("{{#if x}}", 11) + strings.Repeat("{{/if}}", 11)
	for src, want := range map[string]string{
		"a {{#if x}}": "without {{/if}} (line 1, column 3)", "{{#each x}}{{/if}}": `has "{{/if}}" where {{/each}} belongs`, "a{{/if}}": "no block opens",
		"{{else}}": "no block opens", "{{#if x}}{{else}}{{else}}{{/if}}": `has "{{else}}{{/if}}" where {{/if}} belongs`, deep: "too deep",
		"{{#if x}}a{{else if y}}b{{/if}}": "is not a variable", "{{#if}}a{{/if}}": "is not a variable", "{{#unless x}}a{{/unless}}": "is not a variable",
		"{{#each x as y}}a{{/each}}": "is not a variable", "{{" + strings.Repeat("a", 201) + "}}": "is not a variable",
	} {
		for _, source := range []template.Source{{Subject: src}, {HTML: src}, {Text: src}} {
			if _, err := template.Parse(source); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", src, err, want)
			}
		}
	}
	for _, src := range []string{
		`<p {{#if x}}a{{/if}}>`, `<p title="{{#if x}}a{{/if}}">`, `<p title={{#if x}}a{{/if}}>`, `<a href="{{#if x}}a{{/if}}">`, `<{{#if x}}b{{/if}}>`, `<{{#if x}}a{{/if}}b onclick=x>`,
		`<{{#if x}} {{/if}}b>`, `{{#if x}}<{{/if}}script>`, `</{{#if x}}p{{/if}}>`, `<!{{#if x}}--{{/if}}>`, `<!-- -{{#if x}}y{{/if}}-> -->`, `<!--[if mso]>{{#if x}}a{{/if}}<![endif]-->`,
		`<style>{{#if x}}a{{/if}}</style>`, `<title>{{#if x}}a{{/if}}</title>`, `<textarea>{{#each x}}a{{/each}}</textarea>`, `<script>{{#if x}}a{{/if}}</script>`,
		`{{#if x}}<style>{{/if}}p{}</style>`, `{{#if x}}<title>{{/if}}a`, `{{#if x}}<p title="{{/if}}">`, `<noscript>{{#if x}}a{{/if}}</noscript>`, `{{#if x}}<!--{{/if}}-->`,
	} {
		if _, err := template.Parse(template.Source{HTML: src}); err == nil {
			t.Errorf("%s is accepted", src)
		}
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
	const each = "{{#each x}}"
	lists := map[string]any{"x": make([]any, 100_000)}
	for i := range lists["x"].([]any) { //nolint:forcetypeassert // it was just made
		lists["x"].([]any)[i] = json.Number("1") //nolint:forcetypeassert // as above
	}
	for _, body := range []string{"", "a", "{{x.y.z}}", "{{y.z}}"} {
		began := time.Now()
		m, err := template.Parse(template.Source{Text: strings.Repeat(each, 5) + body + strings.Repeat("{{/each}}", 5)})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = m.Render(lists)
		if e := (*template.Error)(nil); !errors.As(err, &e) || e.Part != template.Text || time.Since(began) > 2*time.Second {
			t.Errorf("%q repeated: %v after %s", body, err, time.Since(began))
		}
	}
	long := strings.Repeat("a", 900_000)
	lists["u"], lists["s"], lists["n"] = "javascript:"+long, long+";", json.Number("1"+strings.Repeat("0", 900_000))
	for _, body := range []string{`<a href="{{u}}">`, `<a href="{{this.y}}` + long + `:">`, `<b style="color:{{s}}">`, "{{#if n}}{{/if}}"} {
		began := time.Now()
		m, err := template.Parse(template.Source{HTML: each + body + "{{/each}}"})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = m.Render(lists)
		if e := (*template.Error)(nil); !errors.As(err, &e) || time.Since(began) > 5*time.Second {
			t.Errorf("%.30q repeated: %v after %s", body, err, time.Since(began))
		}
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

func TestSample(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"text":                               `{}`,
		"{{a.b}} {{c}}":                      `{"a":{"b":"a.b"},"c":"c"}`,
		"{{#if a}}{{b}}{{else}}{{c}}{{/if}}": `{"a":true,"b":"b","c":"c"}`,
		"{{#if a}}{{a.b}}{{/if}}":            `{"a":{"b":"a.b"}}`,
		"{{#each l}}-{{/each}}":              `{"l":[true,true]}`,
		"{{#if o.l}}{{#each o.l}}{{n}}{{this.p.q}}{{else}}{{c}}{{/each}}{{/if}}": `{"c":"c","o":{"l":[{"n":"n","p":{"q":"p.q"}},{"n":"n","p":{"q":"p.q"}}]}}`,
		"{{#each tags}}{{#if this}}{{this}}{{c}}{{/if}}{{/each}}":                `{"c":"c","tags":["tags","tags"]}`,
		"{{#each a}}{{#each b}}{{x}}{{/each}}{{/each}}":                          `{"a":[{"b":[{"x":"x"}]},{"b":[{"x":"x"}]}]}`,
		"{{#each a}}{{#each this}}{{this}}{{/each}}{{/each}}":                    `{"a":[["a"],["a"]]}`,
		`<a href="{{u}}">`: `{"u":"u"}`,
	} {
		m, err := template.Parse(template.Source{HTML: src})
		if err != nil {
			t.Fatal(err)
		}
		data := m.Sample()
		got, err := json.Marshal(data)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, want %s: %v", src, got, want, err)
		}
		if _, missing, err := m.Render(data); err != nil || missing != nil {
			t.Errorf("%s: missing %v, %v", src, missing, err)
		}
	}
}
