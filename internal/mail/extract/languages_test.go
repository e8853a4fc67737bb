package extract

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
)

var showMisses = flag.Bool("misses", false, "print each message of testdata/languages that is read wrong, except those held out")

var exportTo = flag.String("export", "", "write the messages of testdata/languages to this file, one JSON object per line")

// labelled is one record of testdata/languages; its README.md has the format.
type labelled struct {
	file, name string
	heldOut    bool
	layout     string
	subject    string
	body       string
	code       string // empty: there is none
	also       string // another accepted spelling
	link       string // empty: there is none
}

// TestLanguages scores Extract on testdata/languages. The thresholds are what
// the rules reach today; a change may only raise them.
func TestLanguages(t *testing.T) {
	t.Parallel()
	var open, held score
	for _, r := range readLabelled(t) {
		s := &open
		if r.heldOut {
			s = &held
		}
		text, page := r.build(t)
		if misses := s.add(r, CodesAndLinks(r.subject, text, page)); *showMisses && !r.heldOut {
			for _, miss := range misses {
				t.Logf("%s/%s: %s", r.file, r.name, miss)
			}
		}
	}
	if *exportTo != "" {
		export(t, *exportTo)
	}
	t.Log("open:     ", open)
	t.Log("held out: ", held)
	if open.messages < 615 || held.messages < 225 {
		t.Errorf("%d and %d messages: some are missing", open.messages, held.messages)
	}
	for _, s := range []struct {
		name string
		score
		otp, link float64
		wrong     int
	}{
		{"open", open, 0.98, 0.995, 0},
		{"held out", held, 0.96, 0.99, 0},
	} {
		if got := share(s.otpRight, s.otpWanted); got < s.otp {
			t.Errorf("%s: %.3f of the codes found, want %.3f", s.name, got, s.otp)
		}
		if got := share(s.linkRight, s.messages); got < s.link {
			t.Errorf("%s: %.3f of the links right, want %.3f", s.name, got, s.link)
		}
		if s.otpWrong > s.wrong {
			t.Errorf("%s: %d wrong codes, want at most %d", s.name, s.otpWrong, s.wrong)
		}
	}
}

// export writes the messages for bench/extractors.
func export(t *testing.T, file string) {
	t.Helper()
	var out bytes.Buffer
	for _, r := range readLabelled(t) {
		text, page := r.build(t)
		codes := []string{}
		if r.code != "" {
			codes = append(codes, r.code)
		}
		if r.also != "" {
			codes = append(codes, r.also)
		}
		if err := json.NewEncoder(&out).Encode(map[string]any{
			"file": r.file, "name": r.name, "held_out": r.heldOut, "codes": codes,
			"text": r.subject + "\n\n" + cmp.Or(text, htmltext.Text(page)), "otp": CodesAndLinks(r.subject, text, page).OTP,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestShapes replaces the code of each open message with codes of other shapes.
// The share of codes found must stay what the rules reach today, and no other
// number may become the OTP.
func TestShapes(t *testing.T) {
	t.Parallel()
	all := readLabelled(t)
	for _, shape := range []struct {
		code  string
		found float64
	}{
		{"2931", 0.94}, {"29317", 0.98}, {"4829131", 0.98}, {"482-913", 0.98}, {"48 29 13", 0.98}, {"48-2913", 0.91}, {"H4K9TZ", 0.98},
		{"AC-44170", 0.9}, {"Rk7mPx", 0.95}, {"vT9q-Lr2x", 0.95}, {"T4-9ZL-P2", 0.95}, {"7c9x2b", 0.83}, {"KXQ-WRT", 0.97}, {"2027", 0.77},
		{"7K2 9QX", 0.95}, {"QHWKTB", 0.92},
	} {
		var s score
		for _, r := range all {
			if r.heldOut || r.code == "" || !strings.Contains(r.body, r.code) || r.layout == "images" || r.layout == "digits" {
				continue
			}
			r.subject, r.body = strings.ReplaceAll(r.subject, r.code, shape.code), strings.ReplaceAll(r.body, r.code, shape.code)
			r.code, r.also = shape.code, ""
			if _, digits, ok := strings.Cut(shape.code, "-"); ok {
				r.also = digits // of "AC-44170"
			}
			text, page := r.build(t)
			s.add(r, CodesAndLinks(r.subject, text, page))
		}
		if s.otpWanted < 200 || share(s.codesRight, s.otpWanted) < shape.found || s.otpWrong > 0 {
			t.Errorf("%s: %.3f of %d found, want %.3f; %d wrong", shape.code, share(s.codesRight, s.otpWanted), s.otpWanted, shape.found, s.otpWrong)
		}
	}
}

// score counts what Extract got right.
type score struct {
	messages, exact                int // exact: the codes found are the codes wanted
	codesRight, codesFound         int
	otpWanted, otpRight, otpWrong  int
	linkRight, linkWanted, linkHit int
}

func share(part, whole int) float64 { return float64(part) / float64(max(whole, 1)) }

func (s score) String() string {
	return fmt.Sprintf("%d messages: codes P %.3f R %.3f exact %.3f; otp right %d of %d, wrong %d; links right %.3f, action link %d of %d",
		s.messages, share(s.codesRight, s.codesFound), share(s.codesRight, s.otpWanted), share(s.exact, s.messages),
		s.otpRight, s.otpWanted, s.otpWrong, share(s.linkRight, s.messages), s.linkHit, s.linkWanted)
}

// add counts one message and returns what was read wrong.
func (s *score) add(r labelled, found mail.Extraction) []string {
	var misses []string
	miss := func(format string, args ...any) { misses = append(misses, fmt.Sprintf(format, args...)) }

	s.messages++
	right := 0
	for _, code := range found.Codes {
		if r.accepts(code) {
			right = 1
		} else {
			miss("false code %q", code)
		}
	}
	s.codesFound += len(found.Codes)
	s.codesRight += right
	wanted := 0
	if r.code != "" {
		wanted = 1
		s.otpWanted++
		if right == 0 {
			miss("code %q not found", r.code)
		}
	}
	if right == wanted && len(found.Codes) == wanted {
		s.exact++
	}
	switch otp := found.OTP; {
	case otp != nil && r.accepts(*otp):
		s.otpRight++
	case otp != nil:
		s.otpWrong++
		miss("wrong otp %q", *otp)
	case wanted == 1 && right == 1:
		miss("no otp, though %q is found", r.code)
	}

	got := ""
	if found.ActionLink != nil {
		got = *found.ActionLink
	}
	if r.link != "" {
		s.linkWanted++
		if got == r.link {
			s.linkHit++
		}
	}
	if got == r.link {
		s.linkRight++
	} else {
		miss("action link %q, want %q", got, r.link)
	}
	return misses
}

// accepts reports whether a code is the wanted one, whatever its spaces, dashes
// and case.
func (r labelled) accepts(code string) bool {
	return r.code != "" && slices.Contains([]string{plainCode(r.code), plainCode(cmp.Or(r.also, r.code))}, plainCode(code))
}

func plainCode(code string) string {
	var b strings.Builder
	for _, c := range norm.NFKC.String(code) {
		if unicode.Is(unicode.Nd, c) {
			b.WriteRune('0' + digitValue(c))
		} else if c != ' ' && c != '-' {
			b.WriteRune(c)
		}
	}
	return strings.ToUpper(b.String())
}

// The documents say how many languages have words. zh-TW.txt of testdata is Chinese too.
func TestTheNumberOfLanguagesIsTrue(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("words/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(len(files)-1, " languages") // general.txt has the words of all
	for _, page := range []string{"extract.go", "../../../README.md", "../../../CHANGELOG.md", "../../../docs/benchmark.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}

// readLabelled reads testdata/languages and checks its format.
func readLabelled(t *testing.T) []labelled {
	t.Helper()
	files, err := filepath.Glob("testdata/languages/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []labelled
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, record := range strings.Split("\n"+string(b), "\n== ")[1:] {
			r := parseLabelled(t, filepath.Base(file), record)
			sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", r.file, r.name, i+1))
			r.heldOut = sum[0]%3 == 0 && !strings.HasPrefix(r.file, "late-")
			all = append(all, r)
		}
	}
	return all
}

func parseLabelled(t *testing.T, file, record string) labelled {
	t.Helper()
	header, body, _ := strings.Cut(record, "\n\n")
	lines := strings.Split(header, "\n")
	labels := strings.Split(lines[0], " | ")
	r := labelled{file: file, name: labels[0], layout: "text", body: strings.TrimSpace(body)}
	none := false
	for _, label := range labels[1:] {
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
			t.Errorf("%s/%s: unknown label %q", file, r.name, label)
		}
	}
	if none == (r.code != "" || r.link != "") {
		t.Errorf("%s/%s: neither a label nor none, or both", file, r.name)
	}
	for _, line := range lines[1:] {
		if value, ok := strings.CutPrefix(line, "Subject: "); ok {
			r.subject = value
		}
	}
	flat := plainCode(r.subject + r.body)
	if r.code != "" && !strings.Contains(flat, plainCode(r.code)) || r.link != "" && !strings.Contains(body, r.link) || r.subject == "" {
		t.Errorf("%s/%s: no subject, or a label does not occur in the message", file, r.name)
	}
	return r
}

var anchor = regexp.MustCompile(`\[?\[([^\]]*)\]\((https?://[^)]*)\)\]?`)

// build returns the text and the HTML of a message, one of them empty.
func (r labelled) build(t *testing.T) (text, page string) {
	t.Helper()
	if r.layout == "text" {
		return anchor.ReplaceAllString(r.body, "$1: $2"), ""
	}
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html><html><body style="font-family:Arial,sans-serif"><table width="600"><tr><td>`)
	for _, paragraph := range strings.Split(r.body, "\n\n") {
		if r.code != "" && plainCode(paragraph) == plainCode(r.code) {
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
