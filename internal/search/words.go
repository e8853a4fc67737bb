// Package search makes words of mail and of what is looked for in it, and fills
// the full-text index.
//
// A message is searched by its subject and its body: the text as sent, and the
// text of the html. Both mail and query are folded by the same function, case
// and accents and width aside, and compared as they are then, so that a search
// means the same on every database. No query is wrong: whatever is not a letter
// or a digit separates words, and quotes alone mean something. Of a very long
// message the first 256 KiB of words are searched.
//
// A message can be found when its 250 is out. The index is filled later, in
// batches and by one node at a time; until it holds a message, searches read the
// message itself. When filling it fails, or never happens, they only cost more.
package search

import (
	"bytes"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/store"
)

const (
	// maxText is how many bytes of a subject, a text and an html are folded each,
	// and maxWords how many bytes of words a message has at most.
	maxText  = 1 << 20
	maxWords = 256 << 10
	// maxWord is how long a word, in bytes, may be. Of a longer one the rest
	// becomes a hash: it is found as a whole, like others.
	maxWord = 64
)

// border separates subject, text and html. No phrase matches across it, and no
// query contains it, because it is not a letter.
const border = "-"

// Text returns the words of a message: it is a store.IndexText.
func Text(m store.Message) (string, error) {
	words := appendWords(make([]byte, 0, 4<<10), m.Subject)
	if m.Content == nil {
		return string(words), nil
	}
	body, err := bodyOf(*m.Content)
	if err != nil {
		return "", err
	}
	words = appendWords(append(words, " "+border+" "...), body.Text)
	if body.HTML != "" && !body.FromHTML && len(words) < maxWords {
		words = appendWords(append(words, " "+border+" "...), htmltext.Text(plaintext.Truncate(body.HTML, maxText)))
	}
	if len(words) > maxWords {
		words = words[:bytes.LastIndexByte(words[:maxWords+1], ' ')]
	}
	return string(words), nil
}

func bodyOf(c store.Content) (store.Body, error) {
	if c.Body != nil {
		return c.Body.V, nil
	}
	m, err := mime.Parse(bytes.NewReader(c.Raw), mail.DefaultLimits())
	if err != nil {
		return store.Body{}, err
	}
	return store.Body{Text: m.Text, HTML: m.HTML}, nil
}

// appendWords folds text and appends its words.
func appendWords(dst []byte, text string) []byte {
	return append(dst, fold(plaintext.Truncate(text, maxText))...)
}

// fold returns the words of s, separated by single spaces.
func fold(s string) string {
	folded := plaintext.FoldForSearch(s)
	if !hasLong(folded) {
		return folded
	}
	words := strings.Fields(folded)
	for i, w := range words {
		words[i] = shorten(w)
	}
	return strings.Join(words, " ")
}

// hasLong says whether there is a word to be shortened.
func hasLong(words string) bool {
	n := 0
	for i := range len(words) {
		if n++; words[i] == ' ' {
			n = 0
		}
		if n > maxWord {
			return true
		}
	}
	return false
}

func shorten(w string) string {
	if len(w) <= maxWord {
		return w
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(w)) // a hash never fails
	return plaintext.Truncate(w, maxWord/2) + border + strconv.FormatUint(h.Sum64(), 36)
}
