package search

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/store"
)

func linearReaders() []lineartest.Reader {
	words := []string{"a", " ", "é", "字", "\u0301", strings.Repeat("b", 70)}
	read := func(m store.Message) { _, _ = Text(m) }
	content := func(b store.Body) *store.Content { return &store.Content{Body: &store.JSON[store.Body]{V: b}} }
	return []lineartest.Reader{
		{Name: "Text subject", Units: words, Short: 4, Read: func(s string) { read(store.Message{Subject: s}) }},
		{Name: "Text text", Units: words, Short: 4, Read: func(s string) { read(store.Message{Content: content(store.Body{Text: s})}) }},
		{Name: "Text html", Units: append([]string{"<p>", "<!--"}, words...), Short: 4, Read: func(s string) { read(store.Message{Content: content(store.Body{HTML: s})}) }},
		{Name: "Text raw", Units: []string{"a", "\r\n", "="}, Read: func(s string) { read(store.Message{Content: &store.Content{Raw: []byte("Subject: x\r\n\r\n" + s)}}) }},
		{Name: "Parse", Units: append([]string{`"`}, words...), Short: 4, Read: func(s string) { Parse(s) }},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), map[string]string{
		"NewIndexer": "takes settings", "Indexer.Run": "reads messages with Text", "Indexer.RunOnce": "reads messages with Text",
	})
}
