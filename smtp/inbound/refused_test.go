package inbound

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store/storetest"
)

// TestRefusedSessionsAreReported checks that each session with a refusal is reported
// once, with its first refusal, and that others are not.
func TestRefusedSessionsAreReported(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	tests := []struct {
		name, say string
		want      []Refusal
	}{
		{"a message that is stored", "EHLO a.example\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<" + in.Address + ">\r\nDATA\r\n" +
			"From: a@out.example\r\n\r\nHi\r\n.\r\nQUIT\r\n", nil},
		{"two unknown recipients", "EHLO a.example\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<missing@" + storetest.Domain + ">\r\n" +
			"RCPT TO:<" + in.Address + ">\r\nRCPT TO:<none@" + storetest.Domain + ">\r\nQUIT\r\n",
			[]Refusal{{"127.0.0.1", "a.example", "a@out.example", "missing@" + storetest.Domain, "550 5.1.1 No such inbox here", 2}}},
		{"a web browser", "GET / HTTP/1.1\r\n", []Refusal{{"127.0.0.1", "", "", "", "501 5.5.2 Bad command", 1}}},
		{"a recipient that is not an address", "EHLO a.example\r\nMAIL FROM:<>\r\nRCPT TO:missing\r\nQUIT\r\n",
			[]Refusal{{"127.0.0.1", "a.example", "", "", "501 5.5.2 Was expecting RCPT arg syntax of TO:<address>", 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := make(chan Refusal, 9)
			srv := newServer(t, newReceiver(t, s), func(c *ServerConfig) { c.OnRefused = func(r Refusal) { got <- r } })
			talk(t, start(t, srv), tt.say)
			if err := srv.Shutdown(t.Context()); err != nil { // after it all sessions have ended
				t.Fatal(err)
			}
			close(got)
			var all []Refusal
			for r := range got {
				all = append(all, r)
			}
			if diff := cmp.Diff(tt.want, all); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusedConnectionsAreReported(t *testing.T) {
	t.Parallel()
	got := make(chan Refusal, 1)
	srv := newServer(t, newReceiver(t, storetest.OpenSQLite(t)), func(c *ServerConfig) {
		c.MaxConnsPerIP, c.OnRefused = 1, func(r Refusal) { got <- r }
	})
	addr := start(t, srv)
	hello(t, addr)
	dial(t, addr).want("421")
	want := Refusal{IP: "127.0.0.1", Reply: "421 4.7.0 Too many connections from your address, try again later", Count: 1}
	if r := <-got; r != want {
		t.Errorf("reported %+v, want %+v", r, want)
	}
}
