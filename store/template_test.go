package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// newTemplate stores a template with this name and html.
func newTemplate(t *testing.T, s *store.Store, accountID int64, name, html string) store.Template {
	t.Helper()
	made, err := s.CreateTemplate(t.Context(), store.Template{AccountID: accountID, Name: name, Subject: "Hello", HTML: html}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTemplateIsChangedByItsAccountOnly(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(begin)
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		mine, other := storetest.Account(t, s).Seq, storetest.Account(t, s).Seq
		made := newTemplate(t, s, mine, "welcome", "<p>{{ñame}}</p>")
		rename := func(tm *store.Template) { tm.Name = "renamed" }

		_, err := s.Template(t.Context(), other, made.ID)
		_, updateErr := s.UpdateTemplate(t.Context(), other, made.ID, rename)
		for _, err := range []error{err, updateErr, s.DeleteTemplate(t.Context(), other, made.ID)} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("of another account: %v", err)
			}
		}
		if got, err := s.Template(t.Context(), mine, made.ID); err != nil || cmp.Diff(made, got) != "" {
			t.Errorf("%v\n%s", err, cmp.Diff(made, got))
		}
		clock.Add(time.Minute)
		changed, err := s.UpdateTemplate(t.Context(), mine, made.ID, rename)
		if err != nil || changed.Name != "renamed" || !changed.UpdatedAt.After(made.UpdatedAt.Time) || changed.CreatedAt != made.CreatedAt {
			t.Errorf("%v: %+v", err, changed)
		}
		if err := s.DeleteTemplate(t.Context(), mine, made.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteTemplate(t.Context(), mine, made.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("deleted twice: %v", err)
		}
	}, storetest.WithNow(clock.Now))
}

// TestPageOfTemplatesEnds where their texts become too much to hold.
func TestPageOfTemplatesEnds(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		mine := storetest.Account(t, s).Seq
		var want []string
		for i := range 11 {
			html := "small"
			if i > 0 && i < 10 {
				html = strings.Repeat("ä", 1_000_000)
			}
			want = append(want, newTemplate(t, s, mine, "t", html).ID)
		}
		newTemplate(t, s, storetest.Account(t, s).Seq, "of another", "small")
		slices.Reverse(want)
		var got []string
		var sizes []int
		for cursor, more := "", true; more; more = cursor != "" {
			l, err := s.ListTemplates(t.Context(), mine, store.Page{Limit: 100, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, tm := range l.Rows {
				got = append(got, tm.ID)
			}
			sizes, cursor = append(sizes, len(l.Rows)), l.Cursor
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]int{9, 2}, sizes); d != "" {
			t.Error(d)
		}
	})
}
