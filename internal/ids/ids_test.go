package ids_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/ids"
)

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

func valid(r *rand.Rand) string {
	id := "msg_"
	for len(id) < ids.Length-1 {
		id += string(alphabet[r.IntN(len(alphabet))])
	}
	return id + string(ids.Check(id))
}

// Each wrong character and each pair of exchanged characters is found, wherever it
// is, and so is another prefix.
func TestTyposAreFound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	tried := 0
	wrong := func(id, typed string) {
		tried++
		if want := typed + " looks mistyped: its check character does not match"; ids.Typo(typed) != want {
			t.Fatalf("%s typed as %s: %q, want %q", id, typed, ids.Typo(typed), want)
		}
	}
	for range 200 {
		id := valid(r)
		if typo := ids.Typo(id); typo != "" {
			t.Fatal(typo)
		}
		wrong(id, "ibx_"+id[4:])
		for i := 4; i < len(id); i++ {
			for _, c := range []byte(alphabet + "iloUX") {
				if c != id[i] {
					wrong(id, id[:i]+string(c)+id[i+1:])
				}
			}
			for j := i + 1; j < len(id); j++ {
				if id[i] != id[j] {
					b := []byte(id)
					b[i], b[j] = b[j], b[i]
					wrong(id, string(b))
				}
			}
		}
	}
	if tried < 100_000 {
		t.Errorf("tried %d", tried)
	}
}

func TestOtherTextsAreNotTypos(t *testing.T) {
	t.Parallel()
	id := valid(rand.New(rand.NewPCG(3, 4))) //nolint:gosec // repeatable
	for text, want := range map[string]string{
		id[:19]:                           id[:19] + " looks mistyped: it has 19 characters instead of 20",
		id + "0":                          id + "0 looks mistyped: it has 21 characters instead of 20",
		"msg_01k5ttb2f7d9r3s8a1e6h4j5kp":  "", // an older id
		"evt_01k5tthm9w5b2y7d3q8z1f6crk":  "",
		"signup@example.org":              "",
		"my_template_of_the_day":          "",
		"msg_<script>alert(1)":            "",
		"msg_" + strings.Repeat("x", 1e4): "",
		"":                                "",
	} {
		if got := ids.Typo(text); got != want {
			t.Errorf("%.60s: %q, want %q", text, got, want)
		}
	}
}
