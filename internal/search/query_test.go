package search

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxWord+1)
	tests := []struct {
		name, q string
		words   []string
		phrases [][]string
	}{
		{"nothing", "", nil, nil},
		{"space", " \t\n", nil, nil},
		{"signs", `*** -- " " :`, nil, nil},
		{"words, each once and in order", "red Blue RED", []string{"blue", "red"}, nil},
		{"a phrase", `"Red fish"`, []string{"fish", "red"}, [][]string{{"red", "fish"}}},
		{"a phrase of one word is a word", `"red"`, []string{"red"}, nil},
		{"words about a phrase", `one "red fish" two`, []string{"fish", "one", "red", "two"}, [][]string{{"red", "fish"}}},
		{"a quote without its end", `blue "red fish`, []string{"blue", "fish", "red"}, [][]string{{"red", "fish"}}},
		{"quotes as telephones write them", "„red fish”", []string{"fish", "red"}, [][]string{{"red", "fish"}}},
		{"what is written without a space", "ann@example.com", []string{"ann", "com", "example"}, [][]string{{"ann", "example", "com"}}},
		{"words of operator languages", "red AND NOT fish*", []string{"and", "fish", "not", "red"}, nil},
		{"a long word", long, []string{shorten(long)}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Parse(tt.q)
			if d := cmp.Diff(tt.words, got.Words); d != "" {
				t.Errorf("words (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.phrases, got.Phrases); d != "" {
				t.Errorf("phrases (-want +got):\n%s", d)
			}
		})
	}
}

// Whatever is looked for, the words can be put into the query languages of both
// databases: each is letters, digits and the border alone, and not too long.
func FuzzParse(f *testing.F) {
	for _, q := range []string{"", `"a b" c`, `NEAR("a" b, 5)`, "a' & !b | c:*", "東京都 Café", "\x00\xff", strings.Repeat("ａ", 200)} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		for _, w := range Parse(q).Words {
			if w == "" || len(w) > maxWord || strings.ContainsAny(w, " \t\r\n\"'\\&|!:()*<>^.\x00") {
				t.Errorf("%q gives the word %q", q, w)
			}
		}
	})
}
