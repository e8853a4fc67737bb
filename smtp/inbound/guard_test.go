package inbound

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

// admitted is a listener with one connection, which has been admitted.
type admitted struct {
	net.Listener
	guard *guard
}

func (l *admitted) Accept() (net.Conn, error) {
	if l.guard == nil {
		return nil, net.ErrClosed
	}
	g := l.guard
	l.guard = nil
	return g, nil
}

// run admits w and serves it in the background, until srv.running is done.
func run(t testing.TB, srv *Server, w *wire) {
	t.Helper()
	if r := srv.conns.enter(w); r != nil {
		t.Fatal(r)
	}
	serveAdmitted(t, srv, w)
}

func serveAdmitted(t testing.TB, srv *Server, w *wire) {
	t.Helper()
	if err := srv.engine.Serve(&admitted{guard: newGuard(srv, w)}); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

// go-smtp alone takes the end of the connection for the end of a chunk, and stores
// the part that arrived.
func TestChunkCutShortIsNeverStored(t *testing.T) {
	t.Parallel()
	srv, k := keeping(t)
	raw := rawMail("Your code is 482913.")
	for _, before := range []string{"", "BDAT 6\r\nA: b\r\n"} {
		for n := range len(raw) {
			said := converse(t, srv, strings.NewReader(states[3]+before+fmt.Sprintf("BDAT %d LAST\r\n%s", len(raw), raw[:n])))
			if !strings.HasSuffix(said, replyCutShort.Error()+"\r\n") {
				t.Fatalf("the reply to %d of %d bytes is %q", n, len(raw), said)
			}
		}
	}
	if len(k.kept) != 0 {
		t.Errorf("stored %q", k.kept)
	}
	converse(t, srv, strings.NewReader(states[3]+fmt.Sprintf("BDAT %d LAST\r\n%s", len(raw), raw)))
	if len(k.kept) != 1 || k.kept[0] != raw {
		t.Errorf("the complete message: stored %q", k.kept)
	}
}

// go-smtp alone can report the end of the message that RSET discarded as the result
// of the next one, which is stored nevertheless.
func TestResetBetweenChunksNeverMixesResults(t *testing.T) {
	t.Parallel()
	rounds := 5000
	if testing.Short() {
		rounds = 200
	}
	srv, k := keeping(t)
	envelope := "MAIL FROM:<a@out.example>\r\nRCPT TO:<" + bot + ">\r\n"
	var say strings.Builder
	say.WriteString("EHLO x\r\n")
	want := []string{"220", "250"}
	for i := range rounds {
		fmt.Fprintf(&say, "%sBDAT 6\r\nA: b\r\nRSET\r\n", envelope)
		fmt.Fprintf(&say, "%sBDAT 11 LAST\r\nMail: %05d", envelope, i)
		want = append(want, "250", "250", "250", "250", "250", "250", "250")
	}
	fmt.Fprintf(&say, "%sBDAT 6\r\nA: b\r\nRSET\r\n%sBDAT 100001 LAST\r\n%s", envelope, envelope, strings.Repeat("x", 100_001))
	want = append(want, "250", "250", "250", "250", "250", "250", "552")
	said := converse(t, srv, strings.NewReader(say.String()))
	if got := strings.Join(codes(said), " "); got != strings.Join(want, " ") {
		t.Errorf("replies %.200s…, want %.200s…", got, strings.Join(want, " "))
	}
	if n := strings.Count(said, replyStored.Text); n != rounds || len(k.kept) != rounds {
		t.Fatalf("%d messages accepted, %d stored, want %d", n, len(k.kept), rounds)
	}
	for i, m := range k.kept {
		if m != fmt.Sprintf("Mail: %05d", i) {
			t.Fatalf("message %d is %q", i, m)
		}
	}
}

// go-smtp alone runs the lines of the message as commands when it refuses DATA.
func TestBodyAfterRefusedDataIsNeverRun(t *testing.T) {
	t.Parallel()
	srv, k := keeping(t)
	body := "EHLO evil\r\n" + "MAIL FROM:<evil@out.example>\r\nRCPT TO:<" + bot + ">\r\nDATA\r\n" + rawMail("Pay me.") + ".\r\n"
	for before, code := range map[string]string{
		"DATA\r\n":                            "503",
		states[1] + "DATA\r\n":                "503",
		states[2] + "DATA\r\n":                "503",
		states[3] + "DATA now\r\n":            "501",
		states[3] + "RSET\r\nDATA\r\n":        "503",
		states[5] + "DATA\r\n":                "503",
		states[2] + "RCPT TO:<x>\r\nDATA\r\n": "503",
	} {
		got := codes(converse(t, srv, strings.NewReader(before+body)))
		if n := strings.Count(strings.ReplaceAll(before, "BDAT 6\r\n", ""), "\r\n"); len(got) != 1+n || got[n] != code {
			t.Errorf("%q and a message: %v, want %s at the end", before, got, code)
		}
	}
	if len(k.kept) != 0 {
		t.Errorf("stored %q", k.kept)
	}
}

// A panic while the guard reads ends the session, and not the process.
func TestGuardSurvivesAPanic(t *testing.T) {
	t.Parallel()
	srv, k := keeping(t)
	good := srv.receiver
	srv.receiver = brokenSpools{good}
	conn := &scriptConn{in: strings.NewReader(states[3] + "BDAT 6 LAST\r\nA: b\r\n")}
	run(t, srv, newWire(srv, conn))
	srv.running.Wait()
	if said := conn.out.String(); !strings.HasSuffix(said, replyPanic.Error()+"\r\n") {
		t.Errorf("said %q", said)
	}
	srv.receiver = good
	converse(t, srv, strings.NewReader(states[3]+"BDAT 6 LAST\r\nA: b\r\n"))
	if len(k.kept) != 1 {
		t.Errorf("the next session stored %q", k.kept)
	}
}

// brokenSpools fails when a message begins.
type brokenSpools struct{ inboxes }

func (brokenSpools) NewSpool() *Spool { panic("a fault") }
