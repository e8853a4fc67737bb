package inbound

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// S21: a deleted inbox accepts nothing more, not even from clients that named it
// before, and its address is never reused. The other store is that of another
// node, if there is one.
func TestInboxIsDeletedUnderOpenSessions(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s, elsewhere := storetest.OpenConfig(t, cfg), (*store.Store)(nil)
		in := botInbox(t, s)
		if elsewhere = s; strings.HasPrefix(cfg.Database, "postgres") {
			elsewhere = storetest.OpenConfig(t, cfg)
		}
		_, addr := serve(t, newReceiver(t, s))
		const sessions = 50
		var all [sessions]*client
		for i := range all {
			all[i] = hello(t, addr)
			if i%2 == 0 {
				all[i].cmd("250", "MAIL FROM:<a@out.example>")
			} else {
				all[i].begin("a@out.example", bot)
			}
		}
		if _, err := elsewhere.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
			t.Fatal(err)
		}
		deleted := time.Now()
		for i, c := range all {
			if i%2 == 0 {
				c.cmd("550 5.1.1", "RCPT TO:<%s>", bot)
			} else {
				c.send(rawMail("Hi.") + ".\r\n")
				c.want("550 5.1.1")
			}
		}
		t.Logf("%d sessions were refused within %v", sessions, time.Since(deleted))
		_, err := s.CreateInbox(t.Context(), storetest.NewInbox(func(again *store.Inbox) { again.AccountID, again.Address = in.AccountID, bot }), nil)
		if !errors.Is(err, store.ErrAddressTaken) {
			t.Errorf("the address was reassigned: %v", err)
		}
	})
}

// S22: without its database the server puts mail and recipients off, and says
// nothing of why.
func TestDatabaseIsUnreachable(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		var log lockedBuffer
		_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.Log = textLog(&log) })
		c := hello(t, addr)
		c.begin("a@out.example", in.Address)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		c.send(rawMail("Hi.") + ".\r\n")
		c.want("451 4.3.0 Try again later\r\n")
		c.cmd("250", "MAIL FROM:<a@out.example>")
		for range 5 {
			c.cmd("451 4.3.0 Try again later\r\n", "RCPT TO:<%s>", in.Address)
		}
		lines := log.String()
		for _, step := range []string{"step=store", `step="look up recipient"`} {
			if !strings.Contains(lines, "level=WARN msg=\"messages refused for now\" "+step) {
				t.Errorf("the fault at %s is not logged:\n%s", step, lines)
			}
		}
		if n := strings.Count(lines, "look up recipient"); n == 5 {
			t.Errorf("each of %d faults is logged", n)
		}
		if strings.Contains(lines, "level=ERROR") {
			t.Errorf("an outage is logged as an error of the program:\n%s", lines)
		}
	})
}

// A full disk or database is 452, and the session goes on (S22).
func TestNoSpaceLeft(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		srv, k := keeping(t, p.kind)
		for _, k.fault = range []error{
			fmt.Errorf("add: %w", store.ErrFull), fmt.Errorf("write: %w", syscall.ENOSPC), fmt.Errorf("write: %w", syscall.EDQUOT),
		} {
			said := converse(t, srv, strings.NewReader(states[3]+"DATA\r\n"+rawMail("Hi.")+".\r\nNOOP\r\n"))
			if got := strings.Join(codes(said)[4:], " "); got != "354 452 250" || !strings.Contains(said, "452 4.3.1 ") {
				t.Errorf("%v: %s", k.fault, said)
			}
		}
	})
}

// S22: if the folder of large messages cannot be written to, the client gets a
// transient failure, and never a reply that its message is stored.
func TestLargeMailCannotBeStored(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		blobs := filepath.Join(t.TempDir(), "blobs")
		s := storetest.OpenSQLite(t, storetest.WithBlobs(blobs))
		in := botInbox(t, s)
		r := newReceiver(t, s)
		_, addr := serve(t, r, p.kind)
		if err := os.RemoveAll(blobs); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(blobs, nil, 0o400); err != nil { // no folder at all: root may write to any
			t.Fatal(err)
		}
		c := hello(t, addr)
		large := rawMail(strings.Repeat(strings.Repeat("x", 98)+"\r\n", 10_000))
		for range 5 {
			c.begin("a@out.example", bot)
			c.send(large + ".\r\n")
			c.want("451 4.3.0 Try again later")
		}
		c.begin("a@out.example", bot)
		c.send(rawMail("Small mail needs no folder.") + ".\r\n")
		c.want("250")
		only(t, s, in)

		// The temporary folder, through which large mail comes.
		if err := os.RemoveAll(r.cfg.TempDir); err != nil {
			t.Fatal(err)
		}
		c.begin("a@out.example", bot)
		go func() { _, _ = c.conn.Write([]byte(large + ".\r\n")) }() // the server stops reading
		c.want("451 4.3.0 Try again later")
		only(t, s, in)
	})
}
