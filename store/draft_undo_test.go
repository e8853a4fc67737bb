package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func approvalOf(d store.Draft) store.Approval {
	return store.Approval{DraftID: d.ID, Version: d.Version, By: "usr_1"}
}

func draft(t *testing.T, s *store.Store, d store.Draft) store.Draft {
	t.Helper()
	d, err := s.Draft(t.Context(), d.AccountID, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newDraft(t *testing.T, s *store.Store, in store.Inbox) store.Draft {
	t.Helper()
	d, err := s.CreateDraft(t.Context(), storetest.NewDraft(in), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sendDue sends a draft that is due as often as it takes: its time is the store's.
func sendDue(t *testing.T, s *store.Store, in store.Inbox, d store.Draft) (store.Message, error) {
	a := approvalOf(d)
	for {
		now, err := s.Draft(t.Context(), d.AccountID, d.ID)
		if err != nil || now.Status != store.DraftScheduled {
			return store.Message{}, errors.Join(err, store.ErrState)
		}
		a.MessageID = *now.MessageID
		m, err := s.SendDraft(t.Context(), storetest.NewSent(in, []string{"ann@out.example"}), a, nil)
		if !errors.Is(err, store.ErrState) {
			return m, err
		}
	}
}

// Of an approval by a person, its undo, an edit, and the time when the draft is due, one
// outcome remains: the draft is sent with one message and counted once, or it waits and
// nothing was sent or counted.
func TestApproveUndoAndEditHaveOneOutcome(t *testing.T) {
	t.Parallel()
	const rounds, workers = undoRounds, 20
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e)
			var sent, waiting, edited atomic.Int64
			round := func(in store.Inbox, edits bool) error {
				d := newDraft(t, s, in)
				var m store.Message
				err := atOnce(
					func() (err error) {
						sent := storetest.NewSent(in, []string{"ann@out.example"})
						if _, err = s.ScheduleDraft(t.Context(), sent, approvalOf(d), time.Duration(rand.Int64N(int64(8*time.Millisecond)))); err == nil {
							m, err = sendDue(t, s, in, d)
						}
						return err
					},
					func() error {
						time.Sleep(time.Duration(rand.Int64N(int64(10 * time.Millisecond))))
						_, err := s.UndoDraft(t.Context(), d)
						return err
					},
					func() error {
						if !edits {
							return nil
						}
						time.Sleep(time.Duration(rand.Int64N(int64(10 * time.Millisecond))))
						_, err := s.UpdateDraft(t.Context(), d.AccountID, d.ID, func(d *store.Draft) error { d.Subject = "Edited"; return nil })
						return err
					},
				)
				if err != nil {
					return err
				}
				switch got := draft(t, s, d); {
				case got.Status == store.DraftSent && got.Version == 1 && m.ID != "" && *got.MessageID == m.ID && *got.DecidedBy == "usr_1":
					sent.Add(1)
				case got.Status == store.DraftPending && m.ID == "" && got.MessageID == nil && got.DecidedBy == nil && got.SendAfter == nil:
					waiting.Add(1)
					if got.Version == 2 {
						edited.Add(1)
					}
				default:
					return fmt.Errorf("the draft is %s in version %d, and the message %q", got.Status, got.Version, m.ID)
				}
				return nil
			}
			var all sync.WaitGroup
			many := int64(10 * rounds)
			inboxes := make([]store.Inbox, workers)
			for i := range inboxes {
				inboxes[i] = storetest.Inbox(t, s, func(in *store.Inbox) {
					in.Limits = &store.JSON[store.Limits]{V: store.Limits{SendsPerDay: &many}}
				})
				all.Go(func() {
					for n := range rounds / workers {
						if err := round(inboxes[i], n%2 == 0); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			counted := int64(0)
			for _, in := range inboxes {
				uses, err := s.BudgetUses(t.Context(), in.AccountID, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range uses {
					counted += u.Used
				}
			}
			t.Logf("%d sent, %d wait, %d of them edited", sent.Load(), waiting.Load(), edited.Load())
			if sent.Load()+waiting.Load() != rounds || counted != sent.Load() {
				t.Errorf("%d sent and %d counted, %d wait, of %d drafts", sent.Load(), counted, waiting.Load(), rounds)
			}
		})
	}
}

// Of 20 decisions at once one holds, and at most one message leaves.
func TestManyDecisionsAtOnceHaveOneOutcome(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		for range 10 {
			d := newDraft(t, s, in)
			var held atomic.Int64
			var messages sync.Map
			count := func(err error) error {
				if err == nil {
					held.Add(1)
				}
				return err
			}
			var all []func() error
			for i := range 20 {
				all = append(all, func() error {
					m := storetest.NewSent(in, []string{"ann@out.example"})
					switch i % 3 {
					case 0:
						_, err := s.ScheduleDraft(t.Context(), m, approvalOf(d), time.Hour)
						return count(err)
					case 1:
						sent, err := s.SendDraft(t.Context(), m, approvalOf(d), nil)
						if err == nil {
							messages.Store(sent.ID, true)
						}
						return count(err)
					}
					_, err := s.RejectDraft(t.Context(), d.AccountID, d.ID, "usr_2", nil, nil)
					return count(err)
				})
			}
			if err := atOnce(all...); err != nil {
				t.Fatal(err)
			}
			got, sent := draft(t, s, d), 0
			messages.Range(func(id, _ any) bool {
				sent++
				return *got.MessageID == id
			})
			if held.Load() != 1 || (sent == 1) != (got.Status == store.DraftSent) || sent > 1 {
				t.Errorf("%d decisions hold, %d messages, and the draft is %s", held.Load(), sent, got.Status)
			}
		}
	})
}

// A scheduled draft changes by the steps that its state has, and by no others; it is due
// at its time, and can be undone until then.
func TestStepsOfAScheduledDraft(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		d := newDraft(t, s, in)
		schedule := func() store.Draft {
			t.Helper()
			if _, err := s.ScheduleDraft(t.Context(), storetest.NewSent(in, []string{"ann@out.example"}), approvalOf(draft(t, s, d)), 10*time.Second); err != nil {
				t.Fatal(err)
			}
			return draft(t, s, d)
		}
		due := func(want int) {
			t.Helper()
			if ds, err := s.DueDrafts(t.Context(), store.Draft{}, 10); err != nil || len(ds) != want {
				t.Errorf("%d drafts are due, want %d: %v", len(ds), want, err)
			}
		}
		at := schedule()
		if next, err := s.NextOutgoing(t.Context()); err != nil || next == nil || !next.Equal(at.SendAfter.Time) {
			t.Errorf("the next is due at %v, %v", next, err)
		}
		a := approvalOf(at)
		a.MessageID = *at.MessageID
		m := storetest.NewSent(in, []string{"ann@out.example"})
		early := map[string]func() error{
			"send":     func() error { _, err := s.SendDraft(t.Context(), m, a, nil); return err },
			"approve":  func() error { _, err := s.SendDraft(t.Context(), m, approvalOf(at), nil); return err },
			"schedule": func() error { _, err := s.ScheduleDraft(t.Context(), m, approvalOf(at), 0); return err },
			"reject":   func() error { _, err := s.RejectDraft(t.Context(), in.AccountID, at.ID, "usr_1", nil, nil); return err },
			"return":   func() error { return s.ReturnDraft(t.Context(), at, "because") },
			"delay":    func() error { return s.DelayDraft(t.Context(), at, store.NewTime(begin.Add(time.Hour))) },
			"edit": func() error {
				_, err := s.UpdateDraft(t.Context(), in.AccountID, at.ID, func(d *store.Draft) error { d.Subject = "x"; return nil })
				return err
			},
		}
		for name, do := range early {
			if err := do(); !errors.Is(err, store.ErrState) {
				t.Errorf("%s before it is due: %v", name, err)
			}
		}
		due(0)
		clock.Add(10 * time.Second)
		due(1)
		if _, err := s.UndoDraft(t.Context(), at); !errors.Is(err, store.ErrState) {
			t.Errorf("undo when it is due: %v", err)
		}
		if err := early["delay"](); err != nil {
			t.Fatal(err)
		}
		due(0)
		if _, err := s.UndoDraft(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		at = schedule()
		clock.Add(10 * time.Second)
		if err := s.ReturnDraft(t.Context(), at, "because"); err != nil {
			t.Fatal(err)
		}
		at = draft(t, s, at)
		if w := at.Content.Warnings.V; at.Status != store.DraftPending || at.Version != 2 || len(w) != 1 || w[0].Code != store.WarnNotSent || w[0].Value != "because" {
			t.Errorf("after a refusal: %s, version %d, %+v", at.Status, at.Version, w)
		}
		at = schedule()
		clock.Add(10 * time.Second)
		sent, err := sendDue(t, s, in, at)
		if got := draft(t, s, at); err != nil || got.Status != store.DraftSent || *got.MessageID != *at.MessageID || sent.ID != *at.MessageID || !got.DecidedAt.Equal(at.DecidedAt.Time) {
			t.Errorf("%v; sent as %s, planned as %v", err, sent.ID, *at.MessageID)
		}
		due(0)
	})
}
