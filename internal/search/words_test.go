package search

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
)

func TestText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 3*maxWord)
	body := func(text, html string) *store.Content {
		return &store.Content{Body: &store.JSON[store.Body]{V: store.Body{Text: text, HTML: html}}}
	}
	raw := func(s string) *store.Content { return &store.Content{Raw: []byte(strings.ReplaceAll(s, "\n", "\r\n"))} }
	tests := []struct {
		name    string
		subject string
		content *store.Content
		want    string
	}{
		{"no content", "Red Fish", nil, "red fish"},
		{"subject and text", "Red", body("Blue, fish!", ""), "red - blue fish"},
		{"html too, without its tags", "Red", body("blue", "<p>green <b>fish</b></p><script>no</script>"), "red - blue - green fish"},
		{"read out of the raw message", "Red", raw("Subject: not this\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nGr=FCn\n"), "red - grun"},
		{"a long word has its beginning and a hash", "a " + long, nil, "a " + shorten(long)},
		{"signs alone", "***", body("...", ""), " - "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Text(store.Message{Subject: tt.subject, Content: tt.content})
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// Two long words that begin alike are two words.
func TestLongWordsDiffer(t *testing.T) {
	t.Parallel()
	begin := strings.Repeat("z", maxWord)
	one, two := shorten(begin+"1"), shorten(begin+"2")
	if one == two || len(one) > maxWord {
		t.Errorf("got %q and %q", one, two)
	}
}

// What is indexed of a very long message is bounded, and ends with a whole word.
func TestVeryLongMessages(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := 0; text.Len() < 3*maxWords; i++ {
		fmt.Fprintf(&text, "word%07d ", i)
	}
	got, err := Text(store.Message{Subject: "long", Content: &store.Content{Body: &store.JSON[store.Body]{V: store.Body{Text: text.String()}}}})
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(got)
	if last := words[len(words)-1]; len(got) > maxWords || len(got) < maxWords-20 || len(last) != len("word0000000") {
		t.Errorf("%d bytes of words, the last is %q", len(got), last)
	}
}
