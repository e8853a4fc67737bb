package labelled

import (
	"crypto/sha256"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// entries reads the records of testdata/languages; its README.md has the format.
func entries(dir string) (all []entry, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(file)
		for i, record := range strings.Split("\n"+string(text), "\n== ")[1:] {
			r, err := parseLanguage(record)
			if err != nil {
				return nil, fmt.Errorf("%s, record %d: %w", name, i+1, err)
			}
			r.id = fmt.Sprintf("%s/%s/%d", name, r.name, i+1)
			sum := sha256.Sum256([]byte(r.id))
			r.heldOut = sum[0]%3 == 0 && !strings.HasPrefix(name, "late-")
			all = append(all, r)
		}
	}
	return all, nil
}

func languages(dir string) (all []Message, err error) {
	list, err := entries(dir)
	for i := range list {
		all = append(all, list[i].message())
	}
	return all, err
}

// entry is one record of testdata/languages.
type entry struct {
	id                          string
	heldOut                     bool
	name, layout, subject, body string
	code, also, link            string
}

func parseLanguage(record string) (r entry, err error) {
	header, body, _ := strings.Cut(record, "\n\n")
	lines := strings.Split(header, "\n")
	parts := strings.Split(lines[0], " | ")
	r = entry{name: parts[0], layout: "text", body: strings.TrimSpace(body)}
	none := false
	for _, label := range parts[1:] {
		kind, value, _ := strings.Cut(label, " ")
		switch kind {
		case "code":
			r.code, r.also, _ = strings.Cut(value, " also ")
		case "link":
			r.link = value
		case "none":
			none = true
		case "text", "html", "cell", "spaced", "digits", "images", "button":
			r.layout = kind
		default:
			return r, fmt.Errorf("%s: unknown label %q", r.name, label)
		}
	}
	if none == (r.code != "" || r.link != "") {
		return r, fmt.Errorf("%s: neither a label nor none, or both", r.name)
	}
	for _, line := range lines[1:] {
		if value, ok := strings.CutPrefix(line, "Subject: "); ok {
			r.subject = value
		}
	}
	flat := Plain(r.subject + r.body)
	if r.code != "" && !strings.Contains(flat, Plain(r.code)) || r.link != "" && !strings.Contains(body, r.link) || r.subject == "" {
		return r, fmt.Errorf("%s: no subject, or a label does not occur in the message", r.name)
	}
	return r, nil
}

// message returns the record as a message, with its text or its HTML.
func (r *entry) message() Message {
	m := Message{ID: r.id, Author: "project", Subject: r.subject, OTP: r.code, HeldOut: r.heldOut}
	file, _, _ := strings.Cut(r.id, ".")
	m.Lang, _, _ = strings.Cut(file, "-")
	m.Text, m.HTML = r.build()
	if r.code != "" {
		m.Codes = []string{r.code}
	}
	if r.also != "" {
		m.Accept = map[string][]string{r.code: {r.also}}
	}
	if r.link != "" {
		m.Actions = []string{r.link}
	}
	return m
}

// Reshape returns the messages of testdata/languages that have a code and are
// not held out, with another code in its place: shape(i) for message i.
func Reshape(root string, shape func(i int) string) (all []Message, err error) {
	list, err := entries(filepath.Join(root, "internal", "mail", "extract", "testdata", "languages"))
	for i := range list {
		r := list[i]
		if r.heldOut || r.code == "" || !strings.Contains(r.body, r.code) || r.layout == "images" || r.layout == "digits" {
			continue
		}
		code := shape(i)
		r.subject, r.body = strings.ReplaceAll(r.subject, r.code, code), strings.ReplaceAll(r.body, r.code, code)
		r.code, r.also = code, ""
		if _, digits, ok := strings.Cut(code, "-"); ok {
			r.also = digits // of "AC-44170"
		}
		all = append(all, r.message())
	}
	return all, err
}

var anchor = regexp.MustCompile(`\[?\[([^\]]*)\]\((https?://[^)]*)\)\]?`)

// build returns the text and the HTML of a message, one of them empty.
func (r *entry) build() (text, page string) {
	if r.layout == "text" {
		return anchor.ReplaceAllString(r.body, "$1: $2"), ""
	}
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html><html><body style="font-family:Arial,sans-serif"><table width="600"><tr><td>`)
	for _, paragraph := range strings.Split(r.body, "\n\n") {
		if r.code != "" && Plain(paragraph) == Plain(r.code) {
			b.WriteString(codeBlock(r.layout, paragraph))
			continue
		}
		var lines []string
		for _, line := range strings.Split(paragraph, "\n") {
			lines = append(lines, anchors(line))
		}
		fmt.Fprintf(&b, "<p>%s</p>\n", strings.Join(lines, "<br>"))
	}
	b.WriteString("</td></tr></table></body></html>")
	return "", b.String()
}

// anchors escapes a line and turns its links into anchors.
func anchors(line string) string {
	var b strings.Builder
	at := 0
	for _, m := range anchor.FindAllStringSubmatchIndex(line, -1) {
		b.WriteString(html.EscapeString(line[at:m[0]]))
		style := ""
		if strings.HasPrefix(line[m[0]:], "[[") {
			style = ` style="background:#2457d6;color:#fff;padding:12px 24px;border-radius:4px;display:inline-block"`
		}
		fmt.Fprintf(&b, `<a href="%s"%s>%s</a>`, html.EscapeString(line[m[4]:m[5]]), style, html.EscapeString(line[m[2]:m[3]]))
		at = m[1]
	}
	b.WriteString(html.EscapeString(line[at:]))
	return b.String()
}

// codeBlock formats a code in one of the ways that services use.
func codeBlock(layout, code string) string {
	var b strings.Builder
	switch layout {
	case "spaced":
		fmt.Fprintf(&b, `<p style="font-size:28px;letter-spacing:.4em">%s</p>`, html.EscapeString(code))
	case "digits":
		b.WriteString("<table><tr>")
		for _, c := range code {
			fmt.Fprintf(&b, `<td style="border:1px solid #ccc;padding:8px">%c</td>`, c)
		}
		b.WriteString("</tr></table>")
	case "images":
		for _, c := range code {
			fmt.Fprintf(&b, `<img src="cid:d%c" alt="%c" width="20" height="30">`, c, c)
		}
	default:
		fmt.Fprintf(&b, `<table align="center"><tr><td style="font-size:32px;font-weight:bold">%s</td></tr></table>`, html.EscapeString(code))
	}
	return b.String() + "\n"
}

// codeCases reads the messages of testdata/codes. A message begins with
// "## name", followed by lines with the expected results, an empty line and the
// body, which is HTML if it begins with "<".
func codeCases(dir string) (all []Message, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		lang, _, _ := strings.Cut(name, "-")
		for block := range strings.SplitSeq("\n"+string(text), "\n## ") {
			if strings.TrimSpace(block) == "" {
				continue
			}
			m, err := parseCase(block)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			m.ID, m.Lang, m.Author = name+"/"+m.ID, lang, "cases"
			all = append(all, m)
		}
	}
	return all, nil
}

func parseCase(block string) (m Message, err error) {
	head, body, ok := strings.Cut(block, "\n\n")
	if !ok {
		return m, fmt.Errorf("no body: %q", block)
	}
	lines := strings.Split(head, "\n")
	m.ID = lines[0]
	unsure := false
	for _, line := range lines[1:] {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "subject":
			m.Subject = value
		case "codes":
			if value != "none" {
				m.Codes = strings.Split(value, ", ")
			}
		case "otp":
			unsure = true
		case "action":
			m.Actions = []string{value}
		default:
			return m, fmt.Errorf("%s: what is %q?", m.ID, line)
		}
	}
	if len(m.Codes) > 0 && !unsure {
		m.OTP = m.Codes[0]
	}
	if body = strings.TrimRight(body, "\n"); strings.HasPrefix(body, "<") {
		m.HTML = body
	} else {
		m.Text = body
	}
	return m, nil
}
