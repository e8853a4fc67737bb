package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

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

// A stranger who writes from thousands of domains does not push those out of the comparison
// that the account writes to, or that write to it often. The sweep keeps these, too.
func TestManyDomainsHideNoLookAlike(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"bob@harbourbank.com"})
		receive := func(from string) string {
			t.Helper()
			m := storetest.Received(t, s, in, func(m *store.NewMessage) {
				m.Addresses.V.From = &mail.Address{Email: from}
				m.Content.Safety = &store.JSON[mail.Safety]{}
				m.Content.Auth = &store.JSON[mail.AuthResult]{V: mail.AuthResult{DMARC: "pass"}}
			})
			return m.Content.Safety.V.LookAlike
		}
		receive("ann@northwind.com")
		db := openRaw(t, cfg)
		db.MustExec(`UPDATE correspondents SET used_at = used_at - 86400000000`)
		receive("ann@northwind.com") // on another day
		const flood = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20100)
			INSERT INTO correspondents (account_id, address, domain, used_at)
			SELECT CAST($1 AS BIGINT), i, 'flood' || i || '.example', CAST($2 AS BIGINT) FROM n`
		db.MustExec(flood, in.AccountID, time.Now().Add(time.Minute).UnixMicro())
		for n, err := 1, error(nil); n > 0; {
			if n, err = s.Sweep(t.Context(), "correspondents"); err != nil {
				t.Fatal(err)
			}
		}
		var left int
		if err := db.Get(&left, `SELECT count(*) FROM correspondents`); err != nil || left > 20_000 || left < 19_000 {
			t.Errorf("%d correspondents are left, %v", left, err)
		}
		for from, want := range map[string]string{
			"x@northwlnd.com": "northwind.com", "x@harb0urbank.com": "harbourbank.com", "x@elsewhere.com": "", "x@northwind.com": "",
		} {
			if got := receive(from); got != want {
				t.Errorf("%s looks like %q, want %q", from, got, want)
			}
		}
	})
}
