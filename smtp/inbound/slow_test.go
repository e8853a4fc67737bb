package inbound

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

// S14: a client that sends too little is cut off when its grace is over, with
// 421 4.4.2, at whatever point it dawdles. Each of its bytes would renew a
// timeout of its own. Clients beside it are not harmed, nor is one that is slow
// but keeps the rate.
func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		const grace, rate = 1500 * time.Millisecond, 20_000 // enough for an honest client on a busy machine
		_, addr := serve(t, newReceiver(t, s), p.kind, func(c *ServerConfig) {
			c.TLS, c.CommandTimeout, c.RateGrace, c.MinRate, c.MaxConnsPerIP = tlsConfig(t), grace, grace, rate, 1000
		})
		begin := "MAIL FROM:<a@out.example>\r\nRCPT TO:<" + bot + ">\r\n"
		slow := map[string]struct {
			say     string
			replies int
			then    string
		}{
			"in the first command": {"E", 0, ""},
			"in a command":         {begin + "RCPT TO:<", 2, ""},
			"in a chunk":           {begin + "BDAT 100000 LAST\r\n", 2, ""},
			"in a TLS hello":       {"STARTTLS\r\n", 1, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc"},
			"in the header":        {begin + "DATA\r\nSubject: ", 3, ""},
			"in the body":          {begin + "DATA\r\nSubject: a\r\n\r\n", 3, ""},
		}
		const each = 5
		var wg sync.WaitGroup
		for where, attack := range slow {
			for range each {
				c := dial(t, addr)
				c.want("220")
				if attack.replies > 0 {
					c.cmd("250", "EHLO x")
				}
				c.send(attack.say)
				for range attack.replies {
					c.want("")
				}
				c.send(attack.then)
				stop := make(chan struct{})
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(20 * time.Millisecond): // as slow clients do
							_, _ = c.conn.Write([]byte("x"))
						}
					}
				})
				wg.Go(func() {
					defer close(stop)
					if where == "in a TLS hello" { // a plain-text reply would be useless
						if _, err := c.r.ReadByte(); err == nil {
							t.Errorf("%s: got a reply", where)
						}
						return
					}
					if line, err := c.r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "421 4.4.2") {
						t.Errorf("%s: %q, %v", where, line, err)
					}
				})
			}
		}
		honest := hello(t, addr)
		for range 20 {
			honest.begin("a@out.example", bot)
			honest.send(rawMail("Hi.") + ".\r\n")
			honest.want("250")
		}
		steady := hello(t, addr)
		steady.begin("a@out.example", bot)
		steady.send("Subject: steady\r\n\r\n")
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for began, i := time.Now(), 0; time.Since(began) < 2*grace; i++ { // what it has sent pays for more and more of the time
			steady.send(strings.Repeat(fmt.Sprintf("%998d\r\n", i), 10))
			<-pace.C
		}
		steady.send(".\r\n")
		steady.want("250")
		wg.Wait()
		if n := len(list(t, s, in)); n != 21 {
			t.Errorf("%d messages, want 21", n)
		}
	})
}
