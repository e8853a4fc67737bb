//go:build clients

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// sendVaried sends n varied messages, one from an inbox for every two through
// POST /v1/emails, and returns the number of recipients.
func sendVaried(t *testing.T, s *served, n int) (recipients int) {
	t.Helper()
	_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"varied","display_name":"Büro, \"Nord\""}`)
	_, template := s.call(t, s.key, http.MethodPost, "/v1/templates",
		`{"name":"t","subject":"Bestellung {{nr}}","html":"<h1>Grüße, {{name}}</h1>","text":"Grüße, {{name}}\n"}`)
	for i := range n {
		v := variety{rand.New(rand.NewPCG(9, uint64(i)))}
		to := v.recipients(i)
		recipients += len(to)
		path, body := "/v1/emails", v.email(i, to, fmt.Sprint(template["id"]))
		if i%3 == 0 {
			path, body = fmt.Sprintf("/v1/inboxes/%s/messages", inbox["id"]), v.message(to, i)
		}
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if status, out := s.call(t, s.key, http.MethodPost, path, string(b)); status != http.StatusCreated {
			t.Fatalf("message %d: %d %v\n%.2000s", i, status, out, b)
		}
	}
	return recipients
}

// isMarketing reports whether message i has the category marketing.
func isMarketing(i int) bool { return i%3 == 1 }

// variety draws random parts of messages.
type variety struct{ *rand.Rand }

func (v variety) of(choices ...string) string { return choices[v.IntN(len(choices))] }

func (v variety) subject(i int) string {
	return v.of(
		"plain", "Grüße aus Köln", "注文の確認 "+strings.Repeat("長い件名", 40), "👩‍👩‍👧 "+strings.Repeat("word ", 100)+"end",
		strings.Repeat("x", 990), "two  spaces, three   spaces ", "=?utf-8?q?not_encoded?=", `"quoted" <angle> (comment)`, ":", " . ",
	) + fmt.Sprintf(" %d", i)
}

func (v variety) text() string {
	return v.of(
		"Hello.\n", "no line end", "Grüße,\r\nwir schreiben Ihnen.\r\n", strings.Repeat("one long line ", 700)+"\n",
		strings.Repeat("ä", 3000), "trailing spaces   \nand tabs\t\t\n \n\n\n\n", ".\n..\n.leading dots\n. x\n", "From the start\n>From quoted\n",
		"漢字\n"+strings.Repeat("あ", 400)+"\n", strings.Repeat("short\n", 500), "a\rb\nc\r\nd\n", "\n\n\nblank first", "= equals =3D \x7f\n-- \nsig\n",
	)
}

func (v variety) html() string {
	return v.of(
		"<p>Hello</p>", "<p>"+strings.Repeat("<b>ü</b> ", 500)+"</p>", "<pre>  two\n\n\n  lines  \n</pre>",
		`<a href="https://example.com/?a=1&b=`+strings.Repeat("long", 300)+`">link</a>`,
	)
}

func (v variety) attachments(kind string) []map[string]any {
	var all []map[string]any
	for n := range v.IntN(3) {
		content := make([]byte, v.IntN(20_000))
		for i := range content {
			content[i] = byte(v.IntN(256)) //nolint:gosec // it fits
		}
		all = append(all, map[string]any{
			"filename": fmt.Sprintf("%d %s", n, v.of("data.bin", "Überblick.pdf", "請求書.pdf", strings.Repeat("long ", 30)+".txt", `a"b;c.csv`)),
			kind:       v.of("application/octet-stream", "text/plain; charset=utf-8", "application/pdf"),
			"content":  base64.StdEncoding.EncodeToString(content),
		})
	}
	return all
}

// recipients are of one domain: some people with names in many scripts, many
// people, or one whose address is international.
func (v variety) recipients(i int) []string {
	switch v.IntN(6) {
	case 0:
		return []string{fmt.Sprintf("grüße-%d@outside.example", i)}
	case 1:
		return []string{fmt.Sprintf("bob%d@bücher.example", i)}
	case 2:
		var many []string
		for n := range 50 {
			many = append(many, fmt.Sprintf("person-%d-%d@outside.example", i, n))
		}
		return many
	}
	return []string{fmt.Sprintf("bob%d@outside.example", i), fmt.Sprintf("eve%d@outside.example", i)}
}

// email is the body of POST /v1/emails.
func (v variety) email(i int, to []string, template string) map[string]any {
	from := v.of("shop@agents.example.com", "Shop <shop@agents.example.com>", `"Müller, Bücher" <shop@agents.example.com>`,
		"株式会社 <shop@agents.example.com>", "grüße@agents.example.com")
	m := map[string]any{"from": from, "to": to, "subject": v.subject(i), "category": "transactional"}
	if isMarketing(i) {
		m["category"] = "marketing"
	}
	switch v.IntN(4) {
	case 0:
		m["text"] = v.text()
	case 1:
		m["html"] = v.html()
	case 2:
		m["text"], m["html"] = v.text(), v.html()
	case 3:
		m["template"], m["data"] = template, map[string]any{"nr": i, "name": v.of("Ann", "Zoë", strings.Repeat("Jürgen ", 100), "名前")}
		m["subject"] = "Nr. {{nr}} " + strings.Map(func(r rune) rune {
			if r == '{' || r == '}' {
				return -1
			}
			return r
		}, v.of("plain", "für {{name}}", "注文"))
	}
	if files := v.attachments("contentType"); files != nil {
		m["attachments"] = files
	}
	if v.IntN(3) == 0 {
		m["replyTo"] = "Antwort für Sie <reply@agents.example.com>"
	}
	return m
}

// message is the body of POST /v1/inboxes/{inbox_id}/messages.
func (v variety) message(recipients []string, i int) map[string]any {
	var to []any
	for _, email := range recipients {
		to = append(to, map[string]any{"email": email, "name": v.of("", "Bob", "Søren Ærø", "O'Neil, Pat", "李小龍")})
	}
	m := map[string]any{"to": to, "subject": v.subject(i), "text": v.text()}
	if v.IntN(2) == 0 {
		m["html"] = v.html()
	}
	if files := v.attachments("content_type"); files != nil {
		m["attachments"] = files
	}
	if v.IntN(3) == 0 {
		m["headers"] = map[string]any{"X-Note": v.of("plain", "größer", strings.Repeat("folded ", 120)+"end"), "List-Id": "<list.agents.example.com>"}
	}
	return m
}
