package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Everything that changes drafts at once, while their threads become parts of
// others and their messages are deleted: no one waits for one who waits for him,
// and each sent draft is one message. Not parallel: locks have time limits, and tests beside
// it take the time.
func TestDraftWritersNeverMeetALock(t *testing.T) { //nolint:paralleltest // see above
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		before := deadlocks(t, cfg)
		account := storetest.Account(t, s).Seq
		var workers sync.WaitGroup
		for range 4 {
			in := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = account })
			for w := range 3 {
				workers.Go(func() {
					for round := range 10 {
						if err := draftRound(t.Context(), s, in, w, round); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			workers.Go(func() {
				for range 20 {
					if _, err := s.ExpireInbox(t.Context(), in.Seq, store.Time{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
		var sent, messages int
		db := openRaw(t, cfg)
		if err := db.Get(&sent, `SELECT count(*) FROM drafts WHERE status = 'sent'`); err != nil {
			t.Fatal(err)
		}
		if err := db.Get(&messages, `SELECT count(*) FROM messages m JOIN drafts d ON d.message_id = m.id AND d.status = 'sent'
			WHERE m.direction = 'out' AND m.thread_seq = d.thread_seq`); err != nil {
			t.Fatal(err)
		}
		if n := count(t, cfg, "drafts"); n != 4*3*10 || sent == 0 || messages != sent {
			t.Errorf("%d drafts, %d of them sent, as %d messages", n, sent, messages)
		}
		if n := deadlocks(t, cfg) - before; n > 0 {
			t.Errorf("%d deadlocks", n)
		}
	})
}

// draftRound drafts a reply to a message and sends it, while the thread of the mail
// becomes part of another, and the draft is edited or rejected.
func draftRound(ctx context.Context, s *store.Store, in store.Inbox, worker, round int) error {
	late, root := fmt.Sprintf("<late-%d-%d@x>", worker, round), fmt.Sprintf("<root-%d-%d@x>", worker, round)
	var source store.Message
	for _, m := range []threadMail{{reply: late}, {id: root}} {
		ms, err := s.AddReceived(ctx, []*store.NewMessage{storetest.NewReceived(in, m.edit)}, nil)
		if err != nil {
			return err
		}
		if m.id != root {
			source = ms[0]
		}
	}
	d, err := s.CreateDraft(ctx, storetest.NewDraft(in, func(n *store.NewDraft) {
		n.Kind, n.SourceID, n.ThreadSeq, n.ThreadID = store.DraftReply, &source.ID, &source.ThreadSeq, &source.ThreadID
	}), nil)
	if err != nil {
		return err
	}
	return atOnce(
		func() error { // makes one of both threads
			_, err := s.AddReceived(ctx, []*store.NewMessage{storetest.NewReceived(in, threadMail{id: late, reply: root}.edit)}, nil)
			return err
		},
		func() error {
			m := storetest.NewSent(in, []string{"ann@out.example"}, func(m *store.NewMessage) { m.NewThread, m.JoinThread = false, source.ThreadSeq })
			_, err := s.SendDraft(ctx, m, approvalOf(d), nil)
			return err
		},
		func() (err error) {
			switch round % 3 {
			case 0:
				_, err = s.UpdateDraft(ctx, in.AccountID, d.ID, func(d *store.Draft) error { d.Content.Text = "Edited."; return nil })
			case 1:
				_, err = s.RejectDraft(ctx, in.AccountID, d.ID, "key_2", nil, nil)
			}
			return err
		},
		func() error { return s.DeleteMessage(ctx, in.AccountID, source.ID) },
	)
}

// atOnce runs all functions concurrently, and returns their errors except those
// for being too late.
func atOnce(all ...func() error) error {
	errs := make([]error, len(all))
	var calls sync.WaitGroup
	for i, do := range all {
		calls.Go(func() { errs[i] = do() })
	}
	calls.Wait()
	for i, err := range errs {
		if errors.Is(err, store.ErrState) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// A draft is in the thread that its message is in when the draft is stored, not
// in one that has become part of another meanwhile, or is deleted.
func TestDraftThreadExists(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		source := storetest.Received(t, s, in, threadMail{reply: "<late@x>"}.edit)
		reply := storetest.NewDraft(in, func(n *store.NewDraft) {
			n.Kind, n.SourceID, n.ThreadSeq, n.ThreadID = store.DraftReply, &source.ID, &source.ThreadSeq, &source.ThreadID
		})
		for _, id := range []string{"<root@x>", "<other@x>"} { // the larger thread stays
			storetest.Received(t, s, in, threadMail{id: id, reply: "<root@x>"}.edit)
		}
		whole := storetest.Received(t, s, in, threadMail{id: "<late@x>", reply: "<root@x>"}.edit)
		if whole.ThreadID == source.ThreadID {
			t.Fatal("the thread of the source became no part of another")
		}

		d, err := s.CreateDraft(t.Context(), reply, nil)
		if err != nil || d.ThreadID == nil || *d.ThreadID != whole.ThreadID || *d.ThreadSeq != whole.ThreadSeq {
			t.Errorf("the draft is in thread %v, error %v, want %s", d.ThreadID, err, whole.ThreadID)
		}
		if kept, err := s.Draft(t.Context(), in.AccountID, d.ID); err != nil || *kept.ThreadID != whole.ThreadID {
			t.Errorf("the draft is kept in thread %v, error %v, want %s", kept.ThreadID, err, whole.ThreadID)
		}
		if err := s.DeleteMessage(t.Context(), in.AccountID, source.ID); err != nil {
			t.Fatal(err)
		}
		if d, err = s.CreateDraft(t.Context(), reply, nil); err != nil || d.ThreadID != nil || d.ThreadSeq != nil {
			t.Errorf("the draft is in thread %v, which does not exist, error %v", d.ThreadID, err)
		}
	})
}
