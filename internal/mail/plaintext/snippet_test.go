package plaintext

import (
	"strings"
	"testing"
)

func TestSnippet(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"one line", "Hello\r\n\r\n  world\t!", "Hello world !"},
		{"invisible filler", "Hi \u200c \u034f \u200b\u00ad there\ufeff", "Hi there"},
		{"nothing", " \r\n", ""},
		{"200 characters", strings.Repeat("ü", 300), strings.Repeat("ü", 200)},
		{"no space at the end", strings.Repeat("x", 199) + " y", strings.Repeat("x", 199)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Snippet(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
