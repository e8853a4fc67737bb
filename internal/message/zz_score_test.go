package message

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

const zzCorpus = "/work/shared/corpus/"

func zzLines(t *testing.T, name string, each func([]byte)) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		each(sc.Bytes())
	}
}

var zzStrip = regexp.MustCompile(`[\s-]`)

func zzNorm(s string) string {
	s = norm.NFKC.String(s)
	s = strings.NewReplacer("\u200b", "", "\u00ad", "").Replace(s)
	s = foldCodes(s)
	s = zzStrip.ReplaceAllString(s, "")
	return strings.ToUpper(s)
}

func TestZZScoreCodes(t *testing.T) {
	var tp, fp, fn, exact, n, otpRight, otpWrong, otpNone, linkOK, linkN, linkFalse int
	zzLines(t, zzCorpus+"codes.jsonl", func(b []byte) {
		var r struct {
			ID       string
			Lang     string
			Expected struct {
				Codes  []string
				Accept map[string][]string
				Links  []string
			}
			Raw string `json:"raw_b64"`
		}
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		raw, _ := base64.StdEncoding.DecodeString(r.Raw)
		m, err := Parse(bytes.NewReader(raw), DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		x := m.Extract(DefaultLimits())
		n++
		left := map[string]bool{}
		acc := map[string]string{}
		for _, c := range r.Expected.Codes {
			left[zzNorm(c)] = true
			acc[zzNorm(c)] = zzNorm(c)
			for _, a := range r.Expected.Accept[c] {
				acc[zzNorm(a)] = zzNorm(c)
			}
		}
		bad := false
		for _, c := range x.Codes {
			k, ok := acc[zzNorm(c)]
			if ok && left[k] {
				delete(left, k)
				tp++
			} else if !ok {
				fp++
				bad = true
			}
		}
		fn += len(left)
		if len(left) > 0 {
			bad = true
		}
		if !bad {
			exact++
		} else {
			t.Logf("%s %s: got %v want %v", r.ID, r.Lang, x.Codes, r.Expected.Codes)
		}
		if len(r.Expected.Codes) == 1 {
			switch {
			case x.OTP == nil:
				otpNone++
				t.Logf("%s: no otp, want %v", r.ID, r.Expected.Codes)
			case acc[zzNorm(*x.OTP)] != "":
				otpRight++
			default:
				otpWrong++
			}
		} else if x.OTP != nil && acc[zzNorm(*x.OTP)] == "" {
			otpWrong++
			t.Logf("%s: otp %s", r.ID, *x.OTP)
		}
		if len(r.Expected.Links) > 0 {
			linkN++
			if x.ActionLink != nil && *x.ActionLink == r.Expected.Links[0] {
				linkOK++
			} else {
				t.Logf("%s: action %s want %v", r.ID, show(x), r.Expected.Links)
			}
		} else if x.ActionLink != nil {
			linkFalse++
			t.Logf("%s: false action %s", r.ID, *x.ActionLink)
		}
	})
	fmt.Printf("codes n=%d P=%.3f R=%.3f exact=%d tp=%d fp=%d fn=%d otp right=%d wrong=%d none=%d; link %d/%d false=%d\n", n, float64(tp)/float64(tp+fp), float64(tp)/float64(tp+fn), exact, tp, fp, fn, otpRight, otpWrong, otpNone, linkOK, linkN, linkFalse)
}

func zzFold(s string) string {
	return strings.Join(strings.Fields(norm.NFC.String(s)), " ")
}

func TestZZScoreMIME(t *testing.T) {
	ok, n := 0, 0
	zzLines(t, zzCorpus+"mime.jsonl", func(b []byte) {
		var r struct {
			ID, File string
			Expected map[string]any
		}
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(zzCorpus, r.File))
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(bytes.NewReader(raw), DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		n++
		text := m.Text
		if text == "" {
			text = HTMLVisibleText(m.HTML)
		}
		text = zzFold(text)
		var names []string
		for _, a := range m.Attachments {
			names = append(names, a.Filename)
		}
		good := true
		bad := func(k string, got, want any) {
			good = false
			t.Logf("%s %s %s: got %q want %q", r.ID, r.File, k, got, want)
		}
		for k, v := range r.Expected {
			want, _ := v.(string)
			want = zzFold(want)
			switch k {
			case "subject":
				if zzFold(m.Subject) != want {
					bad(k, m.Subject, want)
				}
			case "from":
				e := ""
				if m.From != nil {
					e = m.From.Email
				}
				if !strings.EqualFold(e, want) {
					bad(k, e, want)
				}
			case "from_name":
				e := ""
				if m.From != nil {
					e = m.From.Name
				}
				if zzFold(e) != want {
					bad(k, e, want)
				}
			case "text_starts":
				if !strings.HasPrefix(text, strings.TrimSpace(want)) {
					bad(k, text[:min(len(text), 100)], want)
				}
			case "text_ends":
				if !strings.HasSuffix(text, strings.TrimSpace(want)) {
					bad(k, text[max(0, len(text)-100):], want)
				}
			case "attachment_count":
				if float64(len(names)) != v.(float64) {
					bad(k, names, fmt.Sprint(v))
				}
			case "attachment_names":
				got := map[string]int{}
				for _, x := range names {
					got[zzFold(x)]++
				}
				for _, x := range v.([]any) {
					got[zzFold(x.(string))]--
				}
				delete(got, "")
				for _, c := range got {
					if c != 0 {
						bad(k, names, fmt.Sprint(v))
						break
					}
				}
			}
		}
		if good {
			ok++
		}
	})
	fmt.Printf("mime %d/%d\n", ok, n)
}

func TestZZScoreReplies(t *testing.T) {
	ok, n := 0, 0
	zzLines(t, zzCorpus+"replies.jsonl", func(b []byte) {
		var r struct {
			ID, File, Kind string
			Expected       struct{ Reply string }
		}
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(zzCorpus, r.File))
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if r.Kind == "eml" {
			m, err := Parse(bytes.NewReader(raw), DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			text = m.Text
			if text == "" {
				text = HTMLVisibleText(m.HTML)
			}
		}
		n++
		if got := ReplyText(text); zzFold(got) != zzFold(r.Expected.Reply) {
			t.Logf("%s %s:\n--- got\n%s\n--- want\n%s", r.ID, r.File, got, r.Expected.Reply)
		} else {
			ok++
		}
	})
	fmt.Printf("replies %d/%d\n", ok, n)
}
