package faults_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/search"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// latencies are durations in rising order.
type latencies []time.Duration

// at returns a percentile.
func (l latencies) at(percent int) time.Duration { return l[(len(l)-1)*percent/100] }

// withStore opens the database of an installation that is stopped.
func (in *installation) withStore(do func(s *store.Store)) {
	in.t.Helper()
	cfg := storetest.EmptyConfig(in.t, storetest.SQLite)
	cfg.Database = in.database
	s, err := store.Open(in.t.Context(), cfg)
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			in.t.Error(err)
		}
	}()
	do(s)
}

// index adds all messages to the full-text index.
func (in *installation) index(s *store.Store) {
	in.t.Helper()
	const holder = "idx_test"
	for n := 1; n > 0; {
		var err error
		if n, err = s.Index(in.t.Context(), holder, 64, search.Text); err != nil {
			in.t.Fatal(err)
		}
		if _, err := s.MergeIndexSome(in.t.Context()); err != nil {
			in.t.Fatal(err)
		}
	}
	if err := s.ReleaseIndex(in.t.Context(), holder); err != nil { // else the next indexer waits
		in.t.Fatal(err)
	}
}

func (in *installation) inboxOf(s *store.Store, box inbox) store.Inbox {
	in.t.Helper()
	found, err := s.InboxAt(in.t.Context(), 0, box.Address)
	if err != nil {
		in.t.Fatal(err)
	}
	return found
}

// storeMany stores messages of 4 KB, each with about 60 different words, in
// batches by several senders.
func (in *installation) storeMany(s *store.Store, to store.Inbox, n int) {
	in.t.Helper()
	const batch, senders = 250, 4
	var all sync.WaitGroup
	for first := range senders {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(first), uint64(n))) //nolint:gosec // no secret
			for at := first * batch; at < n; at += senders * batch {
				copies := make([]*store.NewMessage, batch)
				for i := range copies {
					copies[i] = storetest.NewReceived(to, func(m *store.NewMessage) {
						text := someWords(r)
						m.Content.Body = &store.JSON[store.Body]{V: store.Body{Text: text}}
						m.Content.Raw = []byte(strings.Repeat("Header: value\r\n", 200) + "\r\n" + text)
						m.NewThread = true
					})
				}
				if _, err := s.AddReceived(in.t.Context(), copies, nil); err != nil {
					in.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func someWords(r *rand.Rand) string {
	var text strings.Builder
	for range 60 {
		// Few words are common and many are rare.
		fmt.Fprintf(&text, "word%d ", int(1/(r.Float64()+1e-5)))
	}
	return text.String()
}
