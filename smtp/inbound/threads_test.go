package inbound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

// Messages that are independent of each other stay in threads of their own, even if
// sender and subject are the same. A subject joins a message to a thread only when a
// person replies.
func TestThreadsOfIndependentMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, header string
		threads      int // of twelve messages
	}{
		{"verification messages", "From: GitHub <noreply@github.com>\r\nSubject: Your verification code", 12},
		{"verification messages of a plain sender", "From: Shop <accounts@shop.example>\r\nSubject: Your verification code", 12},
		{"a subject with a reply mark from a no-reply sender", "From: GitHub <NOREPLY+7@github.com>\r\nSubject: Re: [acme/app] Build failed", 12},
		{"a subject with a reply mark, to a list", "From: Ann <ann@out.example>\r\nSubject: Re: Build failed\r\nList-Unsubscribe: <https://out.example/u>", 12},
		{"a subject with a reply mark, submitted by a program", "From: Ann <ann@out.example>\r\nSubject: Re: Build failed\r\nAuto-Submitted: auto-generated", 12},
		{"a subject with a reply mark from a person", "From: Ann <ann@out.example>\r\nSubject: Re: Lunch", 1},
		{"replies to a message", "From: GitHub <noreply@github.com>\r\nSubject: Re: Build failed\r\nIn-Reply-To: <first@github.com>", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := storetest.OpenSQLite(t)
			in := botInbox(t, s)
			_, addr := serve(t, newReceiver(t, s))
			c := hello(t, addr)
			for i := range 12 {
				c.begin("sender@out.example", bot)
				c.send(fmt.Sprintf("%s\r\nTo: %s\r\nMessage-ID: <%d@%s>\r\n\r\nYour code is 48291%d.\r\n.\r\n",
					tt.header, bot, i, strings.ReplaceAll(tt.name, " ", "."), i%10))
				c.want("250")
			}
			threads := map[string]bool{}
			for _, m := range list(t, s, in) {
				threads[m.ThreadID] = true
			}
			if len(threads) != tt.threads {
				t.Errorf("%d threads, want %d", len(threads), tt.threads)
			}
		})
	}
}
