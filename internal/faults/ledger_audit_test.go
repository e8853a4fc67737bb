package faults_test

import "testing"

// TestLedgerFindsFaults shows that the audit that all tests rely on can fail.
func TestLedgerFindsFaults(t *testing.T) {
	t.Parallel()
	byInbox := map[string]string{"a@faults.example": "ibx_a", "b@faults.example": "ibx_b"}
	one, both := []string{"a@faults.example"}, []string{"a@faults.example", "b@faults.example"}
	tests := []struct {
		name       string
		entry      entry
		copies     map[string]int
		refusedToo bool
		want       string
	}{
		{name: "accepted and stored", entry: entry{outcome: accepted, to: one}, copies: map[string]int{"ibx_a": 1}},
		{
			name: "accepted and lost", entry: entry{outcome: accepted, to: one},
			want: "was accepted and is not stored for a@faults.example",
		},
		{
			name: "accepted and stored twice", entry: entry{outcome: accepted, to: one}, copies: map[string]int{"ibx_a": 2},
			want: "is stored 2 times for a@faults.example",
		},
		{
			name: "accepted and lost for one of two", entry: entry{outcome: accepted, to: both}, copies: map[string]int{"ibx_a": 1},
			want: "was accepted and is not stored for b@faults.example",
		},
		{name: "no response and stored", entry: entry{outcome: unknown, to: both}, copies: map[string]int{"ibx_a": 1, "ibx_b": 1}},
		{name: "no response and not stored", entry: entry{outcome: unknown, to: both}},
		{
			name: "no response and stored for one of two", entry: entry{outcome: unknown, to: both}, copies: map[string]int{"ibx_b": 1},
			want: "is stored for some of its recipients, and not for a@faults.example",
		},
		{
			name: "no response and stored twice", entry: entry{outcome: unknown, to: one}, copies: map[string]int{"ibx_a": 2},
			want: "is stored 2 times for a@faults.example",
		},
		{
			name: "refused and stored", entry: entry{outcome: refused, to: one}, copies: map[string]int{"ibx_a": 1},
			want: "was refused and is stored for a@faults.example",
		},
		{
			name: "refused and stored, where that is allowed", entry: entry{outcome: refused, to: one},
			copies: map[string]int{"ibx_a": 1}, refusedToo: true,
		},
		{name: "refused and not stored", entry: entry{outcome: refused, to: one}},
		{
			name: "stored in the wrong inbox", entry: entry{outcome: accepted, to: one},
			copies: map[string]int{"ibx_a": 1, "ibx_b": 1}, want: "is stored in 2 inboxes, and was for 1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.entry.fault(tt.copies, byInbox, tt.refusedToo); got != tt.want {
				t.Errorf("fault = %q, want %q", got, tt.want)
			}
		})
	}
}
