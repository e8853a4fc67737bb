package mime

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
)

func TestReadHeader(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, mail string
		fields     []string
		body       string
	}{
		{"fields with their line breaks", "A: 1\r\nb : 2\r\n\t3\r\n\r\nbody\r\n", []string{"A: 1\r\n", "b : 2\r\n\t3\r\n"}, "body\r\n"},
		{"no body", "A: 1\r\n", []string{"A: 1\r\n"}, ""},
		{"empty lines in front", "\r\n\r\nA: 1\r\n\r\nbody", []string{"A: 1\r\n"}, "body"},
		{"lines that are not fields are left out", "From ann\r\nTo: 1\r\nno field\r\nX-B: 2\r\nSubject: 3\r\n\r\n", []string{"To: 1\r\n", "X-B: 2\r\n", "Subject: 3\r\n"}, ""},
		{"no empty line", "To: 1\r\nX-A: 2\r\nHello Ann,\r\nyour code\r\n\r\nis 1.\r\n", []string{"To: 1\r\n", "X-A: 2\r\n"}, "Hello Ann,\r\nyour code\r\n\r\nis 1.\r\n"},
		{"no empty line before words that look like fields", "To: 1\r\nCode: 2\r\nHello\r\nTo: 3\r\nBye: 4\r\n", []string{"To: 1\r\n"}, "Code: 2\r\nHello\r\nTo: 3\r\nBye: 4\r\n"},
		{"no empty line before a quoted header", "To: 1\r\nYes, we do.\r\nTo: 2\r\nCc: 3\r\n\r\nDo you?\r\n", []string{"To: 1\r\n"}, "Yes, we do.\r\nTo: 2\r\nCc: 3\r\n\r\nDo you?\r\n"},
		{"no empty line before a long body", "To: 1\r\n" + strings.Repeat("Hello Ann\r\n", 200<<10), []string{"To: 1\r\n"}, strings.Repeat("Hello Ann\r\n", 200<<10)},
		{"no empty line before a long line", "To: 1\r\nHello" + strings.Repeat(" ", 200<<10) + "\r\nAnn", []string{"To: 1\r\n"}, "Hello" + strings.Repeat(" ", 200<<10) + "\r\nAnn"},
		{"no header at all", "just text, and more\r\n", nil, "just text, and more\r\n"},
		{"nothing", "", nil, ""},
		{"a body longer than the buffer", "A: 1\r\n\r\n" + strings.Repeat("x", 200<<10), []string{"A: 1\r\n"}, strings.Repeat("x", 200<<10)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fields, body, err := ReadHeader(strings.NewReader(tt.mail), mail.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range fields {
				got = append(got, string(f.Raw))
			}
			rest, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.fields, got); diff != "" {
				t.Error(diff)
			}
			if string(rest) != tt.body {
				t.Errorf("body of %d bytes, want %d", len(rest), len(tt.body))
			}
		})
	}
}

// TestReadHeaderAgreesWithParse checks that sender authentication uses the same
// From that is shown.
func TestReadHeaderAgreesWithParse(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"From: a@x.example\r\nFrom: b@y.example\r\n\r\n",
		"From: bob\r\nFrom: b@y.example\r\n\r\n",
		"From : =?utf-8?q?x=40z.example?= <a@x.example>, b@y.example\r\n\r\n",
		"\r\nFrom: team: a@x.example, b@y.example;\r\n\r\nFrom: c@z.example\r\n",
		"From: a@\xe1.example\r\nContent-Type: text/plain; charset=koi8-r\r\n\r\n",
		"Subject: x\r\n\r\nFrom: c@z.example\r\n\r\n",
	} {
		m, err := Parse(strings.NewReader(raw), mail.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		fields, _, err := ReadHeader(strings.NewReader(raw), mail.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		var first *mail.Address
		for _, f := range fields {
			if list, _ := f.Addresses(1); first == nil && f.Is("from") && len(list) > 0 {
				first = &list[0]
			}
		}
		if diff := cmp.Diff(m.From, first); diff != "" {
			t.Errorf("%q: %s", raw, diff)
		}
	}
}
