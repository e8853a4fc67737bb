//go:build faults

package web_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// With 100,000 messages 95 % of the responses of every page take less than 50 ms, also with
// eight connections.
func TestPagesAreFastWithMuchMail(t *testing.T) {
	const messages, batch, most = 100_000, 200, 50 * time.Millisecond
	var alone sync.Mutex // one database at a time is measured
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		alone.Lock()
		defer alone.Unlock()
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
		measure := func(path string, visitors []*visitor, each int) {
			took := make([][]time.Duration, len(visitors))
			var group sync.WaitGroup
			for i, v := range visitors {
				group.Go(func() {
					for range each {
						s.clock.Add(time.Second) // and so no more than are let through in a minute
						start := time.Now()
						v.get(path).want(t, http.StatusOK)
						took[i] = append(took[i], time.Since(start))
					}
				})
			}
			group.Wait()
			all := slices.Sorted(slices.Values(slices.Concat(took...)))
			p95 := all[len(all)*95/100]
			t.Logf("%-20s connections %d median %v, p95 %v", path, len(visitors), all[len(all)/2], p95)
			if p95 > most {
				t.Errorf("%s with %d connections takes %v, want %v or less", path, len(visitors), p95, most)
			}
		}
		var visitors []*visitor
		for range 8 {
			visitors = append(visitors, s.visitAsUser(t))
		}
		for _, path := range paths {
			measure(path, visitors[:1], 21)
			measure(path, visitors, 40)
		}
	})
}
