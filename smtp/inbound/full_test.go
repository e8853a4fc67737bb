package inbound

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const inboxFull = "452 4.2.2 Inbox full, try again later\r\n"

// awaitRcpt gives a recipient in new transactions until the reply begins with prefix: the store
// counts mail in the background.
func awaitRcpt(t *testing.T, c *client, rcpt, prefix string) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c.cmd("250", "RSET")
		c.cmd("250", "MAIL FROM:<a@out.example>")
		c.send("RCPT TO:<" + rcpt + ">\r\n")
		if got := c.want(""); strings.HasPrefix(got, prefix) {
			return
		} else if time.Now().After(late) {
			t.Fatalf("reply %q, want %s", got, prefix)
		}
	}
}

// A full inbox defers mail for itself and for no other, until messages are deleted.
func TestFullInbox(t *testing.T) {
	t.Parallel()
	for name, quota := range map[string]store.Quota{
		"messages": {Bytes: 1 << 30, Messages: 3},
		"bytes":    {Bytes: 3 * int64(len(rawMail("Hi."))), Messages: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock(time.Now())
			storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
				s := storetest.OpenConfig(t, cfg)
				in, other := storetest.Inbox(t, s), storetest.Inbox(t, s)
				r := newReceiver(t, s)
				_, addr := serve(t, r)
				late := hello(t, addr) // has given its recipient when the inbox becomes full
				late.begin("a@out.example", in.Address)
				c := hello(t, addr)
				for range 3 {
					c.begin("a@out.example", in.Address)
					c.cmd("250", "%s.", rawMail("Hi."))
				}
				late.cmd(inboxFull, "%s.", rawMail("Hi."))
				c.cmd("250", "MAIL FROM:<a@out.example>")
				c.cmd(inboxFull, "RCPT TO:<%s>", in.Address)
				c.cmd("250", "RCPT TO:<%s>", other.Address)
				c.cmd("354", "DATA")
				c.cmd("250", "%s.", rawMail("Hi."))
				only(t, s, other)
				env := smtp.Envelope{MailFrom: other.Address, RcptTo: []string{in.Address}}
				if err := r.DeliverLocal(t.Context(), env, strings.NewReader(rawMail("Hi.")), int64(len(rawMail("Hi."))), nil); !errors.Is(err, replyInboxFull) {
					t.Errorf("DeliverLocal() = %v, want %v", err, replyInboxFull)
				}
				stored := list(t, s, in)
				if len(stored) != 3 {
					t.Errorf("%d messages, want 3", len(stored))
				}

				again := storetest.OpenConfig(t, cfg) // counts what was there
				_, addr = serve(t, newReceiver(t, again))
				c = hello(t, addr)
				awaitRcpt(t, c, in.Address, inboxFull)
				if err := again.DeleteMessage(t.Context(), in.AccountID, stored[0].ID); err != nil {
					t.Fatal(err)
				}
				clock.Add(time.Hour)
				awaitRcpt(t, c, in.Address, "250 ")
			}, storetest.WithNow(clock.Now), storetest.WithConfig(func(cfg *store.Config) { cfg.InboxQuota = quota }))
		})
	}
}

// An account holds as much as a number of full inboxes.
func TestFullAccount(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		for range store.AccountQuota {
			storetest.Received(t, s, storetest.Inbox(t, s, func(other *store.Inbox) { other.AccountID = in.AccountID }))
		}
		foreign := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = storetest.Account(t, s).Seq })
		_, addr := serve(t, newReceiver(t, s))
		c := hello(t, addr)
		c.cmd("250", "MAIL FROM:<a@out.example>")
		c.cmd(inboxFull, "RCPT TO:<%s>", in.Address)
		c.cmd("250", "RCPT TO:<%s>", foreign.Address)
	}, storetest.WithConfig(func(cfg *store.Config) { cfg.InboxQuota = store.Quota{Bytes: 1 << 30, Messages: 1} }))
}

// While the disk has less free space than the reserve, mail is deferred before
// anything is written.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	const noSpace = "452 4.3.1 No space left, try again later\r\n"
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	var looks atomic.Int64 // that find space
	space := func() error {
		if looks.Add(-1) < 0 {
			return fmt.Errorf("1 MiB is free: %w", syscall.ENOSPC)
		}
		return nil
	}
	_, addr := serve(t, newReceiver(t, s, func(cfg *ReceiverConfig) { cfg.Space = space }))
	c := hello(t, addr)
	c.cmd("250", "MAIL FROM:<a@out.example>")
	c.cmd(noSpace, "RCPT TO:<%s>", in.Address)
	for name, raw := range map[string]string{"small": rawMail("Hi."), "to a file": sized(1 << 20)} {
		looks.Store(2) // for the recipient, and for the first part of a file
		if name == "small" {
			looks.Store(1)
		}
		c := hello(t, addr)
		c.begin("a@out.example", in.Address)
		c.cmd(noSpace, "%s.", raw)
	}
	if stored := list(t, s, in); len(stored) != 0 {
		t.Errorf("%d messages stored", len(stored))
	}
	looks.Store(1 << 20)
	c = hello(t, addr)
	c.begin("a@out.example", in.Address)
	c.cmd("250", "%s.", sized(1<<20))
	only(t, s, in)
}
