package compose

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// TestRawHasNoLongLines composes messages with lines over 998 bytes. What is sent has
// none, and reads as before; what cannot be encoded again is refused.
func TestRawHasNoLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Zelle ü = 1; ", 200)
	coded := strings.Repeat("QUJD", 500)
	multipart := func(subtype string, parts ...string) string {
		return "Content-Type: multipart/" + subtype + "; boundary=b\n\n--b\n" + strings.Join(parts, "\n--b\n") + "\n--b--\n"
	}
	const file = "Content-Type: application/json; name=a.json\n"
	for _, tt := range []struct {
		name, rest, refused string
		isSame              bool
	}{
		{"lines of 998 bytes", "X-A: " + strings.Repeat("x", 993) + "\n\n" + strings.Repeat("x", 998) + "\n", "", true},
		{"text of 8 bits", "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n" + long + "\n  x \n", "", false},
		{"text without MIME", "\n" + strings.Repeat("x", 999) + "\n\nx", "", false},
		{"text in base64", "Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: base64\n\n" + coded + "\n", "", false},
		{"text in quoted-printable", "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n" + strings.Repeat("=C3=BC ", 200) + "\nx", "", false},
		{"some parts", multipart("mixed", "\nshort", "Content-Type: text/html; charset=utf-8\n\n<p>"+long, file+"\n"+long, file+"Content-Transfer-Encoding: base64\n\n"+coded, "\nx"), "", false},
		{"fields with white space", "References:" + strings.Repeat(" <abc@out.example>", 90) + "\nX-A: \"" + strings.Repeat("a b", 400) + "\"\n\nx\n", "", false},
		{"fields of a part", multipart("mixed", "\nshort", "Content-Type: text/plain; name=a.txt;"+strings.Repeat(" x=y;", 300)+"\nContent-Disposition: attachment\n\nx"), "", false},
		{"a field without white space", "X-A: " + strings.Repeat("x", 998) + "\n\nx\n", "in its header", false},
		{"a signed part", multipart("signed", "Content-Type: text/plain\n\n"+long, "Content-Type: application/pgp-signature\n\nx"), "signed", false},
		{"a part within a signed one", multipart("signed", "Content-Type: multipart/mixed; boundary=c\n\n--c\n\n"+long+"\n--c--", "\nx"), "signed", false},
		{"an attached message", multipart("mixed", "Content-Type: message/rfc822\n\nSubject: x\n\n"+long), "a message", false},
		{"text before the parts", "Content-Type: multipart/mixed; boundary=b\n\n" + long + "\n--b\n\nx\n--b--\n", "outside", false},
		{"a part in another encoding", multipart("mixed", "Content-Transfer-Encoding: x-zip\n\n"+long), "encoded again", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := strings.ReplaceAll("From: me@own.example\nSubject: s\n"+tt.rest, "\n", "\r\n")
			raw, err := ReadRaw(strings.NewReader(in))
			if tt.refused != "" {
				if fault, ok := errors.AsType[*FieldError](err); !ok || !strings.Contains(fault.Error(), tt.refused) {
					t.Errorf("got %v, want %q", err, tt.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			raw.Add(Trace{HeaderID: "<a@own.example>", Host: "mx.own.example"})
			trace := string(raw.trace)
			var out, again bytes.Buffer
			n, err := raw.WriteTo(&out)
			if _, errAgain := raw.WriteTo(&again); err != nil || errAgain != nil || n != int64(out.Len()) || !bytes.Equal(out.Bytes(), again.Bytes()) {
				t.Fatalf("wrote %d of %d bytes, then %d: %v, %v", n, out.Len(), again.Len(), err, errAgain)
			}
			for line := range bytes.SplitSeq(out.Bytes(), []byte("\r\n")) {
				if len(line) > 998 || bytes.ContainsAny(line, "\r\n") {
					t.Errorf("a line of %d bytes: %.80q", len(line), line)
				}
			}
			if same := out.String() == trace+in; same != tt.isSame {
				t.Errorf("unchanged: %v\n%.2000s", same, out.Bytes())
			}
			if diff := cmp.Diff(contentOf(t, trace+in), contentOf(t, out.String()), cmpopts.IgnoreTypes(plaintext.Invisible{})); diff != "" {
				t.Errorf("(-composed +sent)\n%s", diff)
			}
		})
	}
}

// contentOf returns a message as it is read, and the content of its attachments.
func contentOf(t *testing.T, raw string) (all []any) {
	t.Helper()
	m, err := mime.Parse(strings.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, m)
	for _, a := range m.Attachments {
		r, err := mime.OpenPart(strings.NewReader(raw), a.Part, mail.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(content))
	}
	return all
}

func TestReadRawReadsOneAuthor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, from string
		ok         bool
	}{
		{"an address", "me@own.example", true},
		{"brackets alone", "<me@own.example>", true},
		{"a name", "Ann B. Example <me@own.example>", true},
		{"a name of other letters", "Jürgen <me@own.example>", true},
		{"an encoded word", "=?utf-8?q?J=C3=BCrgen=40x?= =?utf-8?b?w6k=?= <me@own.example>", true},
		{"a quoted name", `"Example, Ann: a@b <x>; (\"A\")" <me@own.example>`, true},
		{"a quoted name without a space", `"Ann"<me@own.example>`, true},
		{"a folded name", "\"Ann\"\r\n\t<me@own.example>", true},
		{"an empty quoted name", `"" <me@own.example>`, true},
		{"a quoted local part", `Ann <"a b"@own.example>`, true},
		{"a comment", "me@own.example (Ann, of Own)", true},
		{"a domain in upper case", "me@OWN.Example", true},
		{"a domain in upper case in brackets", `"Ann" <me@OWN.EXAMPLE>`, true},
		{"a domain in upper case with a comment", "me@OWN.example (Ann)", true},
		{"another domain in upper case", "ceo@VICTIM.example <me@OWN.example>", false},

		{"a name that is an address", "ceo@victim.example <me@own.example>", false},
		{"an address after a quoted name", `"x" ceo@victim.example <me@own.example>`, false},
		{"an unclosed bracket", `"a" <"ceo@victim.example" <me@own.example>`, false},
		{"a comma", `"a", <me@own.example>`, false},
		{"a colon", `"a" : <me@own.example>`, false},
		{"a semicolon", `"a";ceo@victim.example <me@own.example>`, false},
		{"a group", "a: <me@own.example>", false},
		{"a list of a word and an address", "ceo, <me@own.example>", false},
		{"two quoted names", `"a" "b" <me@own.example>`, false},
		{"a word after a quoted name", `"a" b <me@own.example>`, false},
		{"a quoted name after a word", `a "b" <me@own.example>`, false},
		{"a quoted name that does not end", `"a <me@own.example>`, false},
		{"a quoted name that ends with a backslash", `"a\" <me@own.example>`, false},
		{"a comment before the address", "(ceo) <me@own.example>", false},
		{"a comment with an address", "me@own.example (<ceo@victim.example>)", false},
		{"a comment and more", "me@own.example (a), ceo", false},
		{"two comments", "me@own.example (a), (b)", false},
		{"a comment that does not end", "me@own.example (a", false},
	} {
		raw, err := ReadRaw(strings.NewReader("From: " + tt.from + "\r\nSubject: s\r\n\r\nt\r\n"))
		var fault *FieldError
		if tt.ok && (err != nil || !strings.HasSuffix(raw.From.Email, "@own.example")) || !tt.ok && (!errors.As(err, &fault) || fault.Field != "from") {
			t.Errorf("%s: %s: error %v", tt.name, tt.from, err)
		}
	}
}
