package nearname

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"to", "cc", "bcc", "from", "subject", "text", "html", "limit", "inbox_id", "scheduledAt", "templateData"}
	tests := []struct{ name, want string }{
		{"sujbect", "subject"},
		{"subjet", "subject"},
		{"form", "from"},
		{"limt", "limit"},
		{"inboxId", "inbox_id"},
		{"inbox-id", "inbox_id"},
		{"scheduled_at", "scheduledAt"},
		{"Subject", "subject"},
		{"template_data", "templateData"},
		{"bc", "cc"},
		{"x", ""},
		{"", ""},
		{"body", ""},
		{"recipients", ""},
		{"limits_of_all", ""},
		{"\xff\x00", ""},
		{strings.Repeat("s", 1<<20), ""},
	}
	for _, tt := range tests {
		if got := Nearest(tt.name, known); got != tt.want {
			t.Errorf("Nearest(%.20q) is %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	if got := Hint("limt", []string{"limit"}); got != ": did you mean limit?" {
		t.Errorf("the hint is %q", got)
	}
	if got := Hint("zebra", []string{"limit"}); got != "" {
		t.Errorf("the hint of a name like none is %q", got)
	}
}
