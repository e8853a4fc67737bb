package recent_test

import (
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/store/internal/recent"
)

func TestGetReadsAgainAfterAChange(t *testing.T) {
	t.Parallel()
	var c recent.Changes
	var rows recent.Rows[string, int]
	reads := 0
	get := func() int {
		v, err := rows.Get(&c, "a", func() (int, error) { reads++; return reads, nil })
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if get() != 1 || get() != 1 {
		t.Error("a row is not remembered")
	}
	c.Add()
	if get() != 2 {
		t.Error("an old row after a change")
	}
	now := time.Now()
	if _, ok := rows.Find(&c, "a", now); !ok {
		t.Error("the row is not remembered")
	}
	if _, ok := rows.Find(&c, "a", now.Add(time.Second)); ok {
		t.Error("the row is remembered after a second")
	}
}

// A change while a row is read makes the row outdated.
func TestGetDoesNotCacheARowThatChanges(t *testing.T) {
	t.Parallel()
	var c recent.Changes
	var rows recent.Rows[string, int]
	read := func(v int, during func()) int {
		got, err := rows.Get(&c, "a", func() (int, error) { during(); return v, nil })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := read(1, c.Add); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	if got := read(2, func() {}); got != 2 {
		t.Errorf("got %d, want 2: the first row was read during a change", got)
	}
}

func TestGetRemembersNoErrors(t *testing.T) {
	t.Parallel()
	var c recent.Changes
	var rows recent.Rows[string, int]
	fault := errors.New("fault")
	if _, err := rows.Get(&c, "a", func() (int, error) { return 0, fault }); !errors.Is(err, fault) {
		t.Errorf("error %v, want %v", err, fault)
	}
	if v, err := rows.Get(&c, "a", func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("%d, %v after an error, want 7", v, err)
	}
}

func TestGetRemembersNothingWhenOff(t *testing.T) {
	t.Parallel()
	c := recent.Changes{Off: true}
	var rows recent.Rows[string, int]
	for want := range 3 {
		if v, err := rows.Get(&c, "a", func() (int, error) { return want, nil }); v != want || err != nil {
			t.Errorf("%d, %v, want %d", v, err, want)
		}
	}
}

func TestGetReadsAgainAfterAChangeOfAnotherProcess(t *testing.T) {
	t.Parallel()
	marked := int64(1)
	c := recent.Changes{Others: func() int64 { return marked }}
	var rows recent.Rows[string, int]
	for _, want := range []int{1, 1, 2, 2} {
		if want == 2 {
			marked = 2
		}
		if v, err := rows.Get(&c, "a", func() (int, error) { return want, nil }); v != want || err != nil {
			t.Errorf("%d, %v, want %d", v, err, want)
		}
	}
}
