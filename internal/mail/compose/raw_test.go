package compose

import (
	"errors"
	"strings"
	"testing"
)

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
