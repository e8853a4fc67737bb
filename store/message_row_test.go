package store

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// What encode writes of a body is what encoding/json reads as the same body.
func TestEncodedBodyIsJSON(t *testing.T) {
	t.Parallel()
	every := "a \" \\ \u2028 ä <b>&\x7f"
	for c := range byte(' ') {
		every += string(rune(c))
	}
	empty := ""
	for _, want := range []Body{
		{}, {Text: every, HTML: every, Reply: &every, FromHTML: true}, {Reply: &empty}, {HTML: "<p>"},
	} {
		var got Body
		if err := json.Unmarshal([]byte(want.encode()), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
	broken := Body{Text: "a\xff\xc3(b"}
	if got := broken.encode(); !json.Valid([]byte(got)) || !utf8.ValidString(got) {
		t.Errorf("broken text became %q", got)
	}
}
