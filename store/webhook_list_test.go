package store_test

import (
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A page reads so many deliveries and no more, however rare what it is asked
// for: all pages together hold what there is.
func TestPagesOfRareDeliveries(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		w, _ := newHook(t, s, in.AccountID)
		for range 100 {
			storetest.Received(t, s, in)
		}
		all := hookDeliveries(t, s, w, store.DeliveryFilter{})
		if len(all) != 100 {
			t.Fatalf("%d deliveries, want 100", len(all))
		}
		s.Narrow(20, 20, 20, 20, 20)
		tests := []struct {
			name  string
			f     store.DeliveryFilter
			want  int
			pages int
		}{
			{"all", store.DeliveryFilter{}, 100, 15},
			{"of a common type", store.DeliveryFilter{EventType: store.EventMessageReceived}, 100, 15},
			{"of a status without deliveries", store.DeliveryFilter{Status: store.DeliveryFailed}, 0, 5},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				got, pages, cursor := 0, 0, ""
				for first := true; first || cursor != ""; first = false {
					l, err := s.ListDeliveries(t.Context(), w, tt.f, store.Page{Limit: 7, Cursor: cursor})
					if err != nil {
						t.Fatal(err)
					}
					got, pages, cursor = got+len(l.Rows), pages+1, l.Cursor
				}
				if got != tt.want || pages < tt.pages {
					t.Errorf("%d deliveries on %d pages, want %d on at least %d", got, pages, tt.want, tt.pages)
				}
			})
		}
	})
}
