package extract

import (
	"strings"
	"testing"
)

func TestModelIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	m := trained()
	again, err := ParseModel(m.String())
	if err != nil {
		t.Fatal(err)
	}
	if m.String() != weightsFile || again.String() != weightsFile {
		t.Error("weights.txt is not what its model writes")
	}
	if len(weightsFile) > 100<<10 || !strings.Contains(weightsFile, "[no link]\n") {
		t.Errorf("weights.txt has %d bytes", len(weightsFile))
	}
}

func TestDamagedModelsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"[codes]\n", "+1 year=yes\n", "[code]\n+1 leap year=yes\n", "[code]\nmany year=yes\n", "[code]\n\n"} {
		if _, err := ParseModel(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// Each sign has a name of its own and says what it is.
func TestSignsAreNamed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, kind := range []string{CodeSigns, NoCodeSigns, LinkSigns, NoLinkSigns} {
		for _, name := range SignNames(kind) {
			if name = kind + " " + name; seen[name] {
				t.Errorf("two signs are named %q", name)
			}
			seen[name] = true
		}
	}
	for _, s := range codeSigns.list {
		if s.doc == "" || len(s.values) == 0 || (s.of == nil) == (s.bits == nil) {
			t.Errorf("sign %q is incomplete", s.name)
		}
	}
	if n := max(len(codeSigns.list), len(linkSigns.list)); n > maxSigns {
		t.Errorf("%d signs in one table, want at most %d", n, maxSigns)
	}
	if SignNames("other") != nil {
		t.Error("an unknown kind has signs")
	}
}

// Each veto rules out the number of its message, whatever the weights.
func TestVetoes(t *testing.T) {
	t.Parallel()
	tests := []struct{ veto, subject, text, value string }{
		{"an amount with its unit", "Your code", "Your code unlocks 5000 points.", "5000"},
		{"one of a list, as backup codes are", "Your codes", "Your codes:\n\n48291377\n20571934\n77102458\n", "20571934"},
		{"one of a list, as backup codes are", "Your codes", "Your codes:\n\n4821-9930\n7710-2254\n1904-6672\n5538-1120\n", "48219930"},
		{"a discount code", "Autumn", "Use the discount code 482913 at the till.", "482913"},
		{"in the address of a company", "Your code", "Example Inc., 20 Pier Street, San Rafael, CA 94901", "94901"},
	}
	always := &Model{code: make([]int32, len(codeSigns.names)), noCode: make([]int32, len(noCodeSigns.names)), link: make([]int32, len(linkSigns.names)), noLink: make([]int32, len(noLinkSigns.names))}
	for i := range always.code {
		always.code[i] = one
	}
	for _, v := range vetoes {
		found := false
		for _, tt := range tests {
			if tt.veto != v.name {
				continue
			}
			for _, c := range Read(tt.subject, tt.text, "", false).Codes {
				found = found || c.Value == tt.value && c.Veto == v.name
			}
			got := always.CodesAndLinks(tt.subject, tt.text, "")
			for _, code := range got.Codes {
				if code == tt.value {
					t.Errorf("%s: %s is a code", tt.veto, code)
				}
			}
		}
		if !found {
			t.Errorf("no message shows the veto %q", v.name)
		}
	}
}

// A part of a link is never a candidate, nor is a phone number with its country
// code or the rest of a masked card.
func TestWhatIsNeverACandidate(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Your code: https://a.example/482913", "Your code: +44 7700 900318", "Your code for card XXXX 1245", "Your code costs $4829", "482913@a.example is your code"} {
		if c := Read("Your code", text, "", false).Codes; len(c) > 0 {
			t.Errorf("%q: %q is a candidate", text, c[0].Value)
		}
	}
}
