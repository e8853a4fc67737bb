package inbound

import (
	"fmt"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// S20: two programs that hand every mail of their inbox to the other's, as
// forwarding servers do, stop at 50 hops.
func TestRingOfForwardersEnds(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	account := storetest.Account(t, s)
	inbox := func(address string) store.Inbox {
		return storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID, in.Address = account.Seq, address })
	}
	boxes := []store.Inbox{inbox("a@in.example"), inbox("b@in.example")}
	_, addr := serve(t, newReceiver(t, s))
	c := hello(t, addr)
	raw, hops := rawMail("Round and round."), 0
	for {
		in := boxes[hops%2]
		c.begin("a@in.example", in.Address)
		c.send(raw + ".\r\n")
		reply := c.want("")
		if reply[:3] != "250" {
			if reply[:9] != "554 5.4.6" {
				t.Errorf("hop %d: %s", hops, reply)
			}
			break
		}
		if hops++; hops > 60 {
			t.Fatal("the ring does not end")
		}
		raw = fmt.Sprintf("Received: from in.example by forwarder%d.example; Mon, 1 Jan 2024 00:00:00 +0000\r\n", hops) +
			readRaw(t, s, list(t, s, in)[0])
	}
	if hops != maxReceived+1 { // the first one had passed no server
		t.Errorf("the loop ended after %d messages, want %d", hops, maxReceived+1)
	}
	nothingLeaves(t, s)
}

// Automated messages are marked for programs that reply; the server itself never
// replies (S20).
func TestAutomatedMailIsMarked(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := botInbox(t, s)
	_, addr := serve(t, newReceiver(t, s))
	c := hello(t, addr)
	for _, tt := range []struct {
		name, from, field string
		want              bool
	}{
		{"a person", "ann@out.example", "", false},
		{"Auto-Submitted: no", "ann@out.example", "Auto-Submitted: no\r\n", false},
		{"Auto-Submitted: auto-replied", "ann@out.example", "Auto-Submitted: auto-replied\r\n", true},
		{"Auto-Submitted: auto-generated", "ann@out.example", "auto-submitted: Auto-Generated\r\n", true},
		{"List-Id", "ann@out.example", "List-Id: <list.out.example>\r\n", true},
		{"Precedence: bulk", "ann@out.example", "Precedence: bulk\r\n", true},
		{"Precedence: list", "ann@out.example", "List-Unsubscribe: <https://out.example/u>\r\nPrecedence: list\r\n", true},
		{"the null sender", "", "", true},
	} {
		c.begin(tt.from, bot)
		c.send(tt.field + rawMail("Hi.") + ".\r\n")
		c.want("250")
		if m := list(t, s, in)[0]; m.Automated != tt.want {
			t.Errorf("%s: automated is %t", tt.name, m.Automated)
		}
	}
	nothingLeaves(t, s)
}
