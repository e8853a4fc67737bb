package webhook_test

import (
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A result that cannot be recorded at once is recorded later, without posting
// the event again.
func TestResultsAreRecordedWithRetries(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	db := sqlx.MustConnect("postgres", cfg.Database)
	t.Cleanup(func() { _ = db.Close() })
	// Make statements of the store fail quickly if another transaction blocks
	// them.
	address, err := url.Parse(cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	q := address.Query()
	q.Set("lock_timeout", "200")
	address.RawQuery = q.Encode()
	cfg.Database = address.String()
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s)
	receiver := newReceiver(t)
	w, _ := newEndpoint(t, s, in.AccountID, receiver.URL)
	storetest.Received(t, s, in)

	// While the endpoint handles the request, another transaction locks the delivery.
	var locked sync.WaitGroup
	receiver.respond(func(http.ResponseWriter, *http.Request) {
		held, err := db.Beginx()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := held.Exec(`SELECT 1 FROM webhook_deliveries FOR UPDATE`); err != nil {
			t.Error(err)
		}
		locked.Go(func() {
			defer func() { _ = held.Rollback() }() // it was only read
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for waited, waiting := false, false; !waited || waiting; <-tick.C { // until the store has failed once
				const q = `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
				if err := db.Get(&waiting, q); err != nil {
					t.Error(err)
					return
				}
				waited = waited || waiting
			}
		})
	})
	d := newDispatcher(t, s, time.Now)
	runOnce(t, d, 1)
	locked.Wait()
	if n := len(receiver.got()); n != 1 {
		t.Errorf("%d posts, want 1", n)
	}
	all := deliveries(t, s, w)
	if len(all) != 1 || all[0].Status != store.DeliverySucceeded || all[0].Attempts != 1 {
		t.Errorf("the delivery is %+v", all)
	}
}
