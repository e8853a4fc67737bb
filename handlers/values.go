package handlers

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// pageSize is the default page size.
const pageSize = 20

func pageOf(limit gen.OptInt, cursor gen.OptString) store.Page {
	return store.Page{Limit: limit.Or(pageSize), Cursor: cursor.Or("")}
}

// nextCursor is null on the last page.
func nextCursor(c string) gen.NilString {
	if c == "" {
		return gen.NilString{Null: true}
	}
	return gen.NewNilString(c)
}

func nilString(s *string) gen.NilString {
	if s == nil {
		return gen.NilString{Null: true}
	}
	return gen.NewNilString(*s)
}

// emptyIsNull converts "", which the store uses for no text, to null.
func emptyIsNull(s string) gen.NilString {
	if s == "" {
		return gen.NilString{Null: true}
	}
	return gen.NewNilString(s)
}

func nilTime(t *store.Time) gen.NilDateTime {
	if t == nil {
		return gen.NilDateTime{Null: true}
	}
	return gen.NewNilDateTime(t.Time)
}

// optional is the interface that the generated OptX types share.
type optional[T any] interface {
	Get() (T, bool)
}

// patch sets dst if the field is present.
func patch[T any](dst *T, field optional[T]) {
	if v, ok := field.Get(); ok {
		*dst = v
	}
}

// futureTime returns an error for a time that is not in the future.
func (a *API) futureTime(field string, t time.Time) (*store.Time, error) {
	if !t.After(a.now()) {
		return nil, httpapi.Invalid(field, "must be in the future")
	}
	st := store.NewTime(t)
	return &st, nil
}

// fieldPath returns the path of a field of a list item, such as
// attachments[2].content.
func fieldPath(list string, i int, field string) string {
	return list + "[" + strconv.Itoa(i) + "]." + field
}

// sortHeaders sorts header fields from a map, so that their order is stable.
func sortHeaders(h [][2]string) {
	slices.SortFunc(h, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
}
