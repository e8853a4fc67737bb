package inbound

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

// M10 for SMTP: what the API takes as an address is one here too, and mail from
// it is stored with that sender; what the API refuses is never a recipient.
func TestSMTPAcceptsTheAddressesOfTheAPI(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../internal/mail/testdata/addresses.json")
	if err != nil {
		t.Fatal(err)
	}
	var forms struct {
		Valid   []struct{ Why, Address, Stored string }
		Invalid []struct{ Why, Address string }
	}
	if err := json.Unmarshal(data, &forms); err != nil {
		t.Fatal(err)
	}
	s := storetest.OpenSQLite(t)
	in := botInbox(t, s)
	r := newReceiver(t, s)
	clock := storetest.NewClock(time.Date(2026, 9, 23, 10, 0, 0, 0, time.UTC))
	_, addr := serve(t, r, func(cfg *ServerConfig) { cfg.Now = clock.Now })
	for _, f := range forms.Valid {
		c := hello(t, addr)
		clock.Add(guessTime / 10) // below the guessing limit
		c.cmd("250", "MAIL FROM:<%s> SMTPUTF8", f.Address)
		local := f.Address[:strings.LastIndexByte(f.Address, '@')]
		if ours := c.cmd("550", "RCPT TO:<%s@in.example>", local); !strings.HasPrefix(ours, "550 5.1.1") && !strings.ContainsAny(local, "@%!") {
			t.Errorf("%s: reply to %q at our domain: %q", f.Why, local, ours)
		}
		c.cmd("550 5.7.1", "RCPT TO:<%s>", f.Address)
		c.cmd("250", "RCPT TO:<%s>", bot)
		c.cmd("354", "DATA")
		c.send("From: Ann <" + f.Address + ">\r\nTo: " + bot + "\r\nSubject: " + f.Why + "\r\n\r\nHi.\r\n.\r\n")
		c.want("250")
		c.cmd("221", "QUIT")
	}
	senders := map[string]string{}
	for _, m := range list(t, s, in) {
		senders[m.Subject] = m.Addresses.V.From.Email
	}
	for _, f := range forms.Valid {
		if senders[f.Why] != f.Stored {
			t.Errorf("%s: the sender is stored as %q, want %q", f.Why, senders[f.Why], f.Stored)
		}
	}
	for _, f := range forms.Invalid {
		if strings.ContainsAny(f.Address, "\r\n") || strings.HasPrefix(f.Address, "@relay") {
			continue // two commands, see rows S1 and S3; a source route, which a path may have
		}
		c := hello(t, addr)
		clock.Add(guessTime / 10)
		c.cmd("250", "MAIL FROM:<a@out.example> SMTPUTF8")
		if local, ok := strings.CutSuffix(f.Address, "@example.com"); ok {
			// The local part is wrong, whosever it is.
			c.cmd("5", "RCPT TO:<%s@in.example>", local)
		} else if got := c.cmd("5", "RCPT TO:<%s>", f.Address); strings.HasPrefix(got, "550 5.1.1") {
			t.Errorf("%s: reply to %q: %q", f.Why, f.Address, got)
		}
		c.cmd("221", "QUIT")
	}
	if n := len(list(t, s, in)); n != len(forms.Valid) {
		t.Errorf("%d messages, want %d", n, len(forms.Valid))
	}
}
