package safety

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// The short way of plain names leads where the long way does, which a capital letter takes.
func TestSkeletonOfPlainNames(t *testing.T) {
	t.Parallel()
	letters := []string{"a", "l", "1", "0", "o", "rn", "vv", "r", "n", "v", "m", "-", ".", "--", "-.", ".-", "xn", "9"}
	for range 20_000 {
		var b strings.Builder
		for range 1 + rand.N(9) {
			b.WriteString(letters[rand.N(len(letters))])
		}
		plain, capital := Skeleton(b.String()+"z"), Skeleton(b.String()+"Z")
		if plain != capital {
			t.Fatalf("%q: %q, written with a capital letter %q", b.String()+"z", plain, capital)
		}
	}
}
