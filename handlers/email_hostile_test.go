package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

// jsonOf returns a value as JSON.
func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

// templatePayloads is code in other template languages.
var templatePayloads = []string{
	"{{constructor}}", "{{.}}", "{{range .}}x{{end}}", "{{{x}}}", "${7*7}", "<%= 7*7 %>", "#{7*7}", "{{a{{b}}}}", "{{7*7}}", "{{if x}}",
	"{{#each x}}", "{{> x}}", "{{! x}}", "{{&x}}", "{{^x}}", "{{=<% %>=}}", "{{x | upper}}", "{{x()}}", "{{a[0]}}", "{{../x}}", "{{{{x}}}}",
	"{{{x}}", "{{x}", "{{x", "{{", "{{}}", "{{__proto__}}", "{{constructor.prototype}}", "{{call .x}}", "{{printf \"%v\" .}}", "{%if 1%}x{%endif%}",
	"*{7*7}", "@(7*7)", "[[${7*7}]]", "#set($x=7)$x", "<#assign x=7>${x}", "$(id)", "<?php echo 7 ?>", "{{$x}}", "{{@index}}",
}

// Row T1 over the API: code in other template languages is plain text or
// refused, and values are never parsed as templates.
func TestTemplatePayloadsOfEmails(t *testing.T) {
	t.Parallel()
	s := newServer(t, storetest.Open(t, storetest.SQLite), storetest.NewClock(begin))
	if len(templatePayloads) != 40 {
		t.Fatalf("%d payloads", len(templatePayloads))
	}
	send := func(text, data string) response {
		return s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":"ann@out.example","subject":"s","text":`+text+`,"data":`+data+`}`)
	}
	textOf := func(res response) (text string) {
		e, err := s.store.Email(t.Context(), s.account, nil, res.str(t, "id"))
		must(t, err)
		return e.Content.Body.V.Text
	}
	for _, payload := range templatePayloads {
		res := send(jsonOf(t, payload), `{"x":"{{secret}}","secret":"s3cret"}`)
		switch {
		case res.status == http.StatusBadRequest && (res.str(t, "error.param") == "text" || strings.HasPrefix(res.str(t, "error.param"), "data.")):
		case payload == "{{{x}}}" && res.status == http.StatusCreated:
			if got := textOf(res); got != "{{secret}}" {
				t.Errorf("%s became %q", payload, got)
			}
		case res.status != http.StatusCreated, textOf(res) != payload:
			t.Errorf("%s: %d %s", payload, res.status, res.body)
		}
		value := send(`"{{x}}"`, jsonOf(t, map[string]string{"x": payload, "secret": "s3cret"})).want(t, http.StatusCreated)
		if got := textOf(value); got != payload {
			t.Errorf("as a value %s became %q", payload, got)
		}
	}
}

// Row T2 over the API: values are escaped in HTML, literal in text, refused in
// a subject if they contain line breaks, and harmless in URLs.
func TestHostileValuesOfEmails(t *testing.T) {
	t.Parallel()
	s := newServer(t, storetest.Open(t, storetest.SQLite), storetest.NewClock(begin))
	values := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`, `JaVaScRiPt:alert(1)`,
		"java\tscript:alert(1)", `data:text/html,<script>1</script>`, `vbscript:x`, `</a><svg onload=alert(1)>`, `&lt;b&gt;`, "a\r\nBcc: x@y.example",
		"a\nb", `<!--`, `]]>`, `https://example.com/?a=1&b="<x>"`,
	}
	cases := 0
	for _, value := range values {
		data := jsonOf(t, map[string]string{"x": value})
		send := func(subject, part string) response {
			cases++
			return s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":"ann@out.example","subject":"`+subject+`",`+part+`,"data":`+data+`}`)
		}
		said := func(res response) (html, text string) {
			e, err := s.store.Email(t.Context(), s.account, nil, res.want(t, http.StatusCreated).str(t, "id"))
			must(t, err)
			return e.Content.Body.V.HTML, e.Content.Body.V.Text
		}
		if html, _ := said(send("s", `"html":"<p>{{x}}</p>"`)); strings.Count(html, "<") != 2 || strings.Count(html, ">") != 2 {
			t.Errorf("%q in html: %s", value, html)
		}
		if _, text := said(send("s", `"text":"{{x}}"`)); text != value {
			t.Errorf("%q in a text: %q", value, text)
		}
		html, _ := said(send("s", `"html":"<a href=\"{{x}}\">x</a>"`))
		if low := strings.ToLower(html); strings.Count(html, `"`) != 2 || strings.Contains(low, "script:") || strings.Contains(low, "data:text") {
			t.Errorf("%q as a link: %s", value, html)
		}
		res := send("{{x}}", `"text":"t"`)
		if strings.ContainsAny(value, "\r\n\t") {
			res.wantError(t, http.StatusBadRequest, "invalid_request data.x")
		} else if res.want(t, http.StatusCreated).str(t, "subject") != value {
			t.Errorf("%q as a subject: %s", value, res.body)
		}
	}
	if cases != 60 {
		t.Errorf("%d cases, want 60", cases)
	}
}

// Row T3 over the API: a template that would become too long is refused early,
// also in a batch of a hundred recipients.
func TestLargeTemplatesOfEmails(t *testing.T) {
	t.Parallel()
	s := newServer(t, storetest.Open(t, storetest.SQLite), storetest.NewClock(begin))
	const uses = 1000
	html := jsonOf(t, strings.Repeat(strings.Repeat("a", 990)+"{{x}}", uses))
	data := `{"x":"` + strings.Repeat("<", 100_000) + `"}`
	began := time.Now()
	s.do(t, http.MethodPost, "/v1/emails", `{"from":"`+sender+`","to":"a@b.example","subject":"s","html":`+html+`,"data":`+data+`}`).
		wantError(t, http.StatusBadRequest, "invalid_request html")
	s.do(t, http.MethodPost, "/v1/emails/batch", `{"from":"`+sender+`","subject":"s","html":`+html+`,"templateData":`+data+
		`,"recipients":`+list(100, `{"to":"a%d@b.example"}`)+`}`).wantError(t, http.StatusBadRequest, "invalid_request html")
	t.Logf("both refused after %s", time.Since(began))

	many := fmt.Sprintf(`{"from":%q,"subject":"s","text":%s,"recipients":%s}`, sender, jsonOf(t, strings.Repeat("x", 200_000)),
		list(100, `{"to":"a%d@b.example"}`))
	s.do(t, http.MethodPost, "/v1/emails/batch", many).wantError(t, http.StatusBadRequest, "invalid_request recipients")
}
