package batch

import (
	"testing"

	"github.com/postroom/postroom/store/internal/engine"
)

func TestValuesNumbersItsPlaceholders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		database string
		rows     int
		types    []string
		want     string
	}{
		{"postgres://x", 2, []string{"", "bigint"}, "($1, cast($2 AS bigint)), ($3, cast($4 AS bigint))"},
		{"postgres://x", 3, []string{""}, "($1), ($2), ($3)"},
		{"file", 1, []string{"", ""}, "(?, ?)"},
	} {
		if got := Values(engine.New(tt.database, 0), tt.rows, tt.types); got != tt.want {
			t.Errorf("%d rows of %q: %s, want %s", tt.rows, tt.types, got, tt.want)
		}
	}
}
