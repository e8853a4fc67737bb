package store

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
)

// JSON is a column that holds V as JSON text.
type JSON[T any] struct{ V T }

// Value implements driver.Valuer.
func (j JSON[T]) Value() (driver.Value, error) {
	b, err := json.Marshal(j.V)
	if err != nil {
		return nil, fmt.Errorf("write JSON column: %w", err)
	}
	return string(b), nil
}

// Scan implements sql.Scanner.
func (j *JSON[T]) Scan(src any) error {
	var b []byte
	switch v := src.(type) {
	case string:
		b = []byte(v)
	case []byte:
		b = v
	default:
		return fmt.Errorf("scan %T into a JSON column", src)
	}
	if err := json.Unmarshal(b, &j.V); err != nil {
		return fmt.Errorf("read JSON column: %w", err)
	}
	return nil
}
