package mail_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
)

// addressForms are the forms of testdata/addresses.json, which the tests of the
// API and of SMTP read too: all three must say the same about each.
type addressForms struct {
	Valid   []struct{ Why, Address, Stored string }
	Invalid []struct{ Why, Address string }
}

func readAddressForms(t *testing.T) (forms addressForms) {
	t.Helper()
	data, err := os.ReadFile("testdata/addresses.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &forms); err != nil {
		t.Fatal(err)
	}
	if len(forms.Valid) < 50 || len(forms.Invalid) < 75 {
		t.Fatalf("%d and %d forms", len(forms.Valid), len(forms.Invalid))
	}
	return forms
}

// TestAddressFormsAreReadAlike reads every form with the package that decides (row
// M10).
func TestAddressFormsAreReadAlike(t *testing.T) {
	t.Parallel()
	forms := readAddressForms(t)
	for _, f := range forms.Valid {
		a, err := mail.ParseMailbox(f.Address)
		if err != nil || a.Email != f.Stored || a.Name != "" {
			t.Errorf("%s: %q is read as %+v, %v, want %q", f.Why, f.Address, a, err, f.Stored)
		}
	}
	for _, f := range forms.Invalid {
		if a, err := mail.ParseMailbox(f.Address); err == nil {
			t.Errorf("%s: %q is read as %+v", f.Why, f.Address, a)
		}
		if err := mail.ValidAddress(f.Address); err == nil {
			t.Errorf("%s: %q is valid", f.Why, f.Address)
		}
	}
}

// TestAddressFormsInMessages writes each address into a message and reads it again (row M10).
func TestAddressFormsInMessages(t *testing.T) {
	t.Parallel()
	for _, f := range readAddressForms(t).Valid {
		o := simpleMail()
		o.To = []mail.Address{{Name: "A, B", Email: f.Stored}}
		var raw bytes.Buffer
		if _, err := o.WriteTo(&raw); err != nil {
			t.Errorf("%s: %v", f.Why, err)
			continue
		}
		m, err := mime.Parse(&raw, mail.DefaultLimits())
		if err != nil || len(m.To) != 1 || !sameAddress(m.To[0].Email, f.Stored) || m.To[0].Name != "A, B" {
			t.Errorf("%s: %q comes back as %+v, %v", f.Why, f.Stored, m.To, err)
		}
	}
}

// sameAddress reports whether an address is the same, its domain written in
// A-labels or not.
func sameAddress(a, b string) bool {
	localA, domainA := cutLocal(a)
	localB, domainB := cutLocal(b)
	return localA == localB && (domainA == domainB || strings.Contains(domainA, "xn--"))
}

func cutLocal(s string) (local, domain string) {
	at := strings.LastIndexByte(s, '@')
	return s[:at], s[at+1:]
}
