package reply

import (
	"strings"
	"testing"
)

// BenchmarkText reads a message of 4 KB that quotes nothing.
func BenchmarkText(b *testing.B) {
	text := strings.Repeat("The order is on its way, and your account shows where it has been so far.\n", 54)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if Text(text, nil) == "" {
			b.Fatal("no text")
		}
	}
}
