package store_test

import (
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

// BenchmarkMailboxByAddress is what every RCPT asks.
func BenchmarkMailboxByAddress(b *testing.B) {
	s := storetest.OpenSQLite(b)
	in := storetest.Inbox(b, s)
	for b.Loop() {
		if _, err := s.MailboxByAddress(b.Context(), 0, in.Address, ""); err != nil {
			b.Fatal(err)
		}
	}
}
