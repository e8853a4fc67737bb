package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Only senders of this inbox count. Sent messages do not.
func TestHaveWritten(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		other := storetest.Inbox(t, s, func(o *store.Inbox) { o.AccountID = in.AccountID })
		storetest.Sent(t, s, in, []string{"sent@out.example"})
		for _, m := range []struct {
			in        store.Inbox
			from      string
			simulated bool
		}{{in, "Ann@out.example", false}, {in, "ann@out.example", false}, {in, "test@out.example", true}, {other, "other@out.example", false}} {
			storetest.Received(t, s, m.in, func(n *store.NewMessage) {
				n.Addresses.V.From, n.TestMode = &mail.Address{Email: m.from}, m.simulated
			})
		}
		asked := []string{
			"ann@out.example", "test@out.example", "other@out.example", "sent@out.example", in.Address, "", "a\x00b@out.example", "ann@out.example",
		}
		for simulated, want := range map[bool][]string{false: {"ann@out.example"}, true: {"ann@out.example", "test@out.example"}} {
			got, err := s.HaveWritten(t.Context(), in.Seq, asked, simulated)
			slices.Sort(got)
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Errorf("simulated %v, error %v, -want +got:\n%s", simulated, err, d)
			}
		}
		if got, err := s.HaveWritten(t.Context(), in.Seq, []string{"\x00"}, false); err != nil || len(got) != 0 {
			t.Errorf("who cannot be stored: %v, %v", got, err)
		}
	})
}

// Known correspondents are found by index alone, without reading messages.
// PostgreSQL chooses an index by the table's statistics, so that an empty table
// proves nothing.
func TestHaveWrittenIsFoundByIndex(t *testing.T) {
	t.Parallel()
	q, args := store.HaveWrittenQuery(1, "ann@out.example", "bob@out.example")
	plan := wantByIndex(t, storetest.OpenSQLite(t), "messages_inbox", []string{"inbox_seq="}, q, args...)
	if !strings.Contains(plan, "COVERING INDEX messages_inbox") {
		t.Errorf("messages are read:\n%s", plan)
	}
}

// wantByIndex checks that a query uses an index with these conditions, and
// returns the plan.
func wantByIndex(t *testing.T, s *store.Store, index string, conds []string, query string, args ...any) (plan string) {
	t.Helper()
	plan, err := s.Explain(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	_, by, _ := strings.Cut(plan, index)
	by, _, _ = strings.Cut(by, "Filter") // what comes to it without the index
	by = strings.ReplaceAll(by, " ", "")
	for _, cond := range conds {
		if !strings.Contains(by, cond) {
			t.Errorf("%s is not looked up in %s:\n%s", cond, index, plan)
		}
	}
	return plan
}
