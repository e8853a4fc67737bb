package inbound

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

// restless returns a server that notes its rests instead of taking them.
func restless(t *testing.T, srv *Server) *[]time.Duration {
	t.Helper()
	var rests []time.Duration
	srv.rest = func(_ *wire, d time.Duration) { rests = append(rests, d) }
	return &rests
}

// S16: the hundredth command without effect ends the session.
func TestJunkCommandsEndTheSession(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		srv, _ := keeping(t, p.kind)
		for junk, code := range map[string]string{"NOOP": "250", "RSET": "250", "VRFY bot": "252", "HELP": "214", "EHLO x": "250", "HELO x": "250"} {
			got := codes(converse(t, srv, strings.NewReader("EHLO x\r\n"+strings.Repeat(junk+"\r\n", 10_000))))
			want := append([]string{"220", "250"}, slices.Repeat([]string{code}, maxJunk-2)...)
			if want = append(want, "421"); !slices.Equal(got, want) {
				t.Errorf("%s: %d replies: %v", junk, len(got), got)
			}
		}
	})
}

// The twentieth error ends the session. From the tenth on, each reply takes a
// second (S16).
func TestErrorsEndTheSession(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		srv, _ := keeping(t, p.kind)
		rests := restless(t, srv)
		begin := "EHLO x\r\nMAIL FROM:<a@out.example>\r\n"
		for _, wrong := range []string{"FOO", "", "RCPT TO:<" + p.no + ">", "RCPT TO:<bot@in.example> X=1", "MAIL FROM:<b@x>", "BDAT 0", "\x01", "DATA", "EXPN x"} {
			*rests = nil
			said := codes(converse(t, srv, &slowly{begin, wrong + "\r\n", 50}))
			got := said[3:]
			if len(got) != maxErrors || got[maxErrors-1] != "421" || got[maxErrors-2][0] != '5' {
				t.Errorf("%q: %d replies: %v", wrong, len(got), got)
			}
			if n := maxErrors - slowErrors + 1; len(*rests) != n || (*rests)[0] != errorPause {
				t.Errorf("%q: %v, want %d times %v", wrong, *rests, n, errorPause)
			}
		}
	})
}

// slowly is a client that says first, and then say n times, each on its own.
type slowly struct {
	first, say string
	n          int
}

func (s *slowly) Read(b []byte) (int, error) {
	if s.first != "" {
		n := copy(b, s.first)
		s.first = s.first[n:]
		return n, nil
	}
	if s.n--; s.n < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(b, s.say), nil
}

// Row S16 of docs/testing.md.
func TestAcceptedMailResetsTheCounts(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		srv, k := keeping(t, p.kind)
		rests := restless(t, srv)
		raw := rawMail("Hi.")
		round := strings.Repeat("NOOP\r\n", 80) + strings.Repeat("FOO\r\n", slowErrors-1) +
			"MAIL FROM:<a@out.example>\r\nRCPT TO:<" + bot + ">\r\n" + fmt.Sprintf("BDAT %d LAST\r\n%s", len(raw), raw)
		got := codes(converse(t, srv, strings.NewReader("EHLO x\r\n"+strings.Repeat(round, 5)+"QUIT\r\n")))
		if got[len(got)-1] != "221" || len(k.kept) != 5 || len(*rests) != 0 {
			t.Errorf("the last reply is %s, %d messages, pauses %v", got[len(got)-1], len(k.kept), *rests)
		}
	})
}

// Ten thousand chunks of one byte are a message and do not count as junk (S11).
func TestTinyChunksAreNotJunk(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		srv, k := keeping(t, p.kind)
		say := states[3]
		for range 10_000 {
			say += "BDAT 1\r\nx"
		}
		got := codes(converse(t, srv, strings.NewReader(say+"BDAT 0 LAST\r\nQUIT\r\n")))
		if len(got) != 4+10_000+2 || got[len(got)-1] != "221" || len(k.kept) != 1 || len(k.kept[0]) != 10_000 {
			t.Errorf("%d replies, the last %s, %d messages", len(got), got[len(got)-1], len(k.kept))
		}
	})
}

// The server really pauses, and a shutdown ends the pauses (S16).
func TestErrorsTakeTime(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, newReceiver(t, storetest.OpenSQLite(t)))
	c := dial(t, addr)
	c.want("220")
	for range slowErrors - 1 {
		c.cmd("500", "FOO")
	}
	began := time.Now()
	c.cmd("500", "FOO")
	if took := time.Since(began); took < errorPause {
		t.Errorf("the reply to error %d came after %v", slowErrors, took)
	}
	srv := newServer(t, newReceiver(t, storetest.OpenSQLite(t)))
	srv.rest = func(w *wire, _ time.Duration) { w.rest(time.Hour) }
	c = dial(t, start(t, srv))
	c.want("220")
	c.send(strings.Repeat("FOO\r\n", slowErrors))
	for range slowErrors - 1 {
		c.want("500")
	}
	awaitWaiting(t, srv, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown() = %v while a client is made to wait", err)
	}
}
