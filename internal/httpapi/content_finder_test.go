package httpapi

import (
	"bytes"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestContentFinder(t *testing.T) {
	t.Parallel()
	large := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("content+/"), minContent/9))
	padded := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), minContent))
	const left = 0 // found none
	tests := []struct {
		name, doc string
		found     int
	}{
		{"one", `{"to":"a","attachments":[{"filename":"f","content":"` + large + `"}]}`, 1},
		{"two, and fields in another order", ` { "attachments" : [ {"content" :` + "\n" + `"` + large + `","filename":"[{"}, {"content":"` + padded + `"}],"to":["a"]}`, 2},
		{"a small one", `{"attachments":[{"content":"eA=="},{"content":"` + large + `"}]}`, 1},
		{"one after other objects and lists", `{"to":{"content":"x"},"cc":[{"content":"y"}],"attachments":[{"content":"` + large + `"}]}`, 1},
		{"another field", `{"attachments":[{"filename":"` + large + `"}]}`, left},
		{"a field of another list", `{"files":[{"content":"` + large + `"}]}`, left},
		{"after the list", `{"attachments":[],"b":[{"content":"` + large + `"}]}`, left},
		{"too deep", `{"attachments":[{"a":{"content":"` + large + `"}}]}`, left},
		{"too deep, in a list", `{"attachments":[[{"content":"` + large + `"}]]}`, left},
		{"not deep enough", `{"attachments":{"content":"` + large + `"}}`, left},
		{"within another field", `{"x":{"attachments":[{"content":"` + large + `"}]}}`, left},
		{"a text that looks like it", `{"text":"{\"attachments\":[{\"content\":\"` + large + `\"}]}"}`, left},
		{"a name with an escape", `{"attachments":[{"c\u006fntent":"` + large + `"}]}`, left},
		{"a name with an escape after the list's", `{"attachments":[],"\u0061":[{"content":"` + large + `"}]}`, left},
		{"a longer name", `{"attachments2":[{"contents":"` + large + `"}],"attachments":[{"contents":"` + large + `"}]}`, left},
		{"an escape in the content", `{"attachments":[{"content":"` + large[1:] + `\u0041"}]}`, left},
		{"not base64", `{"attachments":[{"content":"` + large + `!AAA"}]}`, left},
		{"a length that base64 cannot have", `{"attachments":[{"content":"` + large + `AA"}]}`, left},
		{"padding within", `{"attachments":[{"content":"AA==` + large + `"}]}`, left},
		{"too much padding", `{"attachments":[{"content":"` + large + `A==="}]}`, left},
		{"the name of a name", `{"attachments":[{"` + large + `":"content"}]}`, left},
		{"no end", `{"attachments":[{"content":"` + large, left},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, piece := range []int{1, 1000, len(tt.doc)} {
				kept := keptOf(t, tt.doc, piece)
				if len(kept.spans) != tt.found {
					t.Fatalf("in pieces of %d: found %d, want %d", piece, len(kept.spans), tt.found)
				}
				reduced, err := io.ReadAll(kept.document(int64(len(tt.doc))))
				if err != nil {
					t.Fatal(err)
				}
				if tt.found > 0 && len(reduced) > 500 {
					t.Errorf("%d bytes are left", len(reduced))
				}
				var whole strings.Builder
				if err := kept.writeWhole(&whole, reduced); err != nil || whole.String() != tt.doc {
					t.Errorf("made whole again it differs: %v", err)
				}
			}
		})
	}
}

// Only its own mark stands for a content.
func TestKeptContents(t *testing.T) {
	t.Parallel()
	for extra := range 3 { // each length of the padding
		want := bytes.Repeat([]byte("y"), minContent+extra)
		kept := keptOf(t, `{"attachments":[{"content":"`+base64.StdEncoding.EncodeToString(want)+`"}]}`, 1<<20)
		s, ok := kept.behind(kept.markOf(0))
		if !ok || s.size != int64(len(want)) {
			t.Fatalf("%v, %d bytes", ok, s.size)
		}
		for range 2 { // a message is written more than once
			if got, err := io.ReadAll(kept.open(s)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		}
		for _, none := range [][]byte{nil, {}, []byte("x"), kept.mark[:], kept.markOf(1), append(kept.markOf(0), 0), make([]byte, markBytes+indexBytes)} {
			if _, ok := kept.behind(none); ok {
				t.Errorf("%x is taken for a mark", none)
			}
		}
	}
}

// keptOf returns the contents found in a document that arrives in pieces.
func keptOf(t *testing.T, doc string, piece int) *keptContents {
	t.Helper()
	path := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	var f contentFinder
	for rest := []byte(doc); len(rest) > 0; {
		n := min(piece, len(rest))
		_, _ = f.Write(rest[:n])
		rest = rest[n:]
	}
	return &keptContents{file: file, mark: [markBytes]byte{1, 2, 3}, spans: f.found}
}
