package store

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Time is a moment as the database keeps it: UTC, an integer of microseconds
// since 1970, cut to the millisecond that the API shows, so that what a caller
// sees is what is compared.
type Time struct{ time.Time }

// NewTime returns t in UTC, cut to the millisecond.
func NewTime(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// TimePtr is NewTime for a column that may be null.
func TimePtr(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	st := NewTime(*t)
	return &st
}

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) { return t.UnixMicro(), nil }

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	us, ok := src.(int64)
	if !ok {
		return fmt.Errorf("scan %T into Time", src)
	}
	t.Time = time.UnixMicro(us).UTC()
	return nil
}
