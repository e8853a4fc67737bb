//go:build faults

package web_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// With 100,000 messages the median response time of every page is below 50 ms.
func TestPagesAreFastWithMuchMail(t *testing.T) {
	const messages, batch, most = 100_000, 200, 50 * time.Millisecond
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := newSite(t, cfg)
		in := storetest.Inbox(t, s.store, func(in *store.Inbox) { in.AccountID = s.account })
		for range messages / batch {
			s.clock.Add(time.Second)
			var ms []*store.NewMessage
			for range batch {
				ms = append(ms, storetest.NewReceived(in))
			}
			_, err := s.store.AddReceived(t.Context(), ms, nil)
			must(t, err)
		}
		for i := range 500 {
			storetest.Email(t, s.store, s.account, []string{fmt.Sprintf("reader%d@out.example", i)})
			storetest.Sent(t, s.store, in, []string{"ann@out.example"})
		}
		if strings.HasPrefix(cfg.Database, "postgres") { // what autovacuum does within a minute
			db, err := sql.Open("postgres", cfg.Database)
			must(t, err)
			_, err = db.ExecContext(t.Context(), "ANALYZE")
			must(t, err)
			must(t, db.Close())
		}
		paths := append(web.NavigationPaths(), "/emails/messages", "/?days=90", "/emails?to=none%40out.example", "/emails?status=failed", "/emails/messages?to=none%40out.example")
		l, err := s.api.ListEmails(s.asUser(t), gen.ListEmailsParams{})
		must(t, err)
		paths = append(paths, "/emails/"+l.Data[0].ID)
		v := s.visitAsUser(t)
		for _, path := range paths {
			var took []time.Duration
			for range 21 {
				s.clock.Add(time.Second) // and so no more than are let through in a minute
				start := time.Now()
				v.get(path).want(t, http.StatusOK)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			t.Logf("%-20s median %v, p95 %v", path, took[10], took[19])
			if took[10] > most {
				t.Errorf("%s takes %v, want %v or less", path, took[10], most)
			}
		}
	})
}
