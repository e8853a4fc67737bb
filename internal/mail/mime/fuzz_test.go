package mime

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail/mailtest"
)

// FuzzAddress reads anything as a list of addresses (M13).
func FuzzAddress(f *testing.F) {
	for _, s := range []string{
		"Ann <a@b.c>, d@e.f (Dora)", `"Ann, E" <"a b"@b.c>; x`, "Team: a@b.c, Bob <d@e.f>;", `"(<`, "=?utf-8?q?a=2C_b?= <a@b.c>", "<@r:a@b.c>", "'0@c.d", "\xf1@c.d", "a@b@c <d@e>",
		"Mail Delivery System", `Ann <`, "((a)b)", "mailto:a@b.c", "=?iso-2022-jp?b?GyRCJCIbKEI=?= <a@b.c>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, _ := ParseAddressList(s, 100)
		again, more := ParseAddressList(s, 1)
		if len(list) > 100 || len(again) != min(len(list), 1) || len(list) > 0 && (again[0] != list[0] || more != (len(list) > 1)) {
			t.Errorf("%q: %d addresses, the first %v, more %v", s, len(list), again, more)
		}
		for _, a := range list {
			mailtest.CheckText(t, "name", a.Name)
			mailtest.CheckText(t, "address", a.Email)
			if strings.ContainsAny(a.Name+a.Email, "\r\n") || a.Email == "" || len(a.Email) > MaxAddressBytes || len(a.Name) > maxName {
				t.Errorf("%q gave %+v", s, a)
			}
		}
	})
}
