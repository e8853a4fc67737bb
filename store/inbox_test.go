package store_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A call may be interrupted at any time, but its result must be true.
func TestResultOfACancelledCallIsTrue(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s).Seq
		for i := range 200 {
			in := storetest.NewInbox(func(in *store.Inbox) { in.AccountID = account })
			ctx, cancel := contextEndingAfter(t, time.Duration(i)*20*time.Microsecond)
			_, created := s.CreateInbox(ctx, in, nil)
			cancel()
			_, there := s.MailboxByAddress(t.Context(), 0, in.Address, "")
			if (created == nil) != (there == nil) {
				t.Fatalf("round %d: got %v, then found %v", i, created, there)
			}
		}
	})
}
