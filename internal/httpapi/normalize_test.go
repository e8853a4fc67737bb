package httpapi

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// otherForm is what mayNormalize looks for.
var otherForm = regexp.MustCompile(`:\s*-?[0-9]+(?:\.[0-9]|[eE])|"(?:expires_at|scheduledAt|since)"`)

// parts are pieces of bodies that may need rewriting, and of those that do not.
var parts = []string{
	`"`, `:`, `-`, `.`, `e`, `E`, `0`, `17`, ` `, "\n", "\t", "\f", `\"`, `,`, `{`, `}`, `a`, `expires_at`, `scheduledAt`, `since`, `"since"`, `since"`, `: 7.0`, `:-1e2`, `é`,
}

func TestMayNormalize(t *testing.T) {
	t.Parallel()
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "body"), "")
		want := otherForm.MatchString(body)
		seen[want]++
		if got := mayNormalize([]byte(body)); got != want {
			t.Fatalf("mayNormalize(%q) = %t, want %t", body, got, want)
		}
	})
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("the bodies do not differ: %v", seen)
	}
}

func TestNormalizeBody(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"limit":7.0}`:                    `{"limit":7}`,
		`{"limit": -1e2,"n":1.5}`:          `{"limit": -100,"n":1.5}`,
		`{"text":"at 10:30.5 sharp"}`:      `{"text":"at 10:30.5 sharp"}`,
		`{"metadata":{"a":7.0},"b":7.0}`:   `{"metadata":{"a":7.0},"b":7}`,
		`{"text":"no numbers"}`:            `{"text":"no numbers"}`,
		`{"since":"2026-01-02 03:04:05Z"}`: `{"since":"2026-01-02T03:04:05Z"}`,
		`not JSON: 7.0`:                    `not JSON: 7.0`,
	} {
		if got := string(NormalizeBody([]byte(body))); got != want {
			t.Errorf("NormalizeBody(%s) = %s, want %s", body, got, want)
		}
	}
}

// BenchmarkNormalizeBody reads a request with a text of 4 KB.
func BenchmarkNormalizeBody(b *testing.B) {
	body := []byte(`{"to":"reader@out.example","subject":"Your receipt 17","text":"` +
		strings.Repeat(`The order is on its way: your account shows where it has been so far.\n`, 56) + `"}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		NormalizeBody(body)
	}
}
