package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestNoteIsTakenOnceByItsSessionBeforeItExpires(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		person(t, s, clock, "ann")
		ann, bob := store.HashKey("ann's session"), store.HashKey("bob's session")
		person(t, s, clock, "bob")
		leave := func(session []byte, subject, secret string) {
			t.Helper()
			if err := s.LeaveNote(t.Context(), session, subject, secret); err != nil {
				t.Fatal(err)
			}
		}
		leave(ann, "key_1", "first")
		leave(ann, "key_1", "second")
		_, err := s.TakeNote(t.Context(), bob, "key_1")
		wantNotFound(t, "the note of another session", err)
		_, err = s.TakeNote(t.Context(), ann, "key_2")
		wantNotFound(t, "another subject", err)
		if got, err := s.TakeNote(t.Context(), ann, "key_1"); err != nil || got != "second" {
			t.Errorf("the note is %q, %v; want the later one", got, err)
		}
		_, err = s.TakeNote(t.Context(), ann, "key_1")
		wantNotFound(t, "a note that was taken", err)

		leave(ann, "key_1", "third")
		leave(bob, "key_1", "fourth")
		if err := s.EndSession(t.Context(), bob); err != nil {
			t.Errorf("end a session that has a note: %v", err)
		}
		clock.Add(store.SessionNoteTTL)
		_, err = s.TakeNote(t.Context(), ann, "key_1")
		wantNotFound(t, "a note that has expired", err)
		if n, err := s.Sweep(t.Context(), "session_notes"); n != 1 || err != nil {
			t.Errorf("swept %d notes, %v; want the one that has expired", n, err)
		}
		wantNotFound(t, "a note for a session that has ended", s.LeaveNote(t.Context(), bob, "key_1", "fifth"))
	})
}

// A copy of the database does not show the secret.
func TestNoteIsEncryptedAtRest(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now())
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		person(t, s, clock, "ann")
		if err := s.LeaveNote(t.Context(), store.HashKey("ann's session"), "key_1", "sk_live_secret"); err != nil {
			t.Fatal(err)
		}
		var sealed string
		if err := openRaw(t, cfg).Get(&sealed, `SELECT sealed FROM session_notes`); err != nil {
			t.Fatal(err)
		}
		if sealed == "" || strings.Contains(sealed, "secret") {
			t.Errorf("the row holds %q", sealed)
		}
	})
}
