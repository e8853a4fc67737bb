package inbound

import (
	"testing"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

func TestServerTimeouts(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	const short = 50 * time.Millisecond
	command := func(c *ServerConfig) { c.CommandTimeout = short }
	data := func(c *ServerConfig) { c.RateGrace = short }
	whole := func(c *ServerConfig) { c.TransactionTimeout = short }
	envelope := "EHLO client.example\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<" + in.Address + ">\r\n"
	tests := []struct {
		name    string
		edit    func(*ServerConfig)
		say     string // all of it at once and before, so that no slow machine looks like a slow client
		replies int
	}{
		{"for a command", command, "EHLO client.example\r\n", 2},
		{"for the end of a command, which is not run", command, envelope + "DATA", 4},
		{"for data", data, envelope + "DATA\r\nSubject: a\r\n", 5},
		{"for the end of the data", data, envelope + "DATA\r\nSubject: a\r\n.", 5},
		{"for the whole transaction", whole, envelope + "DATA\r\nSubject: a\r\n", 5},
	}
	t.Run("to wait", func(t *testing.T) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				l := listen(t)
				c := dial(t, l.Addr().String())
				c.send(tt.say)
				startOn(t, newServer(t, newReceiver(t, s), tt.edit), l)
				for range tt.replies {
					c.want("")
				}
				c.want("421 4.4.2")
				c.wantClosed()
			})
		}
	})
	if n := len(list(t, s, in)); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// A slow client that never stops sending is bound by the time of the whole
// transaction, not by that of each piece.
func TestServerBoundsAClientThatTrickles(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.TransactionTimeout = 100 * time.Millisecond })
	c := dial(t, addr)
	c.send("EHLO client.example\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<" + in.Address + ">\r\nDATA\r\n")
	for _, want := range []string{"220", "250", "250", "250", "354"} {
		c.want(want)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := c.conn.Write([]byte("x")); err != nil {
				return
			}
		}
	}()
	c.want("421 4.4.2")
	_ = c.conn.Close()
	<-done
}
