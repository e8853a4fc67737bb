package mime

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
)

// TestParseTwice reads messages with repeated or missing fields: it is defined
// which field counts, and that field is shown (M6).
func TestParseTwice(t *testing.T) {
	t.Parallel()
	type seen struct {
		From    *mail.Address
		To, Cc  []mail.Address
		Subject string
		Text    string
		HTML    string
		ID      string
	}
	a, b := &mail.Address{Email: "a@x.example"}, &mail.Address{Email: "b@y.example"}
	tests := []struct {
		name, raw string
		want      seen
	}{
		{"two From fields: the first", "From: a@x.example\nFrom: b@y.example\n\nx", seen{From: a, Text: "x"}},
		{"two addresses in From: the first", "From: a@x.example, b@y.example\n\nx", seen{From: a, Text: "x"}},
		{"a From without an address before one that has it", "From: bob\nFrom: b@y.example\n\nx", seen{From: b, Text: "x"}},
		{"an empty From before one that is not", "From:\nFrom: b@y.example\n\nx", seen{From: b, Text: "x"}},
		{"a group in From: its first", "From: Team: a@x.example, b@y.example;\n\nx", seen{From: a, Text: "x"}},
		{"an empty group in From", "From: Team:;\n\nx", seen{Text: "x"}},
		{"no From", "Subject: s\n\nx", seen{Subject: "s", Text: "x"}},
		{"a Sender is not a From", "Sender: a@x.example\nReply-To: b@y.example\n\nx", seen{Text: "x"}},
		{"a name alone in From", "From: Bob\n\nx", seen{From: &mail.Address{Name: "Bob"}, Text: "x"}},
		{"an address in the name of From", "From: \"b@y.example\" <a@x.example>\n\nx", seen{From: &mail.Address{Name: "b@y.example", Email: "a@x.example"}, Text: "x"}},
		{"an encoded address before the real one", "From: =?utf-8?q?b=40y.example?= <a@x.example>\n\nx", seen{From: &mail.Address{Name: "b@y.example", Email: "a@x.example"}, Text: "x"}},
		{"two Subject fields: the first", "Subject: one\nSubject: two\n\nx", seen{Subject: "one", Text: "x"}},
		{"an empty Subject before one that is not", "Subject:\nSubject: two\n\nx", seen{Subject: "two", Text: "x"}},
		{"two To fields: all of them", "To: a@x.example\nTo: b@y.example\n\nx", seen{To: []mail.Address{*a, *b}, Text: "x"}},
		{"two Cc fields: all of them", "Cc: a@x.example\nCC: b@y.example\n\nx", seen{Cc: []mail.Address{*a, *b}, Text: "x"}},
		{"two Content-Type fields: the first", "Content-Type: text/html\nContent-Type: text/plain\n\n<p>x", seen{HTML: "<p>x"}},
		{"two encodings: the first", "Content-Transfer-Encoding: base64\nContent-Transfer-Encoding: 7bit\n\neA==", seen{Text: "x"}},
		{"two boundaries: the first", "Content-Type: multipart/mixed; boundary=a; boundary=b\n\n--a\n\nx\n--b\n\ny\n--a--", seen{Text: "x\n--b\n\ny"}},
		{"two Message-ID fields: the first", "Message-ID: <1@x>\nMessage-ID: <2@y>\n\nx", seen{ID: "<1@x>", Text: "x"}},
		{"a field of the header in the body", "Subject: s\n\nFrom: b@y.example\n", seen{Subject: "s", Text: "From: b@y.example\n"}},
	}
	if len(tests) != 20 {
		t.Fatalf("%d cases, the row has 20", len(tests))
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, raw := range []string{tt.raw, strings.ReplaceAll(tt.raw, "\n", "\r\n")} {
				m, err := Parse(strings.NewReader(raw), mail.DefaultLimits())
				if err != nil {
					t.Fatal(err)
				}
				if first := firstAuthor(t, raw); m.From != nil && m.From.Email != "" && m.From.Email != first {
					t.Errorf("shown is %q, authenticated %q", m.From.Email, first)
				}
				text := strings.ReplaceAll(m.Text, "\r\n", "\n")
				if diff := cmp.Diff(tt.want, seen{m.From, m.To, m.Cc, m.Subject, text, m.HTML, m.HeaderID}); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

// firstAuthor returns the first address in the From fields, as sender
// authentication reads it.
func firstAuthor(t *testing.T, raw string) string {
	t.Helper()
	fields, _, err := ReadHeader(strings.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		if !f.Is("from") {
			continue
		}
		if list, _ := f.Addresses(1); len(list) > 0 {
			return list[0].Email
		}
	}
	return ""
}
